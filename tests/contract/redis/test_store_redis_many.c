/* On Redis the advances of one turn of the loop are one script, in the common case.  Each shard must get what it would
 * have got alone, whatever is wrong with the others, and everything that comes afterwards must ring. */
#include <pthread.h>
#include <unistd.h>

#include "harness.h"

const struct contract_driver *driver = &redis_contract;

#define OWNERS 4u
#define TASK   "qv1\nkey:%s\nhandler:h\nid:%s\n\n%s"

struct turn {
        struct owner owners[OWNERS];
        struct store_advance calls[OWNERS];
        unsigned answered;
        char got[OWNERS][32]; /* payload of each call's first task */
        struct store_outcome last[OWNERS];
        unsigned last_count[OWNERS];
};

static struct turn turn;

static void on_answer(struct store_request *request)
{
        const struct store_advance *a = (const struct store_advance *)request;
        size_t i = (size_t)(a - turn.calls);
        turn.got[i][0] = 0;
        turn.last_count[i] = 0;
        if (!request->status && a->verdict == STORE_OK && a->tasks_count) {
                struct span payload = a->tasks[0].envelope.payload;
                (void)snprintf(turn.got[i], sizeof(turn.got[i]), "%.*s", (int)payload.size, payload.data);
                turn.last[i] = done(&a->tasks[0]);
                turn.last_count[i] = 1;
        }
        turn.answered++;
}

/* One advance of every shard, all in one turn; each says that the task it got last is done. */
static void advance_all(struct world *w)
{
        turn.answered = 0;
        for (uint32_t i = 0; i < OWNERS; i++) {
                struct owner *o = &turn.owners[i];
                turn.calls[i] = (struct store_advance){ .request.done = on_answer,
                        .lease = o->lease,
                        .call = ++o->call,
                        .outcomes = &turn.last[i],
                        .outcomes_count = turn.last_count[i],
                        .want = { 8, 8, 8 } };
                store_advance(w->store, &turn.calls[i]);
        }
        store_flush(w->store);
        world_wait(w, &turn.answered, OWNERS);
}

/* All shards are owned, and have had a call: only then the driver knows that they are common. */
static void own_all(struct world *w)
{
        turn = (struct turn){ 0 };
        for (uint32_t i = 0; i < OWNERS; i++)
                turn.owners[i] = own(w, i, 1, 1);
        advance_all(w);
}

static void push_to(struct world *w, uint32_t shard, unsigned number)
{
        char text[256];
        (void)snprintf(text, sizeof(text), TASK, key_of(w, shard, number).data, F(w, "t%u-%u", number, shard).data,
                F(w, "%u.%u", shard, number).data);
        driver->push(w->place, shard, LANE_NORMAL, T(text));
}

static void push_all(struct world *w, unsigned number)
{
        for (uint32_t i = 0; i < OWNERS; i++)
                push_to(w, i, number);
}

static void expect_got(unsigned shard, const char *payload)
{
        assert_int_equal(turn.calls[shard].request.status, 0);
        assert_int_equal(turn.calls[shard].verdict, STORE_OK);
        assert_string_equal(turn.got[shard], payload);
}

static void a_turn_is_one_script(void **state)
{
        struct world *w = *state;
        own_all(w);
        for (unsigned round = 1; round < 4; round++) {
                push_all(w, round);
                unsigned long before = redis_place_scripts_run();
                advance_all(w);
                assert_int_equal(redis_place_scripts_run(), before + 1);
                for (unsigned i = 0; i < OWNERS; i++)
                        expect_got(i, F(w, "%u.%u", i, round).data);
        }
        advance_all(w);
        for (unsigned i = 0; i < OWNERS; i++) {
                assert_int_equal(counts(w, i).done, 3);
                assert_int_equal(counts(w, i).in_flight, 0);
        }
}

/* As long as a key of the shard waits, its calls go the long way. */
static void calls_of_a_shard_with_a_retry_are_said_to_be_costly(void **state)
{
        struct world *w = *state;
        own_all(w);
        push_all(w, 1);
        advance_all(w);
        for (unsigned i = 0; i < OWNERS; i++)
                assert_false(turn.calls[i].is_costly);
        turn.last[1] = (struct store_outcome){ .kind = STORE_RETRY,
                .task = { .seq = turn.last[1].task.seq, .id = T("t1-1"), .key = key_of(w, 1, 1), .handler = T("h") },
                .cost = COST_ATTEMPT,
                .error = T("not now"),
                .delay_ms = 100 };
        for (unsigned round = 2; round < 4; round++) {
                push_all(w, round);
                advance_all(w);
                for (unsigned i = 0; i < OWNERS; i++)
                        assert_int_equal(turn.calls[i].is_costly, i == 1);
        }
}

