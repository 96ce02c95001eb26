/* Whose turn it is to call the store: few calls at a time, everybody in turn, those first where all stands still. */
#include "schedule_hall.h"

#include "host/shard/shard_io.h"

#define BLOCKED_ROOM 2 /* as in call_schedule.c */

static void all_are_acquired_at_once(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        own_all(hall);
        hall_close(hall);
}

static void only_a_few_call_at_a_time_and_each_gets_its_turn(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        bool has_called[SHARDS] = { false };
        struct hall *hall = hall_open();
        own_all(hall);
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        for (uint32_t sum = 0; sum < SHARDS;) {
                uint32_t count = turn(hall, shards);
                assert_true(count > 0 && count <= CALLS_MAX);
                assert_int_equal(turn(hall, shards + count), 0);
                for (uint32_t i = 0; i < count; i++) {
                        assert_true(!has_called[shards[i]] || sum + i >= SHARDS); /* the round begins anew */
                        has_called[shards[i]] = true;
                        reply_advance(&hall->rigs[shards[i]], STORE_OK);
                        /* Those that have had their turn want the next one at once. */
                        shard_rang(&hall->rigs[shards[i]].shard);
                }
                sum += count;
        }
        hall_close(hall);
}

/* So many calls are made at once by shards that all want one, of which the first `costly` had a costly call last. */
static uint32_t calls_at_once(struct hall *hall, uint32_t calls_max, uint32_t costly)
{
        uint32_t shards[SHARDS];
        hall->schedule.calls_max = SHARDS * 8; /* the last calls of all shards */
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        assert_int_equal(turn(hall, shards), SHARDS);
        for (uint32_t i = 0; i < SHARDS; i++) {
                hall->rigs[i].advance.is_costly = i < costly;
                reply_advance(&hall->rigs[i], STORE_OK);
                shard_rang(&hall->rigs[i].shard);
        }
        hall->schedule.calls_max = calls_max;
        hall->schedule.next_waiting = 0;
        uint32_t made = turn(hall, shards);
        answer_all(hall, shards, made);
        return made;
}

/* A store answers producers only after the calls that it has read: with many costly ones they would wait long. */
static void few_costly_calls_are_made_at_a_time(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        own_all(hall);
        assert_int_equal(calls_at_once(hall, 16, 0), 16);
        assert_int_equal(calls_at_once(hall, 16, SHARDS), 2);
        assert_int_equal(calls_at_once(hall, 16, 1), 16 - 7);
        assert_int_equal(calls_at_once(hall, CALLS_MAX, SHARDS), 1); /* never none */
        hall_close(hall);
}

