/* Ordered batches: which tasks of a key run in one call, what their outcomes mean, and how one that ends processes is
 * found among them. */
#include "shard_rig.h"

#define MANY 64

static void open_wide(struct rig *g)
{
        rig_open(g);
        g->limits.window_tasks = 512;
        g->routes.per_key[0] = 2 * MANY;
        own(g);
}

/* The next task of pool 0 and those that run in its call. */
static uint32_t take_run(struct rig *g, uint32_t max, struct claimed *ret[MANY])
{
        uint32_t count = 0;
        struct claimed *c = next(g);
        if (!c)
                return 0;
        max = shard_run_max(c, max);
        do
                ret[count++] = c;
        while (count < max && (c = shard_follow(&g->shard, c, g->now_ms)));
        return count;
}

static void tell(struct rig *g)
{
        send_advance(g);
        reply_advance(g, STORE_OK);
}

static void hand_many(struct rig *g, uint64_t first, uint64_t last, const char *key)
{
        for (uint64_t seq = first; seq <= last; seq++)
                hand(g, seq, key, "a");
}

static void a_run_is_a_keys_tasks_in_order_and_commits_in_one_call(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *run[MANY];
        open_wide(&g);
        hand_many(&g, 1, 3, "k");
        hand(&g, 4, "j", "a");
        hand_many(&g, 5, 6, "k");
        claim(&g);
        assert_int_equal(take_run(&g, 4, run), 4);
        for (uint32_t i = 0; i < 4; i++) {
                static const uint64_t seqs[] = { 1, 2, 3, 5 };
                assert_int_equal(run[i]->seq, seqs[i]);
                assert_int_equal(run[i]->pool_task.is_follower, i > 0);
                assert_int_equal(run[i]->state, CLAIMED_RUNNING);
        }
        struct claimed *other = start(&g, 4);
        assert_null(next(&g)); /* 6 waits for all of them */
        for (uint32_t i = 0; i < 4; i++) {
                assert_false(shard_refuse_answer(&g.shard, run[i], g.now_ms));
                end_as(&g, run[i], STORE_DONE);
        }
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 4);
        for (uint32_t i = 0; i < 4; i++) {
                assert_int_equal(g.advance.outcomes[i].kind, STORE_DONE);
                /* Each of them would ask for as many. */
                assert_int_equal(g.advance.outcomes[i].refill, i == 3 ? 2 * MANY - 1 : 0);
                assert_true(!i || g.advance.outcomes[i].task.seq > g.advance.outcomes[i - 1].task.seq);
        }
        assert_null(next(&g));
        reply_advance(&g, STORE_OK);
        end_as(&g, start(&g, 6), STORE_DONE);
        end_as(&g, other, STORE_DONE);
        assert_int_equal(g.shard.running, 0);
        rig_close(&g);
}

/* A call may tell of a part of them: the key stays busy until the last one is told of. */
static void the_key_is_busy_until_the_last_outcome_is_durable(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *run[MANY];
        open_wide(&g);
        hand_many(&g, 1, 4, "k");
        claim(&g);
        assert_int_equal(take_run(&g, 3, run), 3);
        end_as(&g, run[0], STORE_DONE);
        tell(&g);
        assert_null(next(&g));
        shard_again(&g.shard, run[1], g.now_ms); /* it is the first now, but the one behind it is still out */
        assert_null(next(&g));
        assert_true(shard_refuse_answer(&g.shard, run[2], g.now_ms));
        assert_int_equal(take_run(&g, 8, run), 3);
        assert_int_equal(run[0]->seq, 2);
        rig_close(&g);
}

static void the_first_outcome_that_is_not_done_ends_the_run(void **state)
{
        (void)state;
        static const enum store_outcome_kind kinds[] = { STORE_RETRY, STORE_HOLD, STORE_DEAD, STORE_INTERRUPTED };
        for (size_t i = 0; i < 4; i++) {
                struct rig g;
                struct claimed *run[MANY];
                open_wide(&g);
                hand_many(&g, 1, 5, "k");
                claim(&g);
                assert_int_equal(take_run(&g, 4, run), 4);
                end_as(&g, run[0], STORE_DONE);
                end_as(&g, run[1], kinds[i]);
                assert_true(shard_refuse_answer(&g.shard, run[2], g.now_ms));
                assert_true(shard_refuse_answer(&g.shard, run[3], g.now_ms));
                send_advance(&g);
                assert_said(&g, 1, STORE_DONE);
                assert_said(&g, 2, kinds[i]);
                bool is_parked = kinds[i] == STORE_RETRY || kinds[i] == STORE_HOLD;
                /* Else those that go back would come again, before the one that waits. */
                assert_int_equal(said(&g, 1)->refill > 0, !is_parked);
                for (uint64_t seq = 3; seq <= 5; seq++) {
                        /* Not started: they go back at no cost, or wait for the next call. */
                        assert_int_equal(said(&g, seq) != NULL, is_parked);
                        if (is_parked)
                                assert_said(&g, seq, STORE_DIVERT);
                }
                reply_advance(&g, STORE_OK);
                struct claimed *c = next(&g);
                assert_int_equal(c ? c->seq : 0, is_parked ? 0 : kinds[i] == STORE_DEAD ? 3 : 2);
                rig_close(&g);
        }
}

