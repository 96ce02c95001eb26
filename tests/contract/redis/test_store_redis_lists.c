/* On Redis claimed tasks stay in their lists.  What the driver knows of them must be what the store has, whatever
 * happens to the calls in which they speak of it, and whatever others do to the lists. */
#include "harness.h"

const struct contract_driver *driver = &redis_contract;

#define SHARD  "quiver:{test:0}:shard"
#define NORMAL "quiver:{test:0}:normal"
#define FLIGHT "quiver:{test:0}:flight"

static void expect(struct world *w, const char *command, const char *expected)
{
        assert_string_equal(redis_place_do(w, command).data, expected);
}

static void submit_many(struct world *w, unsigned from, unsigned to)
{
        for (unsigned i = from; i < to; i++)
                (void)submit(w, F(w, "k%u", i).data, F(w, "%u", i).data);
}

static void claimed_tasks_stay_in_their_list(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, 0, 6);
        struct store_advance a = claim(w, &o, 4);
        expect_tasks(w, a, "0 1 2 3");
        expect(w, "LLEN " NORMAL, "6");
        expect(w, "EXISTS " FLIGHT, "0");
        expect(w, "HGET " SHARD " claimed", "0 4 0");
        struct store_outcome first[] = { done(&a.tasks[0]), done(&a.tasks[1]) };
        expect_tasks(w, advance(w, &o, first, 2, 1), "4");
        expect(w, "LLEN " NORMAL, "4");
        expect(w, "HGET " SHARD " claimed", "0 3 0");
        (void)settle(w, &o, done(&a.tasks[3]));
        expect(w, "LLEN " NORMAL, "4");
        (void)settle(w, &o, done(&a.tasks[2]));
        expect(w, "LLEN " NORMAL, "2");
        expect(w, "HGET " SHARD " claimed", "0 1 0");
        expect(w, "EXISTS " FLIGHT, "0");
        /* What is out of the ordinary has them in the in-flight hash. */
        assert_int_equal(key_act(w, CONTROL_HOLD, "k9"), 0);
        (void)claim(w, &o, 0);
        expect(w, "HLEN " FLIGHT, "1");
        expect(w, "LLEN " NORMAL, "1");
        expect_sound(w);
}

/* The script is sent once more, as text, when the list has been read: before the trim, so that its places were others.
 */
static void a_list_that_was_read_before_the_script_is_read_again(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, 0, 9);
        struct store_advance a = claim(w, &o, 3);
        struct store_outcome all[] = { done(&a.tasks[0]), done(&a.tasks[1]), done(&a.tasks[2]) };
        redis_place_forget_scripts();
        a = advance(w, &o, all, 3, 3);
        expect_tasks(w, a, "3 4 5");
        expect(w, "LLEN " NORMAL, "6");
        assert_int_equal(a.tasks[0].seq & 0xffff, 4);
        expect_tasks(w, claim(w, &o, 9), "6 7 8");
        expect_sound(w);
}

static enum store_verdict say(struct world *w, const struct owner *o, struct store_outcome outcome)
{
        return advance_call(w, o, o->call + 1, &outcome, 1, 0).verdict;
}

static void a_fenced_owner_trims_nothing(void **state)
{
        struct world *w = *state;
        struct owner old = own(w, 0, 1, 1);
        submit_many(w, 0, 5);
        struct store_advance a = claim(w, &old, 3);
        struct owner next = own(w, 0, 2, 1);
        struct store_advance b = claim(w, &next, 1);
        expect(w, "HGET " SHARD " claimed", "0 1 0");
        assert_int_equal(say(w, &old, done(&b.tasks[0])), STORE_FENCED);
        assert_int_equal(say(w, &old, done(&a.tasks[0])), STORE_FENCED);
        expect(w, "LLEN " NORMAL, "2");
        expect(w, "HGET " SHARD " claimed", "0 1 0");
        assert_int_equal(counts(w, 0).in_flight, 4);
        assert_int_equal(settle(w, &next, done(&b.tasks[0])).gone, 0);
        assert_int_equal(settle(w, &next, done(&a.tasks[0])).gone, 0);
        assert_int_equal(counts(w, 0).in_flight, 2);
}

