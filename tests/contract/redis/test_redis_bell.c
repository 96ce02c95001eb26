/* The doorbell: Redis rings for others' writes, and whenever a ring may have been lost everybody is told to look. */
#include <errno.h>

#include "redis_rig.h"

static struct redis_server server;

static int start(void **state)
{
        (void)state;
        server_start(&server, NULL);
        return 0;
}

static int stop(void **state)
{
        (void)state;
        server_free(&server);
        return 0;
}

static int flush(void **state)
{
        (void)state;
        server_ok(&server, "FLUSHALL");
        return 0;
}

/* Reads, so that the next foreign write rings. */
static void arm(struct rig *rig)
{
        struct call call;
        call_init(&call, "LLEN log:1");
        call.command.is_tracked = true;
        redis_send(rig->redis, &call.command);
        RUN_UNTIL(rig, call.is_done);
        assert_int_equal(call.status, 0);
}

static void assert_rings(struct rig *rig)
{
        int rings = rig->rings;
        arm(rig);
        server_ok(&server, "RPUSH log:1 x");
        RUN_UNTIL(rig, rig->rings == rings + 1);
        assert_string_equal(rig->rung_key, "log:1");
}

static bool rings(const struct rig *rig)
{
        struct redis_facts facts;
        redis_facts(rig->redis, &facts);
        return facts.has_tracking;
}

static void a_foreign_write_rings_and_an_own_one_does_not(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        rig_start(&rig, server.url);
        assert_rings(&rig);
        arm(&rig);
        assert_int_equal(call_do(&rig, &call, "RPUSH log:1 own"), 0);
        /* Were it to ring for our own write, it would do so before this one. */
        assert_int_equal(call_do(&rig, &call, "LLEN log:2"), 0);
        server_ok(&server, "RPUSH log:2 x");
        RUN_UNTIL(&rig, !strcmp(rig.rung_key, "log:2"));
        assert_int_equal(rig.rings, 2);
        assert_int_equal(rig.looks, 0);
        rig_close(&rig);
}

static void read_untracked(struct rig *rig, struct call *call, const char *command)
{
        call_init(call, command);
        call->command.is_untracked = true;
        redis_send(rig->redis, &call->command);
}

static void what_is_excepted_does_not_ring_and_all_else_does(void **state)
{
        struct rig rig;
        struct call first, second, third;
        (void)state;
        rig_start(&rig, server.url);
        server_ok(&server, "RPUSH log:1 a b c");
        /* Sent at once: each gets its own answer, and only the command right behind the exception is excepted. */
        read_untracked(&rig, &first, "LLEN log:1");
        call_init(&second, "EXISTS log:2 log:3");
        redis_send(rig.redis, &second.command);
        read_untracked(&rig, &third, "LINDEX log:1 1");
        RUN_UNTIL(&rig, third.is_done);
        assert_string_equal(first.reply, "3");
        assert_string_equal(second.reply, "0");
        assert_string_equal(third.reply, "b");
        server_ok(&server, "RPUSH log:1 x");
        server_ok(&server, "RPUSH log:2 x");
        RUN_UNTIL(&rig, rig.rings == 1);
        assert_string_equal(rig.rung_key, "log:2");
        assert_rings(&rig);
        rig_close(&rig);
}

static void a_script_reads_and_is_rung_for(void **state)
{
        static const char text[] = "redis.call('RPUSH', KEYS[1], 'own') return redis.call('LLEN', KEYS[1])";
        struct redis_script script = { .name = "look", .text = text, .size = sizeof(text) - 1 };
        struct redis_script *list[] = { &script };
        struct rig rig;
        struct call call;
        (void)state;
        rig_init(&rig, server.url);
        rig.open.options.scripts = list;
        rig.open.options.scripts_count = 1;
        assert_int_equal(rig_open(&rig), 0);
        call_init(&call, "EVALSHA - 1 log:1");
        call.command.script = &script;
        redis_send(rig.redis, &call.command);
        RUN_UNTIL(&rig, call.is_done);
        server_ok(&server, "RPUSH log:1 x");
        RUN_UNTIL(&rig, rig.rings == 1);
        rig_close(&rig);
}

