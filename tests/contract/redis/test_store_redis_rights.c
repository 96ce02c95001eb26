/* What each role of quiver check --acl can do on a real server, with the rules exactly as they are printed, and what it
 * cannot: whatever is not what the role is for.  (All other suites of the store on Redis run as a host's user.) */
#include "harness.h"

const struct contract_driver *driver = &redis_contract;

#define BACKLOG 10u

/* Opens the store again as a user with that role, who is told nothing of the role. */
static int open_as(struct world *w, enum store_role role, struct error *error)
{
        redis_place_add_user("somebody", role);
        world_close(w);
        w->is_client = true;
        (void)redis_place_denials();
        return world_open(
                w, (struct store_options){ .user = "somebody", .password = "secret", .backlog_max = BACKLOG }, error);
}

/* As a host, which loads the scripts. */
static void own_again(struct world *w)
{
        world_close(w);
        w->is_client = false;
        struct error error = { "" };
        if (world_open(w, (struct store_options){ .is_host = true }, &error))
                fail_msg("%s", error.text);
}

static int setup(void **state)
{
        int r = world_setup(state);
        if (!r)
                own_again(*state);
        return r;
}

/* The suite looks, at the end, whether the store is sound. */
static int teardown(void **state)
{
        own_again(*state);
        return world_teardown(state);
}

static struct store_submission item_of(const char *key)
{
        return (struct store_submission){ .envelope = { .key = T(key), .handler = T("h"), .payload = T("p") } };
}

static struct store_submit submit_one(struct world *w, struct store_submission *item)
{
        return submit_call(w, item, 1);
}

static void a_producer_opens_submits_and_reads_its_reply(void **state)
{
        struct world *w = *state;
        assert_int_equal(open_as(w, STORE_PRODUCER, NULL), 0);
        assert_int_equal(redis_place_denials(), 0); /* nothing was asked for that it may not have */
        struct span id = submit_reply(w, "k", "p");
        own_again(w);
        struct owner o = own(w, 0, 1, 'a');
        struct store_advance a = claim(w, &o, 1);
        assert_int_equal(a.tasks_count, 1);
        struct store_outcome outcome = done(&a.tasks[0]);
        outcome.result = T("result");
        outcome.has_result = true;
        (void)settle(w, &o, outcome);
        assert_int_equal(open_as(w, STORE_PRODUCER, NULL), 0);
        struct store_reply r = reply(w, id, 0);
        assert_int_equal(r.state, REPLY_DONE);
        assert_int_equal(r.data.size, 6);
        assert_int_equal(redis_place_denials(), 0);
}

static void a_producer_waits_without_a_doorbell(void **state)
{
        struct world *w = *state;
        assert_int_equal(open_as(w, STORE_PRODUCER, NULL), 0);
        struct span id = submit_reply(w, "k", "p");
        assert_int_equal(reply(w, id, 50).state, REPLY_PENDING);
}

static void what_needs_the_script_is_refused_by_name(void **state)
{
        struct world *w = *state;
        assert_int_equal(open_as(w, STORE_PRODUCER, NULL), 0);
        struct store_submission items[4] = { item_of("k"), item_of("k"), item_of("k"), item_of("k") };
        items[1].delay_ms = 1000;
        items[2].envelope.unique_ms = 1000;
        struct store_submit s = submit_call(w, items, 4);
        assert_int_equal(s.request.status, 0); /* some of it is stored */
        assert_int_equal(s.refused, 2);
        assert_int_equal(items[0].status, 0);
        assert_int_equal(items[1].status, -EPERM);
        assert_int_equal(items[2].status, -EPERM);
        assert_int_equal(items[3].status, 0);
        assert_non_null(strstr(s.request.error.text, "a delay"));
        assert_non_null(strstr(s.request.error.text, "quiver check --acl"));
        assert_int_equal(redis_place_denials(), 1);
        /* It was told once, and does not ask again. */
        struct store_submission one = item_of("k");
        one.idempotency = T("name");
        s = submit_one(w, &one);
        assert_int_equal(s.request.status, -EPERM);
        assert_non_null(
                strstr(s.request.error.text, "\"somebody\" lacks the right to EVALSHA of the script \"submit\""));
        assert_int_equal(redis_place_denials(), 0);
        own_again(w);
        assert_int_equal(counts(w, 0).queued[LANE_HIGH], 2);
}

static void a_producer_keeps_to_the_limit_as_far_as_it_sees(void **state)
{
        struct world *w = *state;
        assert_int_equal(open_as(w, STORE_PRODUCER, NULL), 0);
        struct store_submission items[BACKLOG + 3];
        for (unsigned i = 0; i < BACKLOG + 3; i++) {
                items[i] = item_of("k");
                items[i].envelope.lane = (enum lane)(i % LANES);
        }
        struct store_submit s = submit_call(w, items, BACKLOG + 3);
        assert_int_equal(s.refused, 3);
        for (unsigned i = 0; i < BACKLOG + 3; i++)
                assert_int_equal(items[i].status, i < BACKLOG ? 0 : -EDQUOT);
        struct store_submission one = item_of("k");
        s = submit_one(w, &one);
        assert_int_equal(one.status, -EDQUOT);
        own_again(w);
        struct owner o = own(w, 0, 1, 'a');
        struct store_advance a = claim(w, &o, 4);
        assert_true(a.tasks_count >= 4);
        for (uint32_t i = 0; i < a.tasks_count; i++)
                (void)settle(w, &o, done(&a.tasks[i]));
        assert_int_equal(open_as(w, STORE_PRODUCER, NULL), 0);
        s = submit_one(w, &one);
        assert_int_equal(one.status, 0);
}

