/* Commands on one Redis server: order, one write, deadlines, losses, scripts, errors. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "redis_rig.h"

static struct redis_server server;
static int sends; /* system calls */

/* The C library's, counted. */
ssize_t send(int fd, const void *data, size_t size, int flags)
{
        sends++;
        return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

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

static void the_slots_are_those_of_redis(void **state)
{
        static const char *const keys[] = { "", "a", "foo", "{user1000}.following", "foo{}{bar}", "foo{{bar}}zap",
                "foo{bar}{zap}", "123456789", "}{", "{" };
        (void)state;
        assert_int_equal(redis_slot("123456789", 9), 0x31c3);
        assert_int_equal(redis_slot("{app:7}:log", 11), redis_slot("app:7", 5));
        assert_int_equal(redis_slot("foo{}{bar}", 10), 8363);
        assert_int_equal(redis_slot("foo{{bar}}zap", 13), redis_slot("{bar", 4));
        assert_int_equal(redis_slot("foo{bar}{zap}", 13), redis_slot("bar", 3));
        for (size_t i = 0; i < COUNT(keys); i++)
                assert_true(redis_slot(keys[i], strlen(keys[i])) < 16384);
}

static void answers_come_in_the_order_of_the_commands(void **state)
{
        enum { COMMANDS = 64 };
        static struct call calls[COMMANDS];
        struct rig rig;
        (void)state;
        rig_start(&rig, server.url);
        for (int i = 0; i < COMMANDS; i++)
                call_send(&rig, &calls[i], "INCR n");
        RUN_UNTIL(&rig, calls[COMMANDS - 1].is_done);
        for (int i = 0; i < COMMANDS; i++) {
                assert_int_equal(calls[i].status, 0);
                assert_int_equal(atoi(calls[i].reply), i + 1);
                assert_int_equal(calls[i].order, calls[0].order + i);
        }
        rig_close(&rig);
}

static void the_commands_of_one_turn_are_one_write(void **state)
{
        enum { COMMANDS = 64 };
        static struct call calls[COMMANDS];
        struct rig rig;
        (void)state;
        rig_start(&rig, server.url);
        int before = sends;
        for (int i = 0; i < COMMANDS; i++)
                call_send(&rig, &calls[i], "INCR n");
        RUN_UNTIL(&rig, calls[COMMANDS - 1].is_done);
        assert_int_equal(sends - before, 1);
        rig_close(&rig);
}

static void a_large_value_goes_there_and_back(void **state)
{
        enum { SIZE = 20 << 20 };
        struct rig rig;
        struct call call;
        (void)state;
        rig_start(&rig, server.url);
        char *value = malloc(SIZE);
        assert_non_null(value);
        memset(value, 'x', SIZE);
        call_init(&call, "SET big:1 VALUE");
        call.argv[2] = value;
        call.argv_size[2] = SIZE;
        redis_send(rig.redis, &call.command);
        RUN_UNTIL(&rig, call.is_done);
        assert_string_equal(call.reply, "OK");
        assert_int_equal(call_do(&rig, &call, "STRLEN big:1"), 0);
        assert_int_equal(atoi(call.reply), SIZE);
        assert_int_equal(call_do(&rig, &call, "GET big:1"), 0);
        assert_int_equal(call.reply[100], 'x');
        free(value);
        rig_close(&rig);
}

static void a_unix_socket_and_a_database_are_as_good(void **state)
{
        struct rig rig;
        struct call call;
        char url[128];
        (void)state;
        (void)snprintf(url, sizeof(url), "%s?db=3", server.unix_url);
        rig_start(&rig, url);
        assert_int_equal(call_do(&rig, &call, "SET k:1 there"), 0);
        assert_int_equal(call_do(&rig, &call, "GET k:1"), 0);
        assert_string_equal(call.reply, "there");
        redisReply *reply = server_do(&server, "GET k:1");
        assert_int_equal(reply->type, REDIS_REPLY_NIL); /* database 0 */
        freeReplyObject(reply);
        rig_close(&rig);
}

static void a_name_is_resolved_and_the_connection_has_one(void **state)
{
        struct rig rig;
        char url[64];
        (void)state;
        (void)snprintf(url, sizeof(url), "redis://localhost:%u", server.port);
        rig_init(&rig, url);
        rig.open.options.name = "host-a";
        assert_int_equal(rig_open(&rig), 0);
        redisReply *reply = server_do(&server, "CLIENT LIST");
        assert_contains(reply->str, "name=host-a");
        freeReplyObject(reply);
        rig_close(&rig);
}

static void no_descriptor_is_inherited(void **state)
{
        struct rig rig;
        struct call blocking;
        (void)state;
        int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
        rig_start(&rig, server.url);
        call_init(&blocking, "BLPOP nothing 0");
        blocking.command.is_blocking = true;
        redis_send(rig.redis, &blocking.command);
        (void)uv_run(&rig.loop, UV_RUN_ONCE);
        int found = 0;
        for (int fd = before; fd < before + 30; fd++) {
                struct stat st;
                bool is_socket = !fstat(fd, &st) && S_ISSOCK(st.st_mode);
                found += is_socket;
                assert_true(!is_socket || fcntl(fd, F_GETFD) & FD_CLOEXEC);
        }
        assert_true(found >= 3); /* main, bell, blocking */
        (void)close(before);
        rig_close(&rig);
        assert_int_equal(blocking.status, -ECANCELED);
}

static void what_is_not_answered_in_time_may_have_happened(void **state)
{
        struct rig rig;
        struct call late, other, after;
        (void)state;
        rig_start(&rig, server.url);
        server_ok(&server, "SET a:1 first");
        server_ok(&server, "SET b:1 second");
        server_ok(&server, "CLIENT PAUSE 1000");
        call_init(&late, "GET a:1");
        late.command.deadline_ms = 100;
        redis_send(rig.redis, &late.command);
        call_send(&rig, &other, "GET a:1");
        RUN_UNTIL(&rig, late.is_done && other.is_done);
        assert_int_equal(late.status, -ETIMEDOUT);
        assert_int_equal(other.status, -ETIMEDOUT);
        assert_contains(late.error, "no answer in time");
        /* The late answer is not taken for this one's. */
        assert_int_equal(call_do(&rig, &after, "GET b:1"), 0);
        assert_string_equal(after.reply, "second");
        rig_close(&rig);
}

static void who_slept_past_a_deadline_still_finds_the_answer(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        rig_start(&rig, server.url);
        server_ok(&server, "SET a:1 there");
        call_init(&call, "GET a:1");
        call.command.deadline_ms = 50;
        redis_send(rig.redis, &call.command);
        (void)uv_run(&rig.loop, UV_RUN_NOWAIT);
        /* The host is stopped, or busy; the server is not. */
        (void)nanosleep(&(struct timespec){ .tv_nsec = 200 * 1000000L }, NULL);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, 0);
        assert_string_equal(call.reply, "there");
        rig_close(&rig);
}

