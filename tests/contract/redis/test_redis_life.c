/* Opening and closing a Redis: who is refused, what is told, and that nothing under way is forgotten or told twice. */
#include <errno.h>

#include "redis/redis_private.h"
#include "redis_fake.h"
#include "redis_rig.h"

static struct redis_server server;

static int start(void **state)
{
        (void)state;
        server_start(&server, "--requirepass", "secret", NULL);
        server_ok(&server, "ACL SETUSER worker on >hammer ~* &* +@all -@admin -@dangerous +client");
        return 0;
}

static int stop(void **state)
{
        (void)state;
        server_free(&server);
        return 0;
}

static int open_as(struct rig *rig, const char *url, const char *user, const char *password)
{
        rig_init(rig, url);
        rig->open.options.user = user;
        rig->open.options.password = password;
        rig->open.options.deadline_ms = 2000;
        return rig_open(rig);
}

static void a_password_opens_and_a_wrong_one_does_not(void **state)
{
        static const struct {
                const char *user, *password;
                int status;
        } cases[] = {
                { NULL, "secret", 0 },
                { "default", "secret", 0 },
                { "worker", "hammer", 0 },
                { NULL, "wrong", -EACCES },
                { "worker", "secret", -EACCES },
                { "nobody", "secret", -EACCES },
                { NULL, NULL, -EACCES },
        };
        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                struct rig rig;
                int status = open_as(&rig, server.url, cases[i].user, cases[i].password);
                if (status != cases[i].status)
                        fail_msg("case %zu: %d %s", i, status, rig.open.error.text);
                assert_null(strstr(rig.open.error.text, "secret"));
                rig_close(&rig);
        }
}

static void a_restricted_user_learns_less_and_works(void **state)
{
        struct redis_facts facts;
        struct rig rig;
        struct call call;
        (void)state;
        assert_int_equal(open_as(&rig, server.url, "worker", "hammer"), 0);
        redis_facts(rig.redis, &facts);
        assert_string_equal(facts.role, "master");
        assert_string_equal(facts.appendfsync, "unknown");
        assert_string_equal(facts.maxmemory_policy, "unknown"); /* INFO is "dangerous" */
        assert_true(facts.has_tracking);
        assert_int_equal(call_do(&rig, &call, "SET k:1 v"), 0);
        assert_int_equal(call_do(&rig, &call, "CONFIG GET save"), -EPERM);
        assert_contains(call.command.error.text, "the Redis user \"worker\" lacks the right to CONFIG");
        assert_contains(call.command.error.text, "quiver check --acl");
        rig_close(&rig);
}

static long long denials(void)
{
        redisReply *log = server_do(&server, "ACL LOG");
        long long count = 0;
        for (size_t i = 0; i < log->elements; i++)
                count += log->element[i]->element[1]->integer; /* "count" */
        freeReplyObject(log);
        return count;
}

static void what_is_refused_at_login_is_asked_for_once(void **state)
{
        struct rig rig;
        (void)state;
        server_ok(&server, "ACL SETUSER default -config|get");
        server_ok(&server, "ACL LOG RESET");
        assert_int_equal(open_as(&rig, server.url, NULL, "secret"), 0);
        int ups = rig.ups;
        server_ok(&server, "CLIENT KILL TYPE normal");
        RUN_UNTIL(&rig, rig.ups > ups);
        assert_int_equal(denials(), 1);
        rig_close(&rig);
        server_ok(&server, "ACL SETUSER default +config|get");
}

static void a_user_of_its_own_is_not_asked_for_what_only_an_administrator_has(void **state)
{
        struct rig rig;
        (void)state;
        server_ok(&server, "ACL SETUSER helper reset on >hammer ~* &* +@all -config -script");
        server_ok(&server, "ACL LOG RESET");
        assert_int_equal(open_as(&rig, server.url, "helper", "hammer"), 0);
        rig_close(&rig);
        assert_int_equal(denials(), 0);
}