static void an_answer_before_its_turn_does_not_count(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *run[MANY];
        open_wide(&g);
        hand_many(&g, 1, 3, "k");
        claim(&g);
        assert_int_equal(take_run(&g, 3, run), 3);
        assert_true(shard_refuse_answer(&g.shard, run[1], g.now_ms));
        assert_false(shard_refuse_answer(&g.shard, run[0], g.now_ms));
        end_as(&g, run[0], STORE_DONE);
        assert_true(shard_refuse_answer(&g.shard, run[2], g.now_ms));
        send_advance(&g);
        assert_said(&g, 1, STORE_DONE);
        assert_int_equal(g.advance.outcomes_count, 1);
        reply_advance(&g, STORE_OK);
        assert_int_equal(take_run(&g, 3, run), 2);
        assert_int_equal(run[0]->seq, 2);
        rig_close(&g);
}

/* A person cancelled it while it was with a runner, which had no right to start it. */
static void one_that_is_cancelled_and_was_not_started_ends(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *run[MANY];
        open_wide(&g);
        hand_many(&g, 1, 3, "k");
        claim(&g);
        assert_int_equal(take_run(&g, 3, run), 3);
        run[1]->pool_task.why = BLAME_CANCEL;
        shard_again(&g.shard, run[0], g.now_ms);
        assert_true(shard_refuse_answer(&g.shard, run[1], g.now_ms));
        assert_true(shard_refuse_answer(&g.shard, run[2], g.now_ms));
        send_advance(&g);
        assert_said(&g, 2, STORE_DEAD);
        assert_int_equal(g.advance.outcomes_count, 1);
        rig_close(&g);
}

/* What keeps a task from following the one before it. */
static void who_is_special_runs_in_a_call_of_its_own(void **state)
{
        (void)state;
        for (int i = 0; i < 9; i++) {
                struct rig g;
                struct claimed *run[MANY];
                open_wide(&g);
                g.limits.can_merge = true;
                hand(&g, 1, "k", "a");
                struct store_task *t = hand(&g, 2, "k", i == 1 ? "b" : "a");
                if (i == 2)
                        t->seq = (UINT64_C(1) << STORE_SEQ_LANE_SHIFT) + 1;
                t->note.crashes = i == 3;
                t->note.is_suspect = i == 4;
                if (i == 5)
                        t->note.events = SPAN_TEXT("event:1 interruption " HOST_DIED "\n");
                t->envelope.is_merge = i == 6;
                t->envelope.key = SPAN_TEXT("k");
                t->envelope.debounce_ms = i == 6 ? 1000 : 0;
                if (i == 7)
                        rig_serve(&g.routes, 1, "other");
                claim(&g);
                if (i == 7)
                        rig_serve(&g.routes, 0, "b");
                if (i == 8)
                        shard_obey(&g.shard,
                                &(struct store_control){ .verb = CONTROL_CANCEL, .key = SPAN_TEXT("k"), .seq = 2 },
                                g.now_ms);
                uint32_t count = take_run(&g, 4, run);
                assert_int_equal(count, i ? 1 : 2);
                rig_close(&g);
        }
}

/* One that has ended a process, and it alone, is not to end it for others. */
static void one_that_crashed_before_has_nobody_behind_it(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct rig g;
                struct claimed *run[MANY];
                open_wide(&g);
                hand(&g, 1, "k", "a")->note.crashes = (uint32_t)i;
                hand_many(&g, 2, 4, "k");
                claim(&g);
                assert_int_equal(take_run(&g, 4, run), i ? 1 : 4);
                rig_close(&g);
        }
}

static void so_many_of_a_key_as_its_handler_asks_for_are_claimed(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct rig g;
                open_wide(&g);
                g.routes.per_key[0] = i ? 8 : 0;
                hand_many(&g, 1, 12, "k");
                claim(&g);
                assert_int_equal(g.shard.ended_count, i ? 4 : 12 - RIG_PER_KEY); /* the rest goes back */
                rig_close(&g);
        }
}