/* A call that was lost after it was done: it says what is done, again, and is given the same tasks. */
static void a_lost_answer_costs_nothing(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, 0, 9);
        struct store_advance a = claim(w, &o, 3);
        struct store_outcome some[] = { done(&a.tasks[0]), done(&a.tasks[2]) };
        assert_int_equal(advance_call(w, &o, o.call + 1, some, 2, 3).tasks_count, 3);
        expect_tasks(w, advance_call(w, &o, o.call + 1, some, 2, 3), "3 4 5");
        o.call++;
        assert_int_equal(counts(w, 0).done, 2);
        assert_int_equal(counts(w, 0).in_flight, 4);
        a = claim(w, &o, 9);
        expect_tasks(w, a, "6 7 8");
        assert_int_equal(settle(w, &o, done(&a.tasks[1])).gone, 0);
        expect_sound(w);
}

/* Somebody has moved what is in flight out of the lists, as fsck --repair does where a lease has run out. */
static void say_otherwise(struct world *w, struct owner o)
{
        submit_many(w, 0, 5);
        struct store_advance a = claim(w, &o, 3);
        expect(w, "HSET " SHARD " claimed 0~2~0", "0");
        expect(w, "HSET " SHARD " normal 2", "0");
        struct store_advance b = advance(w, &o, &(struct store_outcome){ .task = ref(&a.tasks[1]) }, 1, 9);
        assert_int_equal(b.verdict, STORE_OK);
        assert_int_equal(b.gone, 0);
        expect_tasks(w, b, "2 3 4");
        expect_sound(w);
}

static void what_the_store_has_otherwise_is_said_anew(void **state)
{
        say_otherwise(*state, own(*state, 0, 1, 1));
}

/* A shard that has had tasks of another lane calls alone for a while. */
static void what_the_store_has_otherwise_is_said_anew_alone(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit_lane(w, "k", "x", LANE_HIGH);
        struct store_advance a = claim(w, &o, 1);
        (void)settle(w, &o, done(&a.tasks[0]));
        say_otherwise(w, o);
}

/* A list that somebody has put an element before, or emptied: the owner loses the shard instead of trimming others. */
static void places_that_others_have_changed_are_not_trimmed(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, 0, 4);
        struct store_advance a = claim(w, &o, 3);
        (void)settle(w, &o, done(&a.tasks[1]));
        expect(w, "LPUSH " NORMAL " before", "5");
        assert_int_equal(say(w, &o, hold(&a.tasks[0])), STORE_FENCED);
        expect(w, "LLEN " NORMAL, "5");
        struct owner next = own(w, 0, 2, 1);
        assert_int_equal(next.granted.page.tasks_count, 2); /* what was put before is malformed, and dead */
        assert_int_equal(counts(w, 0).in_flight + counts(w, 0).queued[LANE_NORMAL], 4);
        assert_int_equal(counts(w, 0).dead, 1);
        expect_sound(w);
}

static void a_list_that_was_emptied_is_worked_on(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, 0, 4);
        struct store_advance a = claim(w, &o, 3);
        expect(w, "DEL " NORMAL, "1");
        submit_many(w, 4, 6);
        assert_int_equal(say(w, &o, done(&a.tasks[0])), STORE_FENCED);
        struct owner next = own(w, 0, 2, 1);
        assert_int_equal(next.granted.page.tasks_count, 0);
        expect_tasks(w, claim(w, &next, 9), "4 5");
        expect_sound(w);
}

/* What cannot be read stops the shard, says so, and is mended. */
static void a_field_that_nobody_wrote_is_named_and_mended(void **state)
{
        struct world *w = *state;
        const char *const texts[] = { "nonsense", "1:2:3", "0~9~0", "0~1:fff:1.1~0", "-1" };
        for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                struct owner o = own(w, 0, i + 1, 1);
                submit_many(w, 0, 2);
                (void)claim(w, &o, 1);
                (void)redis_place_do(w, F(w, "HSET " SHARD " claimed %s", texts[i]).data);
                assert_int_equal(release(w, &o), STORE_OK);
                struct owner next = owner_of(0, 50 + i, 2);
                assert_int_equal(acquire(w, &next), -EPROTO);
                assert_int_equal(repair(w, 0), 0);
                expect_sound(w);
                struct owner again = own(w, 0, 100 + i, 2);
                struct store_advance a = claim(w, &again, 9);
                assert_int_equal(a.tasks_count, 2);
                for (uint32_t j = 0; j < a.tasks_count; j++)
                        (void)settle(w, &again, done(&a.tasks[j]));
                assert_int_equal(release(w, &again), STORE_OK);
                (void)redis_place_do(w, "HSET " SHARD " lease free");
                (void)redis_place_do(w, "HDEL " SHARD " lease");
        }
}