static void everything_else_is_refused_by_name_too(void **state)
{
        static const enum store_role roles[] = { STORE_PRODUCER, STORE_PRODUCER_PLUS };
        struct world *w = *state;
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(open_as(w, roles[i], NULL), 0);
                struct owner o = owner_of(0, 1, 'a');
                struct store_acquire acquire = { .lease = o.lease, .page_tasks = 1 };
                assert_int_equal(call_acquire(w, &acquire), -EPERM);
                assert_non_null(strstr(acquire.request.error.text, "lacks the right to EVAL"));
                assert_non_null(strstr(acquire.request.error.text, "\"acquire\""));
                assert_non_null(strstr(acquire.request.error.text, "quiver check --acl"));
        }
}

static void a_producer_plus_submits_with_every_option(void **state)
{
        struct world *w = *state;
        assert_int_equal(open_as(w, STORE_PRODUCER_PLUS, NULL), 0);
        struct store_submission items[6] = { item_of("k"), item_of("k"), item_of("k"), item_of("k"), item_of("k"),
                item_of("k") };
        items[1].delay_ms = 1000;
        items[2].envelope.unique_ms = 1000;
        items[3].envelope.unique_ms = 1000; /* there is one */
        items[4].idempotency = T("name");
        items[5].idempotency = T("name"); /* a repeat */
        struct store_submit s = submit_call(w, items, 6);
        assert_int_equal(s.request.status, 0);
        assert_int_equal(items[3].status, -EEXIST);
        assert_int_equal(s.refused, 1);
        assert_int_equal(redis_place_denials(), 0);
        own_again(w);
        assert_int_equal(counts(w, 0).queued[LANE_HIGH], 3);
        assert_int_equal(counts(w, 0).delayed, 1);
        assert_int_equal(open_as(w, STORE_PRODUCER_PLUS, NULL), 0);
        struct store_submission more[BACKLOG];
        for (unsigned i = 0; i < BACKLOG; i++)
                more[i] = item_of("k");
        s = submit_call(w, more, BACKLOG);
        assert_int_equal(s.refused, 4); /* it counts all that waits: delayed ones, too */
        assert_int_equal(redis_place_denials(), 0);
}

static void a_producer_plus_needs_a_host_that_has_loaded_the_script(void **state)
{
        struct world *w = *state;
        assert_int_equal(open_as(w, STORE_PRODUCER_PLUS, NULL), 0);
        redis_place_forget_scripts();
        struct store_submission one = item_of("k");
        one.delay_ms = 1000;
        struct store_submit s = submit_one(w, &one);
        assert_int_equal(s.request.status, -EPERM);
        assert_non_null(strstr(s.request.error.text, "a host loads it"));
        own_again(w);
        assert_int_equal(open_as(w, STORE_PRODUCER_PLUS, NULL), 0);
        s = submit_one(w, &one);
        assert_int_equal(s.request.status, 0);
}

/* A host whose server forgot its scripts loads all of them, not only those that it needs itself. */
static void a_host_loads_scripts_again_for_those_who_may_not(void **state)
{
        struct world *w = *state;
        own_again(w);
        redis_place_forget_scripts();
        struct owner o = own(w, 0, 1, 'a');
        assert_int_equal(renew(w, &o).verdict, STORE_OK);
        assert_int_equal(open_as(w, STORE_PRODUCER_PLUS, NULL), 0);
        struct store_submission one = item_of("k");
        one.delay_ms = 1000;
        assert_int_equal(submit_one(w, &one).request.status, 0);
}

/* What open refuses may also come later. */
static void a_policy_that_throws_tasks_away_is_noticed_while_it_runs(void **state)
{
        struct world *w = *state;
        struct store_info info;
        struct owner o = own(w, 0, 1, 'a');
        (void)renew(w, &o);
        store_info(w->store, &info);
        assert_string_equal(info.endangers, "");
        redis_place_set_policy("allkeys-lru");
        (void)renew(w, &o);
        assert_non_null(strstr(info.endangers, "allkeys-lru"));
        assert_non_null(strstr(info.endangers, "noeviction"));
        redis_place_set_policy("noeviction");
        (void)renew(w, &o);
        assert_string_equal(info.endangers, "");
        assert_int_equal(redis_place_denials(), 0);
}

/* --- beyond what a role is for ----------------------------------------------------------------------------------- */

