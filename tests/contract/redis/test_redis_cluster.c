/* Cluster: every key finds its server, also while slots move and masters die. */
#include <errno.h>
#include <signal.h>

#include "redis_rig.h"

static struct redis_cluster cluster;

static int start(void **state)
{
        (void)state;
        redis_cluster_start(&cluster);
        return 0;
}

static int stop(void **state)
{
        (void)state;
        redis_cluster_free(&cluster);
        return 0;
}

static int flush(void **state)
{
        (void)state;
        for (int i = 0; i < CLUSTER_MASTERS; i++)
                server_ok(&cluster.nodes[i], "FLUSHALL");
        return 0;
}

/* A tag whose slot is in the third `third` (0 … 2), the nth of its kind. */
static void make_tag(char *tag, size_t size, int third, int nth)
{
        for (int i = 0;; i++) {
                (void)snprintf(tag, size, "{app:%d}", i);
                if (redis_slot(tag, strlen(tag)) * 3 / 16384 == third && nth-- == 0)
                        return;
        }
}

static bool are_done(const struct call *calls, size_t count)
{
        while (count && calls[count - 1].is_done)
                count--;
        return count == 0;
}

static void each_key_goes_to_its_server(void **state)
{
        struct redis_facts facts;
        struct rig rig;
        struct call calls[60];
        (void)state;
        rig_start(&rig, cluster.url);
        for (size_t i = 0; i < COUNT(calls); i++)
                call_send(&rig, &calls[i], "SET {app:%zu}:log %zu", i, i);
        RUN_UNTIL(&rig, are_done(calls, COUNT(calls)));
        for (size_t i = 0; i < COUNT(calls); i++)
                assert_int_equal(calls[i].status, 0);
        for (int i = 0; i < CLUSTER_MASTERS; i++) {
                redisReply *reply = server_do(&cluster.nodes[i], "DBSIZE");
                assert_true(reply->integer > 5);
                freeReplyObject(reply);
        }
        struct call any;
        assert_int_equal(call_do(&rig, &any, "PING"), 0); /* no key: any server */
        redis_facts(rig.redis, &facts);
        assert_string_equal(facts.mode, "cluster");
        rig_close(&rig);
}

static void one_of_several_seeds_is_enough(void **state)
{
        struct rig rig;
        struct call call;
        char url[128];
        (void)state;
        /* One that is not there, and a replica: it knows the map, too. */
        (void)snprintf(
                url, sizeof(url), "redis+cluster://127.0.0.1:%u,127.0.0.1:%u", free_port(), cluster.nodes[3].port);
        rig_start(&rig, url);
        assert_int_equal(call_do(&rig, &call, "SET {a}:1 v"), 0);
        rig_close(&rig);
}

static void a_server_that_is_in_no_cluster_is_said(void **state)
{
        struct redis_server single;
        struct rig rig;
        char url[64];
        (void)state;
        server_start(&single, NULL);
        (void)snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%u", single.port);
        rig_init(&rig, url);
        rig.open.options.deadline_ms = 300;
        assert_int_equal(rig_open(&rig), -EHOSTUNREACH);
        assert_contains(rig.open.error.text, "no slot map");
        rig_close(&rig);
        server_free(&single);
}

static void a_url_of_another_kind_is_refused_with_the_right_one(void **state)
{
        struct rig rig;
        (void)state;
        rig_init(&rig, cluster.nodes[0].url);
        assert_int_equal(rig_open(&rig), -EINVAL);
        assert_contains(rig.open.error.text, "redis+cluster://");
        rig_close(&rig);
}

static void scripts_are_on_every_server(void **state)
{
        static const char text[] = "return redis.call('INCR', KEYS[1])";
        struct redis_script script = { .name = "incr", .text = text, .size = sizeof(text) - 1 };
        struct redis_script *list[] = { &script };
        struct rig rig;
        (void)state;
        rig_init(&rig, cluster.url);
        rig.open.options.scripts = list;
        rig.open.options.scripts_count = 1;
        assert_int_equal(rig_open(&rig), 0);
        for (int round = 0; round < 2; round++) {
                for (int i = 0; i < CLUSTER_MASTERS; i++) {
                        struct call call;
                        char tag[32], line[64];
                        make_tag(tag, sizeof(tag), i, 0);
                        (void)snprintf(line, sizeof(line), "EVALSHA - 1 %s:n", tag);
                        call_init(&call, line);
                        call.command.script = &script;
                        redis_send(rig.redis, &call.command);
                        RUN_UNTIL(&rig, call.is_done);
                        assert_int_equal(call.status, 0);
                        assert_int_equal(atoi(call.reply), round + 1);
                        server_ok(&cluster.nodes[i], "SCRIPT FLUSH");
                }
        }
        rig_close(&rig);
}