static void a_hung_server_is_left_and_found_again(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        rig_init(&rig, server.url);
        rig.open.options.deadline_ms = 300;
        assert_int_equal(rig_open(&rig), 0);
        assert_int_equal(kill(server.pid, SIGSTOP), 0);
        assert_int_equal(call_do(&rig, &call, "PING"), -ETIMEDOUT);
        assert_int_equal(call_do(&rig, &call, "PING"), -EHOSTUNREACH); /* not even sent */
        assert_int_equal(kill(server.pid, SIGCONT), 0);
        RUN_UNTIL(&rig, call_do(&rig, &call, "PING") == 0);
        rig_close(&rig);
}

static void a_killed_connection_is_said_and_made_again(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        rig_start(&rig, server.url);
        for (int i = 0; i < 5; i++) {
                server_ok(&server, "CLIENT PAUSE 60000 WRITE");
                call_send(&rig, &call, "INCR n");
                for (int turn = 0; turn < 3; turn++)
                        (void)uv_run(&rig.loop, UV_RUN_ONCE);
                server_ok(&server, "CLIENT KILL TYPE normal");
                server_ok(&server, "CLIENT UNPAUSE");
                RUN_UNTIL(&rig, call.is_done);
                assert_int_equal(call.status, -ECONNRESET);
                assert_int_equal(call_do(&rig, &call, "PING"), 0);
        }
        assert_int_equal(rig.downs, 5);
        rig_close(&rig);
}