/* Shard 1 is `broken` by a command, and mended by another: the others do not notice, and nothing of it is lost. */
static void break_one(struct world *w, const char *broken, const char *mended, int status, enum store_verdict verdict)
{
        own_all(w);
        push_all(w, 1);
        advance_all(w);
        push_all(w, 2);
        (void)redis_place_do(w, broken);
        advance_all(w);
        for (unsigned i = 0; i < OWNERS; i++)
                if (i != 1)
                        expect_got(i, F(w, "%u.2", i).data);
        assert_int_equal(turn.calls[1].request.status, status);
        if (!status)
                assert_int_equal(turn.calls[1].verdict, verdict);
        (void)redis_place_do(w, mended);
        assert_int_equal(counts(w, 1).in_flight + counts(w, 1).queued[LANE_NORMAL] + counts(w, 1).done, 2);
}

static void a_shard_whose_number_is_none_stops_no_other(void **state)
{
        break_one(*state, "HSET quiver:{test:1}:shard normal x", "HSET quiver:{test:1}:shard normal 1", -EPROTO, 0);
}

static void a_shard_whose_count_is_none_stops_no_other(void **state)
{
        break_one(*state, "HSET quiver:{test:1}:shard done -7", "HSET quiver:{test:1}:shard done 0", -EPROTO, 0);
}

static void a_shard_whose_record_is_gone_stops_no_other(void **state)
{
        break_one(*state, "RENAME quiver:{test:1}:shard away", "RENAME away quiver:{test:1}:shard", 0, STORE_FENCED);
}

static void a_shard_whose_list_is_none_stops_no_other(void **state)
{
        struct world *w = *state;
        own_all(w);
        (void)redis_place_do(w, "SET quiver:{test:1}:normal text");
        for (unsigned i = 0; i < OWNERS; i++)
                if (i != 1)
                        push_to(w, i, 1);
        advance_all(w);
        assert_int_equal(turn.calls[1].request.status, -EPROTO);
        for (unsigned i = 0; i < OWNERS; i++)
                if (i != 1)
                        expect_got(i, F(w, "%u.1", i).data);
        (void)redis_place_do(w, "DEL quiver:{test:1}:normal");
}

static void a_shard_whose_list_was_shortened_stops_no_other(void **state)
{
        break_one(*state, "RENAME quiver:{test:1}:normal away", "RENAME away quiver:{test:1}:normal", 0, STORE_FENCED);
}

static void a_shard_of_another_owner_is_fenced_alone(void **state)
{
        break_one(*state, "HSET quiver:{test:1}:shard lease held~2~00000000000000000000000000000002",
                "HSET quiver:{test:1}:shard call 2", 0, STORE_FENCED);
}

/* A repeat of a call that was done, and a call from the past: neither is done as a new one. */
static void call_numbers_are_looked_at(void **state)
{
        struct world *w = *state;
        own_all(w);
        push_all(w, 1);
        advance_all(w);
        turn.owners[1].call--;
        turn.owners[2].call -= 2;
        for (unsigned i = 0; i < OWNERS; i++)
                turn.last_count[i] = 0;
        push_all(w, 2);
        advance_all(w);
        expect_got(0, "0.2");
        expect_got(1, "1.1");
        assert_int_equal(turn.calls[2].verdict, STORE_FENCED);
        assert_int_equal(counts(w, 1).in_flight, 1);
        assert_int_equal(counts(w, 1).queued[LANE_NORMAL], 1);
}

