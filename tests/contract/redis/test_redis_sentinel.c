/* Sentinel: the master is found, verified and followed. */
#include <errno.h>
#include <signal.h>

#include "redis_rig.h"

static struct sentinel_group group;

static int start(void **state)
{
        (void)state;
        sentinel_group_start(&group, "secret", "watch");
        return 0;
}

static int stop(void **state)
{
        (void)state;
        sentinel_group_free(&group);
        return 0;
}

/* A Sentinel needs long to call the old master a replica: another failover wants another group. */
static int start_again(void **state)
{
        (void)stop(state);
        return start(state);
}

static void group_init(struct rig *rig)
{
        rig_init(rig, group.url);
        rig->open.options.password = "secret";
        rig->open.options.sentinel_password = "watch";
        rig->open.options.deadline_ms = 10000;
}

static void the_master_is_found(void **state)
{
        struct redis_facts facts;
        struct rig rig;
        struct call call;
        char address[32];
        (void)state;
        group_init(&rig);
        assert_int_equal(rig_open(&rig), 0);
        redis_facts(rig.redis, &facts);
        (void)snprintf(address, sizeof(address), "127.0.0.1:%u", group.data[0].port);
        assert_string_equal(facts.server, address);
        assert_string_equal(facts.mode, "sentinel");
        assert_int_equal(facts.replicas, 1);
        assert_true(facts.has_tracking);
        assert_int_equal(call_do(&rig, &call, "SET k:1 v"), 0);
        rig_close(&rig);
}

static void wait_counts_the_replicas_that_have_a_write(void **state)
{
        static const char *first[] = { "SET", "k:1", "w" };
        static const size_t first_size[] = { 3, 3, 1 };
        struct rig rig;
        struct call wait;
        (void)state;
        group_init(&rig);
        assert_int_equal(rig_open(&rig), 0);
        /* A replica that is stopped has nothing new; without a write of its own WAIT would count it all the same. */
        assert_int_equal(kill(group.data[1].pid, SIGSTOP), 0);
        call_init(&wait, "WAIT 1 200");
        wait.command.is_blocking = true;
        wait.command.first_argv = first;
        wait.command.first_size = first_size;
        wait.command.first_argc = 3;
        redis_send(rig.redis, &wait.command);
        RUN_UNTIL(&rig, wait.is_done);
        assert_int_equal(kill(group.data[1].pid, SIGCONT), 0);
        assert_int_equal(wait.status, 0);
        assert_string_equal(wait.reply, "0");
        wait.is_done = false;
        redis_send(rig.redis, &wait.command);
        RUN_UNTIL(&rig, wait.is_done);
        assert_string_equal(wait.reply, "1");
        rig_close(&rig);
}

static void wrong_words_to_sentinels_are_said(void **state)
{
        struct rig rig;
        (void)state;
        group_init(&rig);
        rig.open.options.sentinel_password = "wrong";
        rig.open.options.deadline_ms = 500;
        assert_int_equal(rig_open(&rig), -EACCES);
        rig_close(&rig);

        char url[64];
        group_init(&rig);
        (void)snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%u/other", group.sentinels[0].port);
        rig.open.options.url = url;
        rig.open.options.deadline_ms = 500;
        assert_int_equal(rig_open(&rig), -EHOSTUNREACH);
        assert_contains(rig.open.error.text, "\"other\"");
        rig_close(&rig);

        rig_init(&rig, group.sentinels[0].url);
        rig.open.options.password = "watch";
        assert_int_equal(rig_open(&rig), -EINVAL);
        assert_contains(rig.open.error.text, "redis+sentinel://");
        rig_close(&rig);
}

static void a_sentinel_that_is_gone_is_passed_over(void **state)
{
        char url[192];
        struct rig rig;
        (void)state;
        group_init(&rig);
        (void)snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%u,127.0.0.1:%u/main", free_port(),
                group.sentinels[2].port);
        rig.open.options.url = url;
        assert_int_equal(rig_open(&rig), 0);
        rig_close(&rig);
}

static bool failover_begins(void *self)
{
        redisReply *reply = server_do(self, "SENTINEL FAILOVER main");
        bool is_so = reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
        return is_so;
}

/* Commands go on until one was answered by that server. */
static void expect_server(struct rig *rig, const struct redis_server *server)
{
        struct redis_facts facts;
        struct call call;
        char address[32];
        (void)snprintf(address, sizeof(address), "127.0.0.1:%u", server->port);
        RUN_UNTIL(rig, (redis_facts(rig->redis, &facts), !strcmp(facts.server, address)));
        assert_int_equal(call_do(rig, &call, "SET k:1 %u", server->port), 0);
        redisReply *reply = server_do(server, "GET k:1");
        assert_int_equal(atoi(reply->str), server->port);
        freeReplyObject(reply);
}