static void a_server_that_is_gone_is_waited_for(void **state)
{
        struct rig rig;
        struct call call, waiting;
        (void)state;
        rig_start(&rig, server.url);
        server_kill(&server);
        RUN_UNTIL(&rig, rig.downs == 1);
        call_init(&call, "PING");
        call.command.deadline_ms = 200;
        redis_send(rig.redis, &call.command);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, -ECONNREFUSED);
        assert_contains(call.error, "127.0.0.1");
        int ups = rig.ups, looks = rig.looks;
        call_send(&rig, &waiting, "ECHO hello");
        server_restart(&server);
        RUN_UNTIL(&rig, waiting.is_done);
        assert_int_equal(waiting.status, 0);
        assert_string_equal(waiting.reply, "hello");
        assert_int_equal(rig.downs, 1); /* said once */
        assert_int_equal(rig.ups, ups + 1);
        RUN_UNTIL(&rig, rig.looks > looks);
        rig_close(&rig);
}

/* --- scripts ------------------------------------------------------------------------------------------------------ */

static const char text[] = "redis.call('SET', KEYS[1], ARGV[1]) return ARGV[1] .. '!'";

static void script_start(struct rig *rig, struct redis_script *script, struct redis_script **list)
{
        *script = (struct redis_script){ .name = "shout", .text = text, .size = sizeof(text) - 1 };
        *list = script;
        rig_init(rig, server.url);
        rig->open.options.scripts = list;
        rig->open.options.scripts_count = 1;
        assert_int_equal(rig_open(rig), 0);
}

static void script_do(struct rig *rig, struct redis_script *script, struct call *call)
{
        call_init(call, "EVALSHA - 1 k:1 hello");
        call->command.script = script;
        redis_send(rig->redis, &call->command);
}

static void a_script_is_there_even_after_a_flush(void **state)
{
        struct redis_script script, *list[1];
        struct call calls[10];
        struct rig rig;
        (void)state;
        script_start(&rig, &script, list);
        for (int round = 0; round < 2; round++) {
                for (size_t i = 0; i < COUNT(calls); i++)
                        script_do(&rig, &script, &calls[i]);
                RUN_UNTIL(&rig, calls[9].is_done);
                for (size_t i = 0; i < COUNT(calls); i++) {
                        assert_int_equal(calls[i].status, 0);
                        assert_string_equal(calls[i].reply, "hello!");
                }
                server_ok(&server, "SCRIPT FLUSH");
        }
        rig_close(&rig);
}

static void a_script_that_does_not_compile_is_refused_by_name(void **state)
{
        struct redis_script script = { .name = "broken", .text = "return (", .size = 8 };
        struct redis_script *list[] = { &script };
        struct rig rig;
        (void)state;
        rig_init(&rig, server.url);
        rig.open.options.scripts = list;
        rig.open.options.scripts_count = 1;
        assert_int_equal(rig_open(&rig), -EPROTO);
        assert_contains(rig.open.error.text, "script broken");
        rig_close(&rig);
}

/* Lua's own text names a line of a script that nobody sees. */
static void an_error_inside_a_script_names_script_and_key(void **state)
{
        static const char plus[] = "return redis.call('GET', KEYS[1]) + 1";
        struct redis_script script = { .name = "plus", .text = plus, .size = sizeof(plus) - 1 };
        struct redis_script *list[] = { &script };
        struct call call;
        struct rig rig;
        (void)state;
        rig_init(&rig, server.url);
        rig.open.options.scripts = list;
        rig.open.options.scripts_count = 1;
        assert_int_equal(rig_open(&rig), 0);
        server_ok(&server, "SET letters abc");
        call_init(&call, "EVALSHA - 1 letters");
        call.command.script = &script;
        call.command.route = SPAN_TEXT("letters");
        redis_send(rig.redis, &call.command);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, -EREMOTEIO);
        assert_contains(call.error, "the script \"plus\" failed on letters: ");
        assert_contains(call.error, "quiver fsck");
        assert_contains(call.error, "attempt to perform arithmetic");
        rig_close(&rig);
}

/* --- what servers refuse ------------------------------------------------------------------------------------------ */