static void the_facts_are_those_of_the_server(void **state)
{
        struct redis_facts facts;
        struct rig rig;
        (void)state;
        server_ok(&server, "CONFIG SET maxmemory 100mb");
        assert_int_equal(open_as(&rig, server.url, NULL, "secret"), 0);
        redis_facts(rig.redis, &facts);
        assert_int_equal(atoi(facts.version) >= 7, 1);
        assert_string_equal(facts.mode, "standalone");
        assert_string_equal(facts.role, "master");
        assert_contains(facts.server, "127.0.0.1:");
        assert_int_equal(strlen(facts.replid), 40);
        assert_string_equal(facts.appendonly, "no");
        assert_string_equal(facts.appendfsync, "everysec");
        assert_string_equal(facts.save, "");
        assert_string_equal(facts.maxmemory_policy, "noeviction");
        assert_int_equal(facts.maxmemory, 100 << 20);
        assert_int_equal(facts.replicas, 0);
        assert_true(facts.has_tracking);
        rig_close(&rig);
}

static void a_replica_is_no_master(void **state)
{
        struct redis_server replica;
        struct rig rig;
        (void)state;
        server_start(&replica, "--replicaof", "127.0.0.1 1", NULL);
        rig_init(&rig, replica.url);
        rig.open.options.deadline_ms = 300;
        assert_int_equal(rig_open(&rig), -EHOSTUNREACH);
        assert_contains(rig.open.error.text, "is a replica");
        rig_close(&rig);
        server_free(&replica);
}