static void a_costly_call_without_an_answer_holds_nobody_up(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        shard_rang(&hall->rigs[0].shard);
        assert_int_equal(turn(hall, shards), 1);
        reply_advance(&hall->rigs[0], STORE_OK); /* the store is near */
        hall->rigs[0].shard.is_costly = true;
        shard_rang(&hall->rigs[0].shard);
        assert_int_equal(turn(hall, shards), 1);
        for (uint32_t i = 1; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        assert_int_equal(turn(hall, shards), 0);
        set_time(hall, hall->now_ms + 100);
        assert_int_equal(turn(hall, shards), CALLS_MAX);
        hall_close(hall);
}

static void a_call_without_an_answer_holds_nobody_up(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        bool has_called[SHARDS] = { false };
        struct hall *hall = hall_open();
        own_all(hall);
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        for (uint32_t sum = 0; sum < SHARDS;) {
                uint32_t count = turn(hall, shards);
                assert_true(count > 0);
                for (uint32_t i = 0; i < count; i++) {
                        assert_false(has_called[shards[i]]);
                        has_called[shards[i]] = true;
                }
                sum += count;
                uint64_t due_ms = call_schedule_due_ms(&hall->schedule);
                assert_true(sum == SHARDS || (due_ms > hall->now_ms && due_ms <= hall->now_ms + 100));
                set_time(hall, due_ms);
        }
        hall_close(hall);
}

static void more_call_at_a_time_where_the_store_is_far(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        uint32_t count = turn(hall, shards);
        assert_int_equal(count, CALLS_MAX);
        set_time(hall, hall->now_ms + 4);
        for (uint32_t i = 0; i < count; i++)
                reply_advance(&hall->rigs[shards[i]], STORE_OK);
        assert_int_equal(turn(hall, shards), 3 * CALLS_MAX);
        hall_close(hall);
}

/* What wakes a runner before the answer to a claim is there. */
static void an_idle_host_whose_store_is_near_expects_a_task(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        struct rig *g = &hall->rigs[3];
        shard_rang(&g->shard);
        assert_int_equal(turn(hall, shards), 1);
        assert_false(call_schedule_expects_task(&hall->schedule)); /* how far the store is has yet to be seen */
        hand(g, 1, "k", "a");
        reply_advance(g, STORE_OK);
        shard_rang(&hall->rigs[4].shard);
        assert_int_equal(turn(hall, shards), 1);
        assert_false(call_schedule_expects_task(&hall->schedule)); /* one is claimed */
        reply_advance(&hall->rigs[4], STORE_OK);
        end_as(g, start(g, 1), STORE_DONE);
        set_time(hall, hall->now_ms + 100);
        assert_int_equal(turn(hall, shards), 1);
        reply_advance(g, STORE_OK);
        shard_rang(&hall->rigs[5].shard);
        assert_int_equal(turn(hall, shards), 1);
        assert_true(call_schedule_expects_task(&hall->schedule));
        reply_advance(&hall->rigs[5], STORE_OK);
        assert_int_equal(turn(hall, shards), 0);
        assert_false(call_schedule_expects_task(&hall->schedule));
        hall_close(hall);
}

/* In shard `i` a task has ended that another of its key waits for. */
static void let_stand(struct hall *hall, uint32_t i)
{
        struct rig *g = &hall->rigs[i];
        hand(g, 1, "k", "a");
        hand(g, 2, "k", "a");
        send_advance(g);
        reply_advance(g, STORE_OK);
        end_as(g, start(g, 1), STORE_DONE);
        assert_true(shard_is_blocked(&g->shard));
}

static void a_shard_where_all_stands_still_goes_first(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        let_stand(hall, SHARDS - 1);
        shard_rang(&hall->rigs[SHARDS - 1].shard);
        assert_int_equal(turn(hall, shards), CALLS_MAX);
        assert_int_equal(shards[0], SHARDS - 1);
        hall_close(hall);
}

static void those_that_stand_still_leave_turns_to_others(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        shard_rang(&hall->rigs[0].shard);
        for (uint32_t i = 1; i < SHARDS; i++) {
                shard_rang(&hall->rigs[i].shard);
                let_stand(hall, i);
        }
        assert_int_equal(turn(hall, shards), CALLS_MAX + BLOCKED_ROOM);
        assert_int_equal(shards[CALLS_MAX - 1], 0);
        hall_close(hall);
}

/* Others have all the calls that may be under way: a shard that stands still until it has called does not wait for
 * them. */
static void one_that_stands_still_finds_room_beside_others(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        for (uint32_t i = 0; i < SHARDS - 1; i++)
                shard_rang(&hall->rigs[i].shard);
        assert_int_equal(turn(hall, shards), CALLS_MAX);
        shard_rang(&hall->rigs[SHARDS - 1].shard);
        let_stand(hall, SHARDS - 1);
        assert_int_equal(turn(hall, shards), 1);
        assert_int_equal(shards[0], SHARDS - 1);
        hall_close(hall);
}

static void give_two_a_task(struct hall *hall)
{
        for (uint32_t i = 0; i < 2; i++) {
                struct rig *g = &hall->rigs[i];
                shard_rang(&g->shard);
                hand(g, 1, "k", "a");
                send_advance(g);
                reply_advance(g, STORE_OK);
        }
}

static void what_gathers_is_told_when_nothing_runs_any_more(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        give_two_a_task(hall);
        struct claimed *ended = start(&hall->rigs[0], 1);
        struct claimed *runs = start(&hall->rigs[1], 1);
        assert_int_equal(turn(hall, shards), 0);
        end_as(&hall->rigs[0], ended, STORE_DONE);
        assert_int_equal(turn(hall, shards), 0);
        assert_int_equal(call_schedule_due_ms(&hall->schedule), hall->now_ms + hall->rigs[0].limits.gather_ms);
        end_as(&hall->rigs[1], runs, STORE_DONE);
        assert_int_equal(turn(hall, shards), 2);
        hall_close(hall);
}

static void what_gathers_is_told_when_its_time_has_come(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        give_two_a_task(hall);
        struct claimed *ended = start(&hall->rigs[0], 1);
        (void)start(&hall->rigs[1], 1);
        end_as(&hall->rigs[0], ended, STORE_DONE);
        assert_int_equal(turn(hall, shards), 0);
        set_time(hall, call_schedule_due_ms(&hall->schedule));
        assert_int_equal(turn(hall, shards), 1);
        assert_int_equal(shards[0], 0);
        assert_int_equal(call_schedule_due_ms(&hall->schedule), STORE_NEVER);
        hall_close(hall);
}

static uint32_t count_spare(const struct hall *hall)
{
        uint32_t count = 0;
        for (const struct shard_telling *t = hall->schedule.spare; t; t = t->next)
                count++;
        return count;
}

/* DESIGN: a shard in the host's memory, idle, takes 4 KB at most; that is it, its share of three tables, and its
 * window's lines for ten handlers. */
static void an_idle_shard_is_small(void **state)
{
        (void)state;
        size_t tables = sizeof(struct shard *) * 2 + sizeof(uint64_t) + sizeof(struct dispatch_shard) +
                        sizeof(struct store_renewal) + sizeof(struct lease_slot);
        size_t lines = 10 * WINDOW_LINES * sizeof(struct window_line);
        assert_true(sizeof(struct shard_io) + tables + lines <= 4096);
}

static void what_calls_say_takes_memory_only_while_they_are_under_way(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        own_all(hall);
        for (uint32_t i = 0; i < SHARDS; i++) {
                hand(&hall->rigs[i], 1, "k", "a");
                hand(&hall->rigs[i], 2, "k", "a");
                claim(&hall->rigs[i]);
        }
        for (uint32_t i = 0; i < SHARDS; i++)
                assert_null(hall->rigs[i].shard.telling); /* a call that only claims says nothing */
        (void)turn(hall, shards);
        for (uint64_t seq = 1; seq <= 2; seq++) {
                for (uint32_t i = 0; i < SHARDS; i++)
                        run(&hall->rigs[i], seq);
                for (uint32_t count, sum = 0; sum < SHARDS; sum += count) {
                        count = turn(hall, shards);
                        assert_true(count > 0 && count <= CALLS_MAX);
                        for (uint32_t i = 0; i < count; i++) {
                                assert_non_null(hall->rigs[shards[i]].shard.telling);
                                reply_advance(&hall->rigs[shards[i]], STORE_OK);
                                assert_null(hall->rigs[shards[i]].shard.telling);
                        }
                        assert_true(count_spare(hall) <= CALLS_MAX);
                }
        }
        assert_int_equal(count_spare(hall), CALLS_MAX);
        shard_tellings_free(&hall->schedule.spare);
        assert_int_equal(count_spare(hall), 0);
        hall_close(hall);
}

/* Half of all that may be under way. */
#define GROUP (CALLS_MAX / 2)

static void few_calls_are_made_together_and_the_next_follow_without_an_answer(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        hall->schedule.calls_group = GROUP;
        own_all(hall);
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        assert_int_equal(turn(hall, shards), GROUP);
        assert_int_equal(call_schedule_due_ms(&hall->schedule), hall->now_ms + 1);
        assert_int_equal(turn(hall, shards), GROUP);
        assert_int_equal(turn(hall, shards), 0); /* CALLS_MAX are under way */
        hall_close(hall);
}

static void with_many_tasks_claimed_all_calls_are_made_together(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        struct hall *hall = hall_open();
        hall->schedule.calls_group = GROUP;
        own_all(hall);
        hall->rigs[1].shard.window.count = 5000;
        shard_stir(&hall->rigs[1].shard);
        call_schedule_look(&hall->schedule, hall->now_ms);
        for (uint32_t i = 2; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        assert_int_equal(turn(hall, shards), CALLS_MAX);
        for (uint32_t i = 0; i < CALLS_MAX; i++)
                reply_advance(&hall->rigs[shards[i]], STORE_OK);
        hall->rigs[1].shard.window.count = 0; /* they have been done */
        shard_stir(&hall->rigs[1].shard);
        assert_int_equal(turn(hall, shards), GROUP);
        hall_close(hall);
}

/* Its tasks wait for each other, so it is blocked at every call. */
static void beside_a_hot_shard_all_calls_are_made_together(void **state)
{
        (void)state;
        uint32_t shards[SHARDS];
        const uint32_t hot = SHARDS - 1;
        struct hall *hall = hall_open();
        hall->schedule.calls_group = GROUP;
        own_all(hall);
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        let_stand(hall, hot);
        assert_int_equal(turn(hall, shards), GROUP);
        assert_int_equal(shards[0], hot);
        for (uint32_t i = 0; i < GROUP; i++)
                reply_advance(&hall->rigs[shards[i]], STORE_OK);
        shard_rang(&hall->rigs[hot].shard);
        hand(&hall->rigs[hot], 3, "k", "a");
        send_advance(&hall->rigs[hot]);
        reply_advance(&hall->rigs[hot], STORE_OK);
        end_as(&hall->rigs[hot], start(&hall->rigs[hot], 2), STORE_DONE);
        assert_int_equal(turn(hall, shards), CALLS_MAX);
        assert_int_equal(shards[0], hot);
        for (uint32_t i = 0; i < CALLS_MAX; i++)
                reply_advance(&hall->rigs[shards[i]], STORE_OK);
        set_time(hall, hall->now_ms + 1000); /* it has been quiet for long */
        assert_int_equal(turn(hall, shards), GROUP);
        hall_close(hall);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_are_acquired_at_once),
                cmocka_unit_test(only_a_few_call_at_a_time_and_each_gets_its_turn),
                cmocka_unit_test(a_call_without_an_answer_holds_nobody_up),
                cmocka_unit_test(few_costly_calls_are_made_at_a_time),
                cmocka_unit_test(a_costly_call_without_an_answer_holds_nobody_up),
                cmocka_unit_test(more_call_at_a_time_where_the_store_is_far),
                cmocka_unit_test(an_idle_host_whose_store_is_near_expects_a_task),
                cmocka_unit_test(a_shard_where_all_stands_still_goes_first),
                cmocka_unit_test(those_that_stand_still_leave_turns_to_others),
                cmocka_unit_test(one_that_stands_still_finds_room_beside_others),
                cmocka_unit_test(what_gathers_is_told_when_nothing_runs_any_more),
                cmocka_unit_test(what_gathers_is_told_when_its_time_has_come),
                cmocka_unit_test(an_idle_shard_is_small),
                cmocka_unit_test(what_calls_say_takes_memory_only_while_they_are_under_way),
                cmocka_unit_test(few_calls_are_made_together_and_the_next_follow_without_an_answer),
                cmocka_unit_test(with_many_tasks_claimed_all_calls_are_made_together),
                cmocka_unit_test(beside_a_hot_shard_all_calls_are_made_together),
        };
        return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