static void each_refusal_has_its_number(void **state)
{
        static const struct {
                const char *command;
                int status;
        } cases[] = {
                { "INCR list", -EPROTO },
                { "NOSUCHCOMMAND", -EPROTO },
                { "SET k", -EPROTO },
                { "SET k v GARBAGE", -EPROTO },
                { "EVAL return{err='MINE'} 0", -EREMOTEIO },
                { "EVAL return{err='--READONLY--'} 0", -EROFS },
                { "INCRBY k abc", -EREMOTEIO },
                { "GET list", -EPROTO },
        };
        struct rig rig;
        struct call call;
        (void)state;
        rig_start(&rig, server.url);
        server_ok(&server, "RPUSH list 1");
        for (size_t i = 0; i < COUNT(cases); i++) {
                if (call_do(&rig, &call, "%s", cases[i].command) != cases[i].status)
                        fail_msg("%s: %d %s", cases[i].command, call.status, call.error);
                assert_true(call.error[0]);
                assert_string_equal(call.error, call.reply); /* the error reply is there, too */
        }
        server_ok(&server, "CONFIG SET maxmemory 1");
        assert_int_equal(call_do(&rig, &call, "SET k:1 v"), -ENOSPC);
        server_ok(&server, "CONFIG SET maxmemory 0");
        assert_int_equal(call_do(&rig, &call, "SET k:1 v"), 0);
        server_ok(&server, "CONFIG SET min-replicas-to-write 1");
        assert_int_equal(call_do(&rig, &call, "SET k:1 v"), -EIO);
        server_ok(&server, "CONFIG SET min-replicas-to-write 0");
        rig_close(&rig);
}

static void a_master_that_became_a_replica_is_left(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        rig_start(&rig, server.url);
        /* REPLICAOF alone does not cut connections. */
        server_ok(&server, "REPLICAOF 127.0.0.1 1");
        assert_int_equal(call_do(&rig, &call, "SET k:1 v"), -EROFS);
        RUN_UNTIL(&rig, rig.downs == 1);
        call_init(&call, "SET k:1 v");
        call.command.deadline_ms = 300;
        redis_send(rig.redis, &call.command);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, -EHOSTUNREACH);
        assert_contains(call.error, "replica");
        server_ok(&server, "REPLICAOF NO ONE");
        assert_int_equal(call_do(&rig, &call, "SET k:1 v"), 0);
        rig_close(&rig);
}

static void a_busy_server_is_waited_for(void **state)
{
        struct rig rig;
        struct call hog, call, late;
        struct rig other;
        (void)state;
        rig_start(&rig, server.url);
        rig_start(&other, server.url);
        server_ok(&server, "CONFIG SET busy-reply-threshold 50");
        call_init(&hog, "EVAL while(true)do(nil)end 0");
        hog.argv[1] = "while true do end";
        hog.argv_size[1] = strlen(hog.argv[1]);
        redis_send(other.redis, &hog.command);
        (void)uv_run(&other.loop, UV_RUN_NOWAIT);
        call_init(&late, "SET k:1 v");
        late.command.deadline_ms = 500;
        redis_send(rig.redis, &late.command);
        RUN_UNTIL(&rig, late.is_done);
        assert_int_equal(late.status, -EBUSY);
        assert_contains(late.error, "BUSY");
        call_send(&rig, &call, "SET k:1 v");
        server_ok(&server, "SCRIPT KILL");
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, 0);
        RUN_UNTIL(&other, hog.is_done);
        server_ok(&server, "CONFIG SET busy-reply-threshold 5000");
        rig_close(&other);
        rig_close(&rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_slots_are_those_of_redis),
                cmocka_unit_test_setup(answers_come_in_the_order_of_the_commands, flush),
                cmocka_unit_test_setup(the_commands_of_one_turn_are_one_write, flush),
                cmocka_unit_test_setup(a_large_value_goes_there_and_back, flush),
                cmocka_unit_test_setup(a_unix_socket_and_a_database_are_as_good, flush),
                cmocka_unit_test(a_name_is_resolved_and_the_connection_has_one),
                cmocka_unit_test(no_descriptor_is_inherited),
                cmocka_unit_test_setup(what_is_not_answered_in_time_may_have_happened, flush),
                cmocka_unit_test_setup(who_slept_past_a_deadline_still_finds_the_answer, flush),
                cmocka_unit_test(a_hung_server_is_left_and_found_again),
                cmocka_unit_test_setup(a_killed_connection_is_said_and_made_again, flush),
                cmocka_unit_test(a_server_that_is_gone_is_waited_for),
                cmocka_unit_test_setup(a_script_is_there_even_after_a_flush, flush),
                cmocka_unit_test(a_script_that_does_not_compile_is_refused_by_name),
                cmocka_unit_test(an_error_inside_a_script_names_script_and_key),
                cmocka_unit_test_setup(each_refusal_has_its_number, flush),
                cmocka_unit_test_setup(a_master_that_became_a_replica_is_left, flush),
                cmocka_unit_test_setup(a_busy_server_is_waited_for, flush),
        };
        return cmocka_run_group_tests(tests, start, stop);
}