/* One task that takes long does not keep those behind it in the list for ever. */
static void a_straggler_leaves_the_list(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_outcome outcomes[64];
        uint32_t count = 0;
        (void)submit(w, "long", "long");
        (void)claim(w, &o, 1);
        for (unsigned round = 0; round < 45; round++) {
                submit_many(w, round * 50, round * 50 + 50);
                struct store_advance a = advance(w, &o, outcomes, count, 50);
                for (count = 0; count < a.tasks_count; count++)
                        outcomes[count] = done(&a.tasks[count]);
        }
        (void)advance(w, &o, outcomes, count, 0);
        assert_in_range(atoi(redis_place_do(w, "LLEN " NORMAL).data), 0, 300);
        assert_int_equal(counts(w, 0).in_flight, 1);
        expect_sound(w);
}

/* A producer's RPUSH rings after every call, also after one that claimed, trimmed and read the list. */
static void every_push_rings(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_outcome last = { 0 };
        for (unsigned round = 0; round < 4; round++) {
                unsigned before = w->rang;
                driver->push(w->place, 0, LANE_NORMAL, T("qv1\nkey:k\nhandler:h\n\nx"));
                world_wait(w, &w->rang, before + 1);
                struct store_advance a = advance(w, &o, &last, round ? 1 : 0, 8);
                assert_int_equal(a.tasks_count, 1);
                assert_int_equal(a.gone, 0);
                last = done(&a.tasks[0]);
        }
        expect(w, "EXISTS " FLIGHT, "0");
}

/* An owner that calls again soon is not rung for; the call that follows finds what came, and is rung for. */
static void who_calls_again_is_not_rung_for(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1), b = owner_of(0, 2, 2);
        unsigned before = w->rang;
        assert_int_equal(advance_unrung(w, &o, NULL, 0, 8).tasks_count, 0);
        driver->push(w->place, 0, LANE_NORMAL, T("qv1\nkey:k\nhandler:h\n\nx"));
        world_wait(w, &w->rang, before + 1); /* the list was read when the shard was acquired */
        driver->push(w->place, 0, LANE_NORMAL, T("qv1\nkey:j\nhandler:h\n\ny"));
        struct store_advance a = advance_unrung(w, &o, NULL, 0, 8);
        assert_int_equal(a.tasks_count, 2);
        struct store_outcome last = done(&a.tasks[0]);
        /* Lists that were read before, and that no call has written to, ring. */
        driver->push(w->place, 0, LANE_HIGH, T("qv1\nkey:i\nhandler:h\n\nz"));
        world_wait(w, &w->rang, before + 2);
        a = advance_unrung(w, &o, &last, 1, 8);
        assert_int_equal(a.tasks_count, 1);
        assert_int_equal(a.gone, 0);
        driver->push(w->place, 0, LANE_NORMAL, T("qv1\nkey:k\nhandler:h\n\nx"));
        assert_int_equal(claim(w, &o, 8).tasks_count, 1);
        assert_int_equal(w->rang, before + 2);
        driver->push(w->place, 0, LANE_NORMAL, T("qv1\nkey:k\nhandler:h\n\nx"));
        world_wait(w, &w->rang, before + 3);
        assert_int_equal(acquire(w, &b), 0);
        world_wait(w, &w->rang, before + 4);
        expect_sound(w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(claimed_tasks_stay_in_their_list),
                IN_WORLD(a_list_that_was_read_before_the_script_is_read_again),
                IN_WORLD(a_fenced_owner_trims_nothing),
                IN_WORLD(a_lost_answer_costs_nothing),
                IN_WORLD(what_the_store_has_otherwise_is_said_anew),
                IN_WORLD(what_the_store_has_otherwise_is_said_anew_alone),
                IN_WORLD(places_that_others_have_changed_are_not_trimmed),
                IN_WORLD(a_list_that_was_emptied_is_worked_on),
                IN_WORLD(a_field_that_nobody_wrote_is_named_and_mended),
                IN_WORLD(a_straggler_leaves_the_list),
                IN_WORLD(every_push_rings),
                IN_WORLD(who_calls_again_is_not_rung_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
