/* Calls every function of client.h that asks a store or the coordination for something, as the user that a
 * configuration names, and prints a line for each: NAME STATUS TEXT.  Its argument is the configuration. */
#include <errno.h>
#include <quiver/client.h>
#include <stdio.h>
#include <stdlib.h>

static struct qv_client *client;

static void say(const char *name, int status)
{
        printf("%s %d %s\n", name, status, status < 0 ? qv_client_error() : "");
}

static struct qv_client_task task_of(const char *key)
{
        struct qv_client_task task = QV_CLIENT_TASK_INIT;
        task.handler = "work";
        task.key = key;
        task.payload = "1";
        task.payload_size = 1;
        return task;
}

static void submit(void)
{
        struct qv_client_task tasks[2] = { task_of("c"), task_of("c") };
        struct qv_client_submitted submitted[2];
        struct qv_client_outcome *outcome = NULL;
        char id[QV_CLIENT_ID_SIZE];
        say("submit_many", qv_client_submit_many(client, tasks, 2, submitted));
        tasks[0].reply_ms = 60000;
        say("submit", qv_client_submit(client, &tasks[0], id));
        say("wait", qv_client_wait(client, id, 60000, &outcome));
        qv_client_outcome_free(outcome);
        tasks[1].delay_ms = 3600000;
        say("submit.delay", qv_client_submit(client, &tasks[1], id));
}

static void look(void)
{
        struct qv_client_info info = QV_CLIENT_INFO_INIT;
        struct qv_client_counts counts = QV_CLIENT_COUNTS_INIT;
        struct qv_client_results results;
        char *value = NULL;
        say("info", qv_client_info(client, &info));
        say("count", qv_client_count(client, 0, &counts));
        say("set_desired", qv_client_set_desired(client, "pause.nobody", "x"));
        say("get_desired", qv_client_get_desired(client, "pause.nobody", &value));
        free(value);
        int r = qv_client_consume(client, 10, 1000, &results);
        say("consume", r);
        if (r < 0)
                return;
        say("commit", qv_client_commit(client, results.items, results.count, NULL));
        qv_client_results_free(&results);
}

static void rooms(void)
{
        struct qv_client_room_page *page = NULL;
        struct qv_client_follow *follow = NULL;
        uint64_t number = 0;
        say("room_append", qv_client_room_append(client, "r", "x", 1, &number));
        int r = qv_client_room_read(client, "r", 0, &page);
        say("room_read", r);
        if (r == 0)
                qv_client_room_page_free(page);
        r = qv_client_room_follow(client, "r", 0, &follow);
        if (r == 0) {
                r = qv_client_follow_next(follow, 60000, &page);
                if (r == 0)
                        qv_client_room_page_free(page);
                qv_client_follow_close(follow);
        }
        say("room_follow", r);
        say("room_truncate", qv_client_room_truncate(client, "r", number));
}

static void recipes(void)
{
        struct qv_client_lock *lock = NULL;
        struct qv_client_election *election = NULL;
        struct qv_client_members *members = NULL;
        struct qv_client_notice *notice = NULL;
        uint64_t id = 0;
        say("next_id", qv_client_next_id(client, &id));
        say("trylock", qv_client_trylock(client, "l", &lock));
        if (lock)
                say("unlock", qv_client_unlock(lock));
        lock = NULL;
        say("lock", qv_client_lock(client, "l", NULL, &lock));
        if (lock)
                (void)qv_client_unlock(lock);
        int r = qv_client_elect(client, "e", &election);
        if (r == 0) {
                r = qv_client_election_next(election, 60000, &notice);
                if (r == 0)
                        qv_client_notice_free(notice);
                qv_client_election_close(election);
        }
        say("elect", r);
        r = qv_client_members(client, NULL, NULL, NULL, 0, &members);
        if (r == 0) {
                r = qv_client_members_next(members, 60000, &notice);
                if (r == 0)
                        qv_client_notice_free(notice);
                qv_client_members_close(members);
        }
        say("members", r);
}

int main(int argc, char **argv)
{
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        options.config = argc > 1 ? argv[1] : NULL;
        int r = qv_client_open(&options, &client);
        say("open", r);
        if (r < 0)
                return 1;
        submit();
        look();
        rooms();
        recipes();
        qv_client_close(client);
        return 0;
}