/* The process of a run has ended: all that ran in it are suspects. */
static void crash(struct rig *g, struct claimed *const *run, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                struct pending_outcome *pending = pending_outcome_new(STORE_INTERRUPTED, COST_INTERRUPTION, "");
                pending->outcome.is_suspect = true;
                shard_ended(&g->shard, run[i], pending, g->now_ms);
        }
        tell(g);
}

/* Runs the key's tasks until the culprit ends a process alone; how many ended. */
static uint32_t find_culprit(struct rig *g, uint64_t culprit, uint64_t *ret_done)
{
        struct claimed *run[MANY];
        uint32_t crashes = 0;
        for (;;) {
                uint32_t count = take_run(g, MANY, run);
                if (!count) {
                        tell(g); /* the start of a suspect is recorded first */
                        continue;
                }
                bool has_culprit = false;
                for (uint32_t i = 0; i < count; i++)
                        has_culprit |= run[i]->seq == culprit;
                crashes += has_culprit;
                if (has_culprit && count == 1)
                        return crashes;
                if (has_culprit) {
                        crash(g, run, count);
                        continue;
                }
                for (uint32_t i = 0; i < count; i++) {
                        assert_int_equal(run[i]->seq, ++*ret_done);
                        end_as(g, run[i], STORE_DONE);
                }
                tell(g);
        }
}

/* The first crash, the first task alone, and then halves: log2 of 64 is 6. */
static void a_culprit_among_many_is_found_by_halves(void **state)
{
        (void)state;
        for (uint64_t culprit = 1; culprit <= MANY; culprit++) {
                struct rig g;
                uint64_t done = 0;
                open_wide(&g);
                hand_many(&g, 1, MANY, "k");
                claim(&g);
                uint32_t crashes = find_culprit(&g, culprit, &done);
                assert_in_range(crashes, 2, 8);
                assert_int_equal(done, culprit - 1); /* those before it are done, none behind it was */
                rig_close(&g);
        }
}

/* Which half it was is forgotten with its owner, but not who is under suspicion. */
static void a_new_owner_begins_with_the_first_alone(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *run[MANY];
        uint64_t done = 0;
        open_wide(&g);
        for (uint64_t seq = 1; seq <= 9; seq++)
                hand(&g, seq, "k", "a")->note.is_suspect = true;
        hand_many(&g, 10, 12, "k");
        claim(&g);
        assert_null(next(&g));
        tell(&g);
        assert_int_equal(take_run(&g, MANY, run), 1);
        end_as(&g, run[0], STORE_DONE);
        tell(&g);
        assert_null(next(&g));
        tell(&g);
        assert_int_equal(take_run(&g, MANY, run), 4); /* of eight */
        crash(&g, run, 4);
        done = 1;
        assert_int_equal(find_culprit(&g, 9, &done), 1);
        rig_close(&g);
}

/* After one of them ended a process alone, or all are done, runs are as long as before. */
static void what_was_never_under_suspicion_runs_in_whole_batches(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *run[MANY];
        open_wide(&g);
        hand(&g, 1, "k", "a")->note.is_suspect = true;
        hand_many(&g, 2, 9, "k");
        claim(&g);
        assert_null(next(&g));
        tell(&g);
        assert_int_equal(take_run(&g, MANY, run), 1);
        end_as(&g, run[0], STORE_DONE);
        tell(&g);
        assert_int_equal(take_run(&g, MANY, run), 8);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_run_is_a_keys_tasks_in_order_and_commits_in_one_call),
                cmocka_unit_test(the_key_is_busy_until_the_last_outcome_is_durable),
                cmocka_unit_test(the_first_outcome_that_is_not_done_ends_the_run),
                cmocka_unit_test(an_answer_before_its_turn_does_not_count),
                cmocka_unit_test(one_that_is_cancelled_and_was_not_started_ends),
                cmocka_unit_test(who_is_special_runs_in_a_call_of_its_own),
                cmocka_unit_test(one_that_crashed_before_has_nobody_behind_it),
                cmocka_unit_test(so_many_of_a_key_as_its_handler_asks_for_are_claimed),
                cmocka_unit_test(a_culprit_among_many_is_found_by_halves),
                cmocka_unit_test(a_new_owner_begins_with_the_first_alone),
                cmocka_unit_test(what_was_never_under_suspicion_runs_in_whole_batches),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