static void a_failover_with_both_alive_is_followed(void **state)
{
        struct rig rig;
        struct call blocking;
        (void)state;
        group_init(&rig);
        assert_int_equal(rig_open(&rig), 0);
        call_init(&blocking, "BLPOP nothing:1 0");
        blocking.command.is_blocking = true;
        blocking.command.deadline_ms = 60000;
        redis_send(rig.redis, &blocking.command);
        assert_true(wait_until(failover_begins, &group.sentinels[0]));
        expect_server(&rig, &group.data[1]);
        /* The old one is told many seconds later: what is written there until then is lost. */
        char role[16];
        server_info(&group.data[0], "role", role, sizeof(role));
        assert_string_equal(role, "master");
        RUN_UNTIL(&rig, blocking.is_done);
        assert_int_equal(blocking.status, -ECONNRESET);
        RUN_UNTIL(&rig, rig.looks > 0);
        rig_close(&rig);
}

static void a_command_waits_for_the_heir_of_a_dead_master(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        group_init(&rig);
        rig.open.options.deadline_ms = 19000;
        assert_int_equal(rig_open(&rig), 0);
        server_kill(&group.data[0]);
        RUN_UNTIL(&rig, rig.downs > 0);
        assert_int_equal(call_do(&rig, &call, "SET k:1 after"), 0);
        expect_server(&rig, &group.data[1]);
        RUN_UNTIL(&rig, rig.looks > 0);
        rig_close(&rig);
}

/* Its deadline is further away than the patience of this test. */
static void send_patiently(struct rig *rig, struct call *call, const char *text)
{
        call_init(call, text);
        call->command.deadline_ms = 60000;
        redis_send(rig->redis, &call->command);
}

/* A hung master accepts connections and bytes, and answers nothing. */
static void hang(const struct redis_server *server)
{
        assert_int_equal(kill(server->pid, SIGSTOP), 0);
}

static void go_on(const struct redis_server *server)
{
        assert_int_equal(kill(server->pid, SIGCONT), 0);
}

static void what_a_hung_master_owes_is_given_up_when_there_is_another(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        group_init(&rig);
        rig.open.options.deadline_ms = 60000;
        assert_int_equal(rig_open(&rig), 0);
        hang(&group.data[0]);
        send_patiently(&rig, &call, "SET k:1 v");
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, -ECONNRESET);
        expect_server(&rig, &group.data[1]);
        go_on(&group.data[0]);
        rig_close(&rig);
}

/* The Sentinel that would announce the new master hangs with the old one, as on one lost machine. */
static void the_other_sentinels_are_asked_while_an_answer_is_overdue(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        group_init(&rig);
        rig.open.options.deadline_ms = 60000;
        assert_int_equal(rig_open(&rig), 0);
        hang(&group.sentinels[0]);
        hang(&group.data[0]);
        send_patiently(&rig, &call, "SET k:1 v");
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, -ECONNRESET);
        expect_server(&rig, &group.data[1]);
        go_on(&group.sentinels[0]);
        go_on(&group.data[0]);
        rig_close(&rig);
}

static void a_login_that_a_hung_master_does_not_answer_is_given_up(void **state)
{
        struct rig rig;
        (void)state;
        hang(&group.data[0]);
        group_init(&rig);
        rig.open.options.deadline_ms = 60000;
        assert_int_equal(rig_open(&rig), 0);
        expect_server(&rig, &group.data[1]);
        go_on(&group.data[0]);
        rig_close(&rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_master_is_found),
                cmocka_unit_test(wait_counts_the_replicas_that_have_a_write),
                cmocka_unit_test(wrong_words_to_sentinels_are_said),
                cmocka_unit_test(a_sentinel_that_is_gone_is_passed_over),
                cmocka_unit_test(a_failover_with_both_alive_is_followed),
                cmocka_unit_test_setup(a_command_waits_for_the_heir_of_a_dead_master, start_again),
                cmocka_unit_test_setup(what_a_hung_master_owes_is_given_up_when_there_is_another, start_again),
                cmocka_unit_test_setup(the_other_sentinels_are_asked_while_an_answer_is_overdue, start_again),
                cmocka_unit_test_setup(a_login_that_a_hung_master_does_not_answer_is_given_up, start_again),
        };
        return cmocka_run_group_tests(tests, start, stop);
}