static void what_is_not_there_is_tried_until_the_deadline(void **state)
{
        char url[96];
        struct rig rig;
        (void)state;
        (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u", free_port());
        rig_init(&rig, url);
        rig.open.options.deadline_ms = 200;
        assert_int_equal(rig_open(&rig), -ECONNREFUSED);
        rig_close(&rig);
        rig_init(&rig, "redis+unix:/nowhere/redis.sock");
        rig.open.options.deadline_ms = 200;
        assert_int_equal(rig_open(&rig), -ECONNREFUSED);
        rig_close(&rig);
        rig_init(&rig, "redis://no-such-host.invalid");
        rig.open.options.deadline_ms = 200;
        int status = rig_open(&rig);
        assert_true(status == -EHOSTUNREACH || status == -ETIMEDOUT);
        rig_close(&rig);
        rig_init(&rig, "redis+unix:/a-path-that-is-longer-than-a-socket-may-have/"
                       "a-path-that-is-longer-than-a-socket-may-have/a-path-that-is-longer-than-it-may-be/redis.sock");
        rig.open.options.deadline_ms = 200;
        assert_int_equal(rig_open(&rig), -EHOSTUNREACH);
        assert_contains(rig.open.error.text, "too long");
        rig_close(&rig);
}

static void a_url_that_makes_no_sense_is_refused_at_once(void **state)
{
        static const char *const urls[] = { "redis:/x", "http://x", "", "sqlite:x", "redis+sentinel://h1" };
        (void)state;
        for (size_t i = 0; i < COUNT(urls); i++) {
                struct rig rig;
                rig_init(&rig, urls[i]);
                assert_int_equal(rig_open(&rig), -EINVAL);
                assert_true(rig.open.error.text[0]);
                rig_close(&rig);
        }
}

/* --- servers that are not as they should be ----------------------------------------------------------------------- */

static void expect_open(const struct fake_line *lines, int status, const char *part)
{
        struct fake fake;
        struct rig rig;
        rig_init(&rig, "");
        fake_start(&fake, &rig.loop, lines);
        rig.open.options.url = fake.url;
        rig.open.options.deadline_ms = 500;
        if (rig_open(&rig) != status)
                fail_msg("%d instead of %d: %s", rig.open_status, status, rig.open.error.text);
        assert_contains(rig.open.error.text, part);
        /* Whatever it was, it did not make us ask without pause. */
        assert_true(fake.connections < 30);
        fake_stop(&fake);
        rig_close(&rig);
}

static void an_old_server_is_refused_by_its_version(void **state)
{
        static const struct fake_line old[] = { { "HELLO", FAKE_HELLO("6.2.14") }, { 0 } };
        static const struct fake_line older[] = { { "HELLO", "-ERR unknown command `HELLO`\r\n" }, { 0 } };
        (void)state;
        expect_open(old, -ENOTSUP, "6.2.14 is too old");
        expect_open(older, -ENOTSUP, "7.0 or newer");
}

static void a_server_that_loads_is_waited_for(void **state)
{
        static const struct fake_line loading[] = { { "HELLO", FAKE_HELLO("7.0.15") },
                { "INFO", "-LOADING Redis is loading the dataset in memory\r\n" }, { 0 } };
        (void)state;
        expect_open(loading, -ETIMEDOUT, "LOADING");
}

static void what_does_not_speak_redis_is_refused(void **state)
{
        static const struct fake_line http[] = { { "HELLO", "HTTP/1.1 400 Bad Request\r\n\r\n" }, { 0 } };
        static const struct fake_line echo[] = { { "HELLO", "*1\r\n$5\r\nHELLO\r\n" }, { 0 } };
        (void)state;
        expect_open(http, -EPROTO, "does not speak");
        expect_open(echo, -EPROTO, "HELLO");
}

static void a_reply_without_end_does_not_eat_our_memory(void **state)
{
        static const struct fake_line many[] = { { "HELLO", "*2147483647\r\n" }, { 0 } };
        static const struct fake_line nested[] = { { "HELLO", "*1000000\r\n*1000000\r\n" }, { 0 } };
        static const struct fake_line deep[] = {
                { "HELLO", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n" }, { 0 }
        };
        (void)state;
        expect_open(many, -EHOSTUNREACH, "elements");
        expect_open(nested, -EHOSTUNREACH, "elements");
        expect_open(deep, -EPROTO, "does not speak");
}

static void a_refusal_without_a_word_is_told_in_words(void **state)
{
        static const struct fake_line lines[] = { { "HELLO", FAKE_HELLO("7.0.15") }, { "GET", "-\r\n" }, { 0 } };
        struct fake fake;
        struct rig rig;
        struct call call;
        (void)state;
        rig_init(&rig, "");
        fake_start(&fake, &rig.loop, lines);
        rig.open.options.url = fake.url;
        assert_int_equal(rig_open(&rig), 0);
        assert_int_equal(call_do(&rig, &call, "GET k"), -EREMOTEIO);
        assert_contains(call.error, "does not say why");
        fake_stop(&fake);
        rig_close(&rig);
}

#define SERVERS_TOLD 1500u

/* Each would be a connection, to wherever the map says. */
static void a_cluster_of_any_number_of_servers_is_not_followed(void **state)
{
        char *map = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&map, &size);
        struct fake fake;
        struct rig rig;
        unsigned servers = 0;
        (void)state;
        assert_non_null(out);
        (void)fprintf(out, "*%u\r\n", SERVERS_TOLD);
        for (unsigned i = 0; i < SERVERS_TOLD; i++) {
                char host[32];
                int length = snprintf(host, sizeof(host), "127.99.%u.%u", i / 250, 1 + i % 250);
                (void)fprintf(out, "*3\r\n:%u\r\n:%u\r\n*2\r\n$%d\r\n%s\r\n:1\r\n", i, i, length, host);
        }
        (void)fclose(out);
        const struct fake_line lines[] = { { "HELLO", FAKE_HELLO("7.0.15") }, { "CLUSTER", map }, { 0 } };
        rig_init(&rig, "");
        fake_start(&fake, &rig.loop, lines);
        char url[96];
        (void)snprintf(url, sizeof(url), "redis+cluster%s", strchr(fake.url, ':'));
        rig.open.options.url = url;
        rig.open.options.deadline_ms = 1000;
        redis_open(&rig.loop, &rig.open);
        const struct redis *redis = rig.open.redis;
        unsigned most = 0;
        while (!rig.is_opened) {
                const struct server *one;
                for (servers = 0, one = redis->servers; one; one = one->next)
                        servers++;
                most = servers > most ? servers : most;
                (void)uv_run(&rig.loop, UV_RUN_ONCE);
        }
        assert_true(most > 100 && most <= 1000);
        fake_stop(&fake);
        rig_close(&rig);
        free(map);
}

/* As if one answer had been doubled on the way: each command gets the one before. */
static void answers_that_are_out_of_step_end_the_connection(void **state)
{
        static const struct fake_line shifted[] = { { "HELLO", FAKE_HELLO("7.0.15") },
                { "PING", "+the answer to another command\r\n" }, { 0 } };
        struct fake fake;
        struct rig rig;
        (void)state;
        rig_init(&rig, "");
        fake_start(&fake, &rig.loop, shifted);
        rig.open.options.url = fake.url;
        assert_int_equal(rig_open(&rig), 0);
        redis_verify(rig.redis);
        RUN_UNTIL(&rig, rig.downs == 1);
        fake_stop(&fake);
        rig_close(&rig);
}

static void answers_that_are_in_step_are_left_alone(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        assert_int_equal(open_as(&rig, server.url, NULL, "secret"), 0);
        for (int i = 0; i < 3; i++) {
                redis_verify(rig.redis);
                redis_verify(rig.redis);
                assert_int_equal(call_do(&rig, &call, "SET k %d", i), 0);
        }
        assert_int_equal(rig.downs, 0);
        rig_close(&rig);
}

static void an_answer_that_nobody_asked_for_ends_the_connection(void **state)
{
        static const struct fake_line lines[] = { { "HELLO", FAKE_HELLO("7.0.15") }, { "PING", "+PONG\r\n+PONG\r\n" },
                { "CLIENT", "-ERR no\r\n" }, { 0 } };
        struct fake fake;
        struct rig rig;
        struct call call;
        (void)state;
        rig_init(&rig, "");
        fake_start(&fake, &rig.loop, lines);
        rig.open.options.url = fake.url;
        assert_int_equal(rig_open(&rig), 0);
        assert_int_equal(rig.no_tracking, 1);
        for (int i = 1; i <= 3; i++) {
                assert_int_equal(call_do(&rig, &call, "PING"), 0);
                RUN_UNTIL(&rig, rig.downs == i);
        }
        assert_int_equal(rig.no_tracking, 1); /* said once */
        fake_stop(&fake);
        rig_close(&rig);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void closing_tells_all_that_is_under_way(void **state)
{
        enum { COMMANDS = 8 };
        struct call sent[COMMANDS], waiting[COMMANDS], blocking, after;
        struct rig rig;
        (void)state;
        assert_int_equal(open_as(&rig, server.url, NULL, "secret"), 0);
        call_init(&blocking, "BLPOP nothing:1 0");
        blocking.command.is_blocking = true;
        redis_send(rig.redis, &blocking.command);
        for (int i = 0; i < COMMANDS; i++)
                call_send(&rig, &sent[i], "INCR n:1");
        for (int i = 0; i < COMMANDS; i++)
                call_send(&rig, &waiting[i], "INCR n:1");
        redis_close(rig.redis, NULL, NULL);
        rig.redis = NULL;
        call_init(&after, "PING");
        redis_send(blocking.command.redis, &after.command);
        RUN_UNTIL(
                &rig, blocking.is_done && sent[COMMANDS - 1].is_done && waiting[COMMANDS - 1].is_done && after.is_done);
        assert_int_equal(after.status, -ECANCELED);
        assert_int_equal(blocking.status, -ECANCELED);
        for (int i = 0; i < COMMANDS; i++)
                assert_int_equal(sent[i].status, -ECANCELED);
        rig_close(&rig);
}

static void close_while_opening(const char *url)
{
        struct rig rig;
        rig_init(&rig, url);
        redis_open(&rig.loop, &rig.open);
        redis_close(rig.open.redis, NULL, NULL);
        RUN_UNTIL(&rig, rig.is_opened);
        assert_int_equal(rig.open_status, -ECANCELED);
        rig_close(&rig);
}

static void an_open_can_be_taken_back(void **state)
{
        (void)state;
        close_while_opening(server.url);
        close_while_opening("redis://localhost:1");
        close_while_opening("redis+sentinel://localhost:1,localhost:2/m");
        close_while_opening("redis+cluster://localhost:1,localhost:2");
}

struct closer {
        struct redis_command command;
        const char *argv[1];
        size_t size[1];
        struct rig *rig;
};

static void close_from_done(struct redis_command *command)
{
        struct closer *closer = (struct closer *)command;
        redis_close(closer->rig->redis, NULL, NULL);
        closer->rig->redis = NULL;
}

static void a_done_may_close(void **state)
{
        struct call others[4];
        struct rig rig;
        (void)state;
        assert_int_equal(open_as(&rig, server.url, NULL, "secret"), 0);
        struct closer closer = { .command = { .done = close_from_done, .argc = 1 }, .argv = { "PING" }, .size = { 4 } };
        closer.command.argv = closer.argv;
        closer.command.argv_size = closer.size;
        closer.rig = &rig;
        redis_send(rig.redis, &closer.command);
        for (size_t i = 0; i < COUNT(others); i++)
                call_send(&rig, &others[i], "PING");
        RUN_UNTIL(&rig, others[3].is_done);
        rig_close(&rig);
}

static int blocked_clients(void)
{
        char value[16];
        server_info(&server, "blocked_clients", value, sizeof(value));
        return atoi(value);
}

static void a_blocking_command_blocks_only_itself(void **state)
{
        struct call blocking[3], call;
        struct rig rig;
        (void)state;
        assert_int_equal(open_as(&rig, server.url, NULL, "secret"), 0);
        for (size_t i = 0; i < COUNT(blocking); i++) {
                call_init(&blocking[i], "BLPOP list:1 0");
                blocking[i].command.is_blocking = true;
                blocking[i].command.deadline_ms = 60000;
                redis_send(rig.redis, &blocking[i].command);
        }
        RUN_UNTIL(&rig, blocked_clients() == 3);
        assert_int_equal(call_do(&rig, &call, "PING"), 0);
        assert_false(blocking[0].is_done);
        redis_cancel(&blocking[2].command);
        assert_false(blocking[2].is_done);
        RUN_UNTIL(&rig, blocking[2].is_done);
        assert_int_equal(blocking[2].status, -ECANCELED);
        /* Until the server has seen the end of its connection, a cancelled command may still happen. */
        RUN_UNTIL(&rig, blocked_clients() == 2);
        assert_int_equal(call_do(&rig, &call, "RPUSH list:1 a b"), 0);
        RUN_UNTIL(&rig, blocking[0].is_done && blocking[1].is_done);
        assert_int_equal(blocking[0].status, 0);
        assert_string_equal(blocking[0].reply, "(array of 2)");
        /* A cancelled one takes nothing away. */
        assert_int_equal(call_do(&rig, &call, "RPUSH list:1 c"), 0);
        assert_int_equal(call_do(&rig, &call, "LLEN list:1"), 0);
        assert_string_equal(call.reply, "1");
        redis_cancel(&call.command); /* done: nothing happens */
        rig_close(&rig);
}

static void what_waits_can_be_cancelled(void **state)
{
        struct call call;
        struct rig rig;
        (void)state;
        assert_int_equal(open_as(&rig, server.url, NULL, "secret"), 0);
        server_kill(&server);
        RUN_UNTIL(&rig, rig.downs == 1);
        call_send(&rig, &call, "PING");
        redis_cancel(&call.command);
        redis_cancel(&call.command);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, -ECANCELED);
        server_restart(&server);
        assert_int_equal(call_do(&rig, &call, "PING"), 0);
        rig_close(&rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_password_opens_and_a_wrong_one_does_not),
                cmocka_unit_test(a_restricted_user_learns_less_and_works),
                cmocka_unit_test(what_is_refused_at_login_is_asked_for_once),
                cmocka_unit_test(a_user_of_its_own_is_not_asked_for_what_only_an_administrator_has),
                cmocka_unit_test(the_facts_are_those_of_the_server),
                cmocka_unit_test(a_replica_is_no_master),
                cmocka_unit_test(what_is_not_there_is_tried_until_the_deadline),
                cmocka_unit_test(a_url_that_makes_no_sense_is_refused_at_once),
                cmocka_unit_test(an_old_server_is_refused_by_its_version),
                cmocka_unit_test(a_server_that_loads_is_waited_for),
                cmocka_unit_test(what_does_not_speak_redis_is_refused),
                cmocka_unit_test(a_reply_without_end_does_not_eat_our_memory),
                cmocka_unit_test(a_refusal_without_a_word_is_told_in_words),
                cmocka_unit_test(a_cluster_of_any_number_of_servers_is_not_followed),
                cmocka_unit_test(answers_that_are_out_of_step_end_the_connection),
                cmocka_unit_test(answers_that_are_in_step_are_left_alone),
                cmocka_unit_test(an_answer_that_nobody_asked_for_ends_the_connection),
                cmocka_unit_test(closing_tells_all_that_is_under_way),
                cmocka_unit_test(an_open_can_be_taken_back),
                cmocka_unit_test(a_done_may_close),
                cmocka_unit_test(a_blocking_command_blocks_only_itself),
                cmocka_unit_test(what_waits_can_be_cancelled),
        };
        return cmocka_run_group_tests(tests, start, stop);
}