/* Whatever can make work for an owner rings after a turn. */
static void everything_rings_after_a_turn(void **state)
{
        struct world *w = *state;
        static const char *const commands[] = { "RPUSH quiver:{test:2}:high x", "RPUSH quiver:{test:2}:normal x",
                "RPUSH quiver:{test:2}:low x", "ZADD quiver:{test:2}:delayed 1 x", "RPUSH quiver:{test:2}:control x",
                "HSET quiver:{test:2}:shard want x" };
        static const char *const removed[] = { "DEL quiver:{test:2}:high", "RPOP quiver:{test:2}:normal",
                "DEL quiver:{test:2}:low", "DEL quiver:{test:2}:delayed", "DEL quiver:{test:2}:control",
                "HDEL quiver:{test:2}:shard want" };
        for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
                own_all(w);
                push_all(w, 1);
                /* What has rung once does not ring again, unless the turn reads it. */
                unsigned before = w->rang;
                (void)redis_place_do(w, commands[i]);
                world_wait(w, &w->rang, before + 1);
                (void)redis_place_do(w, removed[i]);
                advance_all(w);
                expect_got(2, "2.1");
                before = w->rang;
                (void)redis_place_do(w, commands[i]);
                world_wait(w, &w->rang, before + 1);
                assert_int_equal(w->rang_shard, 2);
                (void)redis_place_do(w, "DEL quiver:{test:2}:high quiver:{test:2}:normal quiver:{test:2}:low "
                                        "quiver:{test:2}:delayed quiver:{test:2}:control quiver:{test:2}:shard");
                for (unsigned shard = 0; shard < OWNERS; shard++)
                        if (shard != 2)
                                (void)redis_place_do(w,
                                        F(w, "DEL quiver:{test:%u}:shard quiver:{test:%u}:normal", shard, shard).data);
                (void)redis_place_do(w, "HSET quiver:{test:2}:shard high 0 normal 0 low 0 call 0 done 0");
                world_reopen(w);
        }
}

/* --- between the script and the reads behind it ------------------------------------------------------------------- */

#define PUSHES 150u

static unsigned claimed_count; /* by the owner, as the pusher sees it */

/* Two tasks at a time, some moments after those before were claimed: the first while the owner says that they are done,
 * the second often while the first is claimed. */
static void *push_on(void *self)
{
        struct world *w = self;
        unsigned seed = 1;
        for (unsigned i = 0; i < PUSHES; i++) {
                char text[128];
                (void)snprintf(text, sizeof(text), "qv1\nkey:k%u\nhandler:h\nid:p%u-0\n\n%u", i, i, i);
                while (i % 2 == 0 && __atomic_load_n(&claimed_count, __ATOMIC_ACQUIRE) < i)
                        (void)usleep(100);
                (void)usleep((useconds_t)(rand_r(&seed) % 4000));
                driver->push(w->place, 0, LANE_NORMAL, T(text));
        }
        return NULL;
}

static int setup_split(void **state)
{
        redis_place_split(64);
        return world_setup(state);
}

static int teardown_split(void **state)
{
        int r = world_teardown(state);
        redis_place_split(0);
        return r;
}

static void no_push_is_missed(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_outcome outcome;
        pthread_t thread;
        uint32_t count = 0;
        bool has_more = false;
        assert_int_equal(claim(w, &o, 8).tasks_count, 0);
        unsigned rang = w->rang;
        claimed_count = 0;
        (void)pthread_create(&thread, NULL, push_on, w);
        while (claimed_count < PUSHES) {
                /* Between the two it waits, as if the first took long. */
                if (!has_more && (!count || claimed_count % 2))
                        world_wait(w, &w->rang, rang + 1);
                rang = w->rang;
                struct store_advance a = advance(w, &o, &outcome, count, 1);
                assert_int_equal(a.verdict, STORE_OK);
                count = a.tasks_count;
                if (count)
                        outcome = done(&a.tasks[0]);
                has_more = a.has_more[LANE_NORMAL];
                __atomic_add_fetch(&claimed_count, count, __ATOMIC_RELEASE);
        }
        (void)pthread_join(thread, NULL);
        (void)advance(w, &o, &outcome, count, 0);
        assert_int_equal(counts(w, 0).done, PUSHES);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD_4(a_turn_is_one_script),
                IN_WORLD_4(calls_of_a_shard_with_a_retry_are_said_to_be_costly),
                IN_WORLD_4(a_shard_whose_number_is_none_stops_no_other),
                IN_WORLD_4(a_shard_whose_count_is_none_stops_no_other),
                IN_WORLD_4(a_shard_whose_record_is_gone_stops_no_other),
                IN_WORLD_4(a_shard_whose_list_is_none_stops_no_other),
                IN_WORLD_4(a_shard_whose_list_was_shortened_stops_no_other),
                IN_WORLD_4(a_shard_of_another_owner_is_fenced_alone),
                IN_WORLD_4(call_numbers_are_looked_at),
                IN_WORLD_4(everything_rings_after_a_turn),
                cmocka_unit_test_setup_teardown(no_push_is_missed, setup_split, teardown_split),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