static void the_bell_of_every_server_rings(void **state)
{
        struct rig rig;
        (void)state;
        rig_start(&rig, cluster.url);
        for (int i = 0; i < CLUSTER_MASTERS; i++) {
                struct call call;
                char tag[32];
                make_tag(tag, sizeof(tag), i, 1);
                assert_int_equal(call_do(&rig, &call, "LLEN %s:log", tag), 0);
                server_ok(&cluster.nodes[i], "RPUSH %s:log x", tag);
                RUN_UNTIL(&rig, rig.rings == i + 1);
                assert_contains(rig.rung_key, tag);
        }
        rig_close(&rig);
}

static void count_up(struct rig *rig, const char *tag, int key, int *expected)
{
        struct call call;
        if (call_do(rig, &call, "INCR %s:%d", tag, key))
                fail_msg("INCR %s:%d: %d %s", tag, key, call.status, call.error);
        assert_int_equal(atoi(call.reply), ++expected[key]);
}

static void a_slot_moves_and_no_command_notices(void **state)
{
        enum { KEYS = 10 };
        int expected[KEYS * 2] = { 0 };
        struct rig rig;
        char tag[32];
        (void)state;
        make_tag(tag, sizeof(tag), 0, 2);
        uint16_t slot = redis_slot(tag, strlen(tag));
        rig_start(&rig, cluster.url);
        for (int key = 0; key < KEYS; key++)
                count_up(&rig, tag, key, expected);
        redis_cluster_mark(&cluster, slot, 0, 1);
        /* Half of the keys are there, half are here; new ones are made on the other side. */
        redis_cluster_move_keys(&cluster, slot, 0, 1, KEYS / 2);
        for (int key = 0; key < KEYS * 2; key++)
                count_up(&rig, tag, key, expected);
        int looks = rig.looks;
        redis_cluster_move_keys(&cluster, slot, 0, 1, KEYS);
        redis_cluster_hand_over(&cluster, slot, 1);
        for (int key = 0; key < KEYS * 2; key++)
                count_up(&rig, tag, key, expected);
        assert_true(rig.looks > looks); /* MOVED: rings may have been lost */
        redis_cluster_mark(&cluster, slot, 1, 0);
        redis_cluster_move_keys(&cluster, slot, 1, 0, KEYS * 3);
        redis_cluster_hand_over(&cluster, slot, 0);
        for (int key = 0; key < KEYS * 2; key++)
                count_up(&rig, tag, key, expected);
        assert_int_equal(rig.downs, 0);
        rig_close(&rig);
}

static void keys_on_both_sides_are_tried_again(void **state)
{
        struct rig rig;
        struct call call, late;
        char tag[32];
        (void)state;
        make_tag(tag, sizeof(tag), 0, 3);
        uint16_t slot = redis_slot(tag, strlen(tag));
        rig_start(&rig, cluster.url);
        assert_int_equal(call_do(&rig, &call, "MSET %s:1 a %s:2 b", tag, tag), 0);
        redis_cluster_mark(&cluster, slot, 0, 1);
        redis_cluster_move_keys(&cluster, slot, 0, 1, 1);
        call_send(&rig, &call, "MGET %s:1 %s:2", tag, tag);
        char line[96];
        (void)snprintf(line, sizeof(line), "MGET %s:1 %s:2", tag, tag);
        call_init(&late, line);
        late.command.deadline_ms = 200;
        redis_send(rig.redis, &late.command);
        RUN_UNTIL(&rig, late.is_done);
        assert_int_equal(late.status, -EBUSY);
        assert_contains(late.error, "TRYAGAIN");
        assert_false(call.is_done);
        redis_cluster_move_keys(&cluster, slot, 0, 1, 10);
        redis_cluster_hand_over(&cluster, slot, 1);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, 0);
        assert_string_equal(call.reply, "(array of 2)");
        redis_cluster_mark(&cluster, slot, 1, 0);
        redis_cluster_move_keys(&cluster, slot, 1, 0, 10);
        redis_cluster_hand_over(&cluster, slot, 0);
        rig_close(&rig);
}

static void a_slot_that_nobody_serves_is_waited_for(void **state)
{
        struct rig rig;
        struct call call, late;
        char tag[32], line[64];
        (void)state;
        make_tag(tag, sizeof(tag), 1, 6);
        uint16_t slot = redis_slot(tag, strlen(tag));
        rig_start(&rig, cluster.url);
        for (int i = 0; i < CLUSTER_NODES; i++)
                server_ok(&cluster.nodes[i], "CLUSTER DELSLOTS %d", slot);
        (void)snprintf(line, sizeof(line), "SET %s:k v", tag);
        call_init(&late, line);
        late.command.deadline_ms = 300;
        redis_send(rig.redis, &late.command);
        call_send(&rig, &call, "SET %s:k v", tag);
        RUN_UNTIL(&rig, late.is_done);
        assert_int_equal(late.status, -EBUSY);
        assert_contains(late.error, "CLUSTERDOWN");
        assert_false(call.is_done);
        server_ok(&cluster.nodes[1], "CLUSTER ADDSLOTS %d", slot);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, 0);
        rig_close(&rig);
}