/* Whom it concerns: h host, o operator, p producer, + producer+. */
static const struct {
        const char *who, *command;
} denied[] = {
        { "hop+", "FLUSHALL" },
        { "hop+", "FLUSHDB" },
        { "hop+", "CONFIG GET requirepass" },
        { "hop+", "CONFIG SET dir /tmp" },
        { "hop+", "SCRIPT FLUSH" },
        { "hop+", "SCRIPT KILL" },
        { "hop+", "FUNCTION LOAD x" },
        { "hop+", "KEYS *" },
        { "hop+", "SCAN 0" },
        { "hop+", "RANDOMKEY" },
        { "hop+", "DBSIZE" },
        { "hop+", "DEBUG SLEEP 1" },
        { "hop+", "SHUTDOWN" },
        { "hop+", "SAVE" },
        { "hop+", "BGREWRITEAOF" },
        { "hop+", "REPLICAOF NO ONE" },
        { "hop+", "MONITOR" },
        { "hop+", "ACL LIST" },
        { "hop+", "ACL SETUSER x" },
        { "hop+", "CLIENT LIST" },
        { "hop+", "CLIENT KILL TYPE normal" },
        { "hop+", "MIGRATE 127.0.0.1 1 quiver:{test}:app 0 1" },
        { "hop+", "MODULE LIST" },
        { "hop+", "SWAPDB 0 1" },
        { "hop+", "OBJECT ENCODING quiver:{test}:app" },
        { "hop+", "DUMP quiver:{test}:app" },
        { "hop+", "RESTORE quiver:{test}:app 0 x" },
        { "hop+", "SORT quiver:{test:0}:normal" },
        { "hop+", "PUBLISH __redis__:invalidate x" },
        { "hop+", "PSUBSCRIBE *" },
        { "hop+", "SUBSCRIBE __keyspace@0__:x" },
        { "hop+", "RPUSH quiver:{other:0}:normal x" },
        { "hop+", "RPUSH quiver:{testing:0}:normal x" },
        { "hop+", "HGET quiver:{other}:app shards" },
        { "hop+", "GET other" },
        { "hop+", "EVALSHA 0 1 quiver:{other:0}:shard" },
        { "op+", "INFO" },
        { "op+", "SCRIPT LOAD x" },
        { "op+", "CLIENT TRACKING ON" },
        { "op+", "SUBSCRIBE __redis__:invalidate" },
        { "p+", "EVAL return 0" },
        { "p+", "HSET quiver:{test}:app shards 1" },
        { "p+", "DEL quiver:{test:0}:normal" },
        { "p+", "LRANGE quiver:{test:0}:normal 0 -1" },
        { "p+", "LINDEX quiver:{test:0}:normal 0" },
        { "p+", "LPOP quiver:{test:0}:normal" },
        { "p+", "LPUSH quiver:{test:0}:normal x" },
        { "p+", "RPUSH quiver:{test:0}:control x" },
        { "p+", "RPUSH quiver:{test:0}:outbox x" },
        { "p+", "RPUSH quiver:{test:0}:room:}:normal x" },
        { "p+", "RPUSH quiver:{test:x}:normal x" },
        { "p+", "HSET quiver:{test:0}:shard lease x" },
        { "p+", "HGET quiver:{test:0}:flight 1" },
        { "p+", "HGET quiver:{test:0}:dead 1" },
        { "p+", "HGET quiver:{test:0}:resultdata 1" },
        { "p+", "HGETALL quiver:{test}:desired" },
        { "p+", "HSET quiver:{test}:desired pause.x 1" },
        { "p+", "HGET quiver:{test:coord}:node:members data" },
        { "p+", "SET quiver:{test:0}:reply:x 1" },
        { "p", "EVALSHA 0 1 quiver:{test:0}:shard" },
        { "p", "HGET quiver:{test:0}:shard lease" },
        { "p", "HINCRBY quiver:{test:0}:shard call 1" },
        { "p", "ZADD quiver:{test:0}:delayed 1 x" },
        { "p", "WAIT 1 1" },
};

static void whatever_is_beyond_a_role_is_denied(void **state)
{
        static const char letters[] = "hop+";
        (void)state;
        for (unsigned role = 0; role < 4; role++) {
                redis_place_add_user("somebody", (enum store_role)role);
                for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
                        bool is_meant = strchr(denied[i].who, letters[role]);
                        if (is_meant && !redis_place_denies("somebody", denied[i].command))
                                fail_msg("'%c' may %s", letters[role], denied[i].command);
                }
                assert_false(redis_place_denies("somebody", "RPUSH quiver:{test:0}:normal x"));
                assert_false(redis_place_denies("somebody", "HGET quiver:{test}:app shards"));
        }
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                HERE(a_producer_opens_submits_and_reads_its_reply),
                HERE(a_producer_waits_without_a_doorbell),
                HERE(what_needs_the_script_is_refused_by_name),
                HERE(a_producer_keeps_to_the_limit_as_far_as_it_sees),
                HERE(everything_else_is_refused_by_name_too),
                HERE(a_producer_plus_submits_with_every_option),
                HERE(a_producer_plus_needs_a_host_that_has_loaded_the_script),
                HERE(a_host_loads_scripts_again_for_those_who_may_not),
                HERE(a_policy_that_throws_tasks_away_is_noticed_while_it_runs),
                HERE(whatever_is_beyond_a_role_is_denied),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