static void a_bell_that_dies_is_made_again_and_everybody_looks(void **state)
{
        struct rig rig;
        (void)state;
        rig_start(&rig, server.url);
        for (int i = 1; i <= 3; i++) {
                server_ok(&server, "CLIENT KILL TYPE pubsub");
                RUN_UNTIL(&rig, rig.looks == i);
                assert_true(rings(&rig));
                assert_rings(&rig);
        }
        assert_int_equal(rig.downs, 0); /* commands went on all the time */
        rig_close(&rig);
}

static void a_bell_that_is_silent_is_not_believed(void **state)
{
        struct rig rig;
        (void)state;
        rig_init(&rig, server.url);
        rig.open.options.deadline_ms = 200;
        assert_int_equal(rig_open(&rig), 0);
        /* Long enough for a ping to stay without an answer; nothing is sent on the main connection. */
        server_ok(&server, "CLIENT PAUSE 1000");
        RUN_UNTIL(&rig, !rings(&rig));
        int looks = rig.looks;
        RUN_UNTIL(&rig, rings(&rig));
        assert_true(rig.looks > looks);
        assert_int_equal(rig.downs, 0);
        assert_rings(&rig);
        rig_close(&rig);
}

static void after_a_lost_connection_everybody_looks_and_the_bell_rings(void **state)
{
        struct rig rig;
        (void)state;
        rig_start(&rig, server.url);
        server_ok(&server, "CLIENT KILL TYPE normal");
        RUN_UNTIL(&rig, rig.looks > 0);
        assert_rings(&rig);
        int looks = rig.looks;
        server_kill(&server);
        server_restart(&server);
        RUN_UNTIL(&rig, rig.looks > looks);
        assert_rings(&rig);
        rig_close(&rig);
}

static void a_flush_means_look(void **state)
{
        struct rig rig;
        (void)state;
        rig_start(&rig, server.url);
        arm(&rig);
        server_ok(&server, "FLUSHALL");
        RUN_UNTIL(&rig, rig.looks == 1);
        rig_close(&rig);
}

static void without_tracking_it_works_and_says_so_once(void **state)
{
        static const char *const rules[] = { "-client|tracking", "-subscribe" };
        (void)state;
        for (size_t i = 0; i < COUNT(rules); i++) {
                struct redis_facts facts;
                struct rig rig;
                struct call call;
                server_ok(&server, "ACL SETUSER deaf reset on >x ~* &* +@all %s", rules[i]);
                rig_init(&rig, server.url);
                rig.open.options.user = "deaf";
                rig.open.options.password = "x";
                assert_int_equal(rig_open(&rig), 0);
                assert_int_equal(rig.no_tracking, 1);
                redis_facts(rig.redis, &facts);
                assert_false(facts.has_tracking);
                server_ok(&server, "CLIENT KILL TYPE normal");
                RUN_UNTIL(&rig, rig.looks > 0);
                assert_int_equal(call_do(&rig, &call, "PING"), 0);
                assert_int_equal(rig.no_tracking, 1);
                rig_close(&rig);
        }
}

static void who_wants_no_bell_has_one_connection(void **state)
{
        struct rig rig;
        (void)state;
        rig_init(&rig, server.url);
        rig.open.options.wants_bell = false;
        rig.open.options.name = "plain";
        assert_int_equal(rig_open(&rig), 0);
        redisReply *reply = server_do(&server, "CLIENT LIST");
        const char *first = strstr(reply->str, "name=plain");
        assert_non_null(first);
        assert_null(strstr(first + 1, "name=plain"));
        freeReplyObject(reply);
        rig_close(&rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_foreign_write_rings_and_an_own_one_does_not, flush),
                cmocka_unit_test_setup(what_is_excepted_does_not_ring_and_all_else_does, flush),
                cmocka_unit_test_setup(a_script_reads_and_is_rung_for, flush),
                cmocka_unit_test_setup(a_bell_that_dies_is_made_again_and_everybody_looks, flush),
                cmocka_unit_test_setup(a_bell_that_is_silent_is_not_believed, flush),
                cmocka_unit_test_setup(after_a_lost_connection_everybody_looks_and_the_bell_rings, flush),
                cmocka_unit_test_setup(a_flush_means_look, flush),
                cmocka_unit_test_setup(without_tracking_it_works_and_says_so_once, flush),
                cmocka_unit_test(who_wants_no_bell_has_one_connection),
        };
        return cmocka_run_group_tests(tests, start, stop);
}