static void keys_of_several_slots_are_an_error_of_ours(void **state)
{
        struct rig rig;
        struct call call;
        (void)state;
        rig_start(&rig, cluster.url);
        assert_int_equal(call_do(&rig, &call, "MGET {a}:1 {b}:1"), -EPROTO);
        rig_close(&rig);
}

static void a_blocking_command_finds_its_server(void **state)
{
        struct rig rig;
        struct call blocking, call;
        char tag[32], line[64];
        (void)state;
        make_tag(tag, sizeof(tag), 2, 4);
        rig_start(&rig, cluster.url);
        (void)snprintf(line, sizeof(line), "BLPOP %s:list 0", tag);
        call_init(&blocking, line);
        blocking.command.is_blocking = true;
        redis_send(rig.redis, &blocking.command);
        assert_int_equal(call_do(&rig, &call, "RPUSH %s:list x", tag), 0);
        RUN_UNTIL(&rig, blocking.is_done);
        assert_int_equal(blocking.status, 0);
        rig_close(&rig);
}

static bool is_taken_over(void *self)
{
        char role[16];
        server_info(self, "role", role, sizeof(role));
        return !strcmp(role, "master");
}

/* A hung master accepts connections and bytes, and answers nothing.  The third master is no longer one after it. */
static void what_a_hung_master_owes_is_given_up_when_its_replica_has_taken_over(void **state)
{
        struct rig rig;
        struct call call, other;
        char tag[32], line[64];
        (void)state;
        make_tag(tag, sizeof(tag), 2, 7);
        (void)snprintf(line, sizeof(line), "SET %s:k v", tag);
        rig_init(&rig, cluster.url);
        rig.open.options.deadline_ms = 60000; /* further away than the patience of this test */
        assert_int_equal(rig_open(&rig), 0);
        assert_int_equal(kill(cluster.nodes[2].pid, SIGSTOP), 0);
        call_init(&call, line);
        redis_send(rig.redis, &call.command);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, -ECONNRESET);
        assert_true(wait_until(is_taken_over, &cluster.nodes[5]));
        assert_int_equal(call_do(&rig, &other, "SET %s:k after", tag), 0);
        redisReply *reply = server_do(&cluster.nodes[5], "GET %s:k", tag);
        assert_string_equal(reply->str, "after");
        freeReplyObject(reply);
        assert_int_equal(kill(cluster.nodes[2].pid, SIGCONT), 0);
        rig_close(&rig);
}

/* The last one: the first master is dead after it. */
static void a_dead_master_is_replaced_by_its_replica(void **state)
{
        struct rig rig;
        struct call call;
        char tag[32], other[32];
        (void)state;
        make_tag(tag, sizeof(tag), 0, 5);
        make_tag(other, sizeof(other), 1, 5);
        rig_init(&rig, cluster.url);
        rig.open.options.deadline_ms = 19000;
        assert_int_equal(rig_open(&rig), 0);
        assert_int_equal(call_do(&rig, &call, "SET %s:k v", tag), 0);
        server_kill(&cluster.nodes[0]);
        assert_int_equal(call_do(&rig, &call, "SET %s:k v", other), 0); /* the others go on */
        int looks = rig.looks;
        int status = call_do(&rig, &call, "SET %s:k after", tag);
        if (status == -ECONNRESET) /* it went out before the loss was seen */
                status = call_do(&rig, &call, "SET %s:k after", tag);
        assert_int_equal(status, 0);
        redisReply *reply = server_do(&cluster.nodes[3], "GET %s:k", tag);
        assert_string_equal(reply->str, "after");
        freeReplyObject(reply);
        RUN_UNTIL(&rig, rig.looks > looks);
        rig_close(&rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(each_key_goes_to_its_server, flush),
                cmocka_unit_test(one_of_several_seeds_is_enough),
                cmocka_unit_test(a_server_that_is_in_no_cluster_is_said),
                cmocka_unit_test(a_url_of_another_kind_is_refused_with_the_right_one),
                cmocka_unit_test_setup(scripts_are_on_every_server, flush),
                cmocka_unit_test_setup(the_bell_of_every_server_rings, flush),
                cmocka_unit_test_setup(a_slot_moves_and_no_command_notices, flush),
                cmocka_unit_test_setup(keys_on_both_sides_are_tried_again, flush),
                cmocka_unit_test_setup(a_slot_that_nobody_serves_is_waited_for, flush),
                cmocka_unit_test(keys_of_several_slots_are_an_error_of_ours),
                cmocka_unit_test_setup(a_blocking_command_finds_its_server, flush),
                cmocka_unit_test_setup(what_a_hung_master_owes_is_given_up_when_its_replica_has_taken_over, flush),
                cmocka_unit_test_setup(a_dead_master_is_replaced_by_its_replica, NULL),
        };
        return cmocka_run_group_tests(tests, start, stop);
}
