/* The client library: taking results, and looking. */
#include "client_fixture.h"

/* --- results ------------------------------------------------------------------------------------------------------ */

static void make_results(struct fixture *f, int n)
{
        for (int i = 0; i < n; i++) {
                char payload[16];
                (void)snprintf(payload, sizeof(payload), "r%d", i);
                struct qv_client_task task = new_task("echo", "one-key", payload);
                assert_int_equal(qv_client_submit(f->client, &task, NULL), 0);
        }
        assert_int_equal(owner_work(&f->owner, echo, NULL), n);
}

static void results_are_taken_once_and_committed_by_who_took_them(void **state)
{
        struct fixture *f = *state;
        struct qv_client *other = open_client(f);
        struct qv_client_results mine = { 0 };
        struct qv_client_results theirs = { 0 };
        struct qv_client_results none = { 0 };
        unsigned char refused[3] = { 9, 9, 9 };
        make_results(f, 7);
        assert_int_equal(qv_client_consume(f->client, 3, 60000, &mine), 0);
        assert_int_equal(qv_client_consume(other, 10, 60000, &theirs), 0);
        assert_int_equal(mine.count, 3);
        assert_int_equal(theirs.count, 4);
        assert_string_equal(mine.items[0].data, "r0");
        assert_string_equal(mine.items[2].data, "r2");
        assert_string_equal(theirs.items[0].data, "r3");
        assert_string_equal(mine.items[1].key, "one-key");
        assert_string_equal(mine.items[1].handler, "echo");
        assert_int_equal(qv_client_consume(f->client, 10, 60000, &none), 0);
        assert_int_equal(none.count, 0);

        assert_int_equal(qv_client_commit(other, mine.items, 3, refused), 3);
        assert_memory_equal(refused, "\1\1\1", 3);
        assert_int_equal(qv_client_commit(f->client, mine.items, 3, refused), 0);
        assert_memory_equal(refused, "\0\0\0", 3);
        assert_int_equal(count(f).results, 4);
        assert_int_equal(qv_client_commit(f->client, mine.items, 3, NULL), 3);
        assert_int_equal(qv_client_commit(other, theirs.items, theirs.count, NULL), 0);
        assert_int_equal(count(f).results, 0);
        qv_client_results_free(&mine);
        qv_client_results_free(&theirs);
        qv_client_results_free(&none);
        qv_client_close(other);
}

/* Fails at its first start, and is then done. */
static struct store_outcome fail_once(void *self, const struct store_task *task)
{
        if (task->note.attempts || !span_is(task->envelope.payload, SPAN_TEXT("hard")))
                return echo(self, task);
        return (struct store_outcome){ .kind = STORE_RETRY, .cost = COST_ATTEMPT, .error = SPAN_TEXT("try again") };
}

static void results_and_outcomes_tell_what_it_took(void **state)
{
        struct fixture *f = *state;
        struct qv_client_results results = { 0 };
        struct qv_client_history history = QV_CLIENT_HISTORY_INIT;
        char id[QV_CLIENT_ID_SIZE];
        const char *const payloads[] = { "easy", "hard", "easy" };
        for (unsigned i = 0; i < 3; i++) {
                struct qv_client_task task = new_task("echo", "one-key", payloads[i]);
                assert_int_equal(qv_client_submit(f->client, &task, NULL), 0);
        }
        struct qv_client_task asked = new_task("echo", "one-key", "hard");
        asked.reply_ms = 60000;
        assert_int_equal(qv_client_submit(f->client, &asked, id), 0);
        while (count(f).done < 4)
                (void)owner_work(&f->owner, fail_once, NULL);
        assert_int_equal(qv_client_consume(f->client, 10, 60000, &results), 0);
        assert_int_equal(results.count, 3);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(qv_client_result_history(&results, i, &history), 0);
                assert_int_equal(history.attempts, i == 1);
                assert_int_equal(history.events_count, i == 1);
                assert_string_equal(results.items[i].data, payloads[i]);
        }
        assert_int_equal(qv_client_result_history(&results, 1, &history), 0);
        assert_string_equal(history.events[0].kind, "attempt");
        assert_string_equal(history.events[0].text, "try again");
        assert_int_equal(qv_client_result_history(&results, 3, &history), -EINVAL);
        history.size = 0;
        assert_int_equal(qv_client_result_history(&results, 0, &history), -EINVAL);
        qv_client_results_free(&results);

        struct qv_client_outcome *outcome = wait_for(f, id);
        assert_int_equal(outcome->state, QV_CLIENT_DONE);
        assert_int_equal(outcome->attempts, 1);
        assert_int_equal(outcome->events_count, 1);
        assert_string_equal(outcome->events[0].text, "try again");
        assert_string_equal(outcome->error, "");
        qv_client_outcome_free(outcome);
}

static void many_results_of_many_shards_come_in_one_go(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task *tasks = calloc(1000, sizeof(*tasks));
        struct qv_client_results results = { 0 };
        for (int i = 0; i < 1000; i++)
                tasks[i] = new_task("echo", NULL, "x");
        assert_int_equal(qv_client_submit_many(f->client, tasks, 1000, NULL), 0);
        assert_int_equal(owner_work(&f->owner, echo, NULL), 1000);
        assert_int_equal(qv_client_consume(f->client, 2000, 60000, &results), 0);
        assert_int_equal(results.count, 1000);
        assert_int_equal(qv_client_commit(f->client, results.items, results.count, NULL), 0);
        assert_int_equal(count(f).results, 0);
        qv_client_results_free(&results);
        free(tasks);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

static void counts_of_the_shards_add_up(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task task = new_task("mail", NULL, "x");
        for (int i = 0; i < 40; i++)
                assert_int_equal(qv_client_submit(f->client, &task, NULL), 0);
        struct qv_client_counts all = count(f);
        assert_int_equal(all.shards, SHARDS);
        assert_int_equal(all.queued, 40);
        uint64_t sum = 0;
        for (uint32_t shard = 0; shard < SHARDS; shard++) {
                struct qv_client_counts one = QV_CLIENT_COUNTS_INIT;
                assert_int_equal(qv_client_count(f->client, shard, &one), 0);
                assert_int_equal(one.shards, 1);
                sum += one.queued;
        }
        assert_int_equal(sum, 40);
        assert_int_equal(qv_client_count(f->client, SHARDS, &all), -EINVAL);
        all.size = 3;
        assert_int_equal(qv_client_count(f->client, 0, &all), -EINVAL);
}

static void the_desired_state_is_kept(void **state)
{
        struct fixture *f = *state;
        char *value = NULL;
        assert_int_equal(qv_client_get_desired(f->client, "pause", &value), -ENOENT);
        assert_int_equal(qv_client_set_desired(f->client, "pause.mail", "provider is down"), 0);
        assert_int_equal(qv_client_get_desired(f->client, "pause.mail", &value), 0);
        assert_string_equal(value, "provider is down");
        free(value);
        assert_int_equal(qv_client_set_desired(f->client, "pause.mail", NULL), 0);
        assert_int_equal(qv_client_get_desired(f->client, "pause.mail", &value), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                client_test(results_are_taken_once_and_committed_by_who_took_them),
                client_test(results_and_outcomes_tell_what_it_took),
                client_test(many_results_of_many_shards_come_in_one_go),
                client_test(counts_of_the_shards_add_up),
                client_test(the_desired_state_is_kept),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
