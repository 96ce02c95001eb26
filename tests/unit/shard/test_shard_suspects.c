/* Whom a shard suspects: tasks that were running when something died. */
#include "shard_rig.h"

/* --- suspects --------------------------------------------------------------------------------------------------------
 */

static void a_suspect_starts_once_its_start_is_recorded(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a")->note.is_suspect = true;
        hand(&g, 2, "k", "a");
        claim(&g);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_START);
        assert_true(span_is(said(&g, 1)->holder, SPAN_TEXT("01020300000000000000000000000000")));
        assert_int_equal(said(&g, 1)->until_ms, 0);
        assert_null(next(&g));
        reply_advance(&g, STORE_OK);
        const struct claimed *c = start(&g, 1);
        assert_int_equal(c->trust, TRUST_SUSPECT);
        assert_null(next(&g));
        rig_close(&g);
}

/* Two suspects on two keys: if the host dies, the one that is marked did it. */
static void one_suspect_at_a_time_is_marked(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a")->note.is_suspect = true;
        hand(&g, 2, "j", "a")->note.is_suspect = true;
        hand(&g, 3, "i", "a");
        claim(&g);
        assert_true(shard_mark_next(&g.shard, 0, g.now_ms));
        assert_int_equal(window_marks(&g.shard.window, 0), 1);
        struct claimed *other = start(&g, 3); /* others do not wait for it */
        send_advance(&g);
        assert_said(&g, 1, STORE_START);
        assert_null(said(&g, 2));
        reply_advance(&g, STORE_OK);
        struct claimed *first = start(&g, 1);
        assert_null(next(&g));
        end_as(&g, first, STORE_DONE);
        end_as(&g, other, STORE_DONE);
        assert_int_equal(window_marks(&g.shard.window, 0), 1); /* until that is durable */
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        assert_int_equal(window_marks(&g.shard.window, 0), 0);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 2, STORE_START);
        rig_close(&g);
}

static void a_start_that_another_left_without_an_end_is_told(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        struct store_task *alone = hand(&g, 1, "k", "a");
        alone->note.started_epoch = 39;
        alone->note.is_suspect = true;
        hand(&g, 2, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        const struct claimed *c = start(&g, 1);
        assert_int_equal(c->trust, TRUST_DIED_ALONE);
        assert_null(next(&g));
        rig_close(&g);
}

/* We lost the shard and have it again: it was no death. */
static void a_start_of_our_own_is_no_crash(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a")->note.is_suspect = true;
        claim(&g);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_START);
        reply_advance(&g, STORE_FENCED);
        assert_int_equal(window_marks(&g.shard.window, 0), 0);
        g.shard.lease.epoch = 50;
        send_acquire(&g);
        struct store_task *ours = hand(&g, 1, "k", "a");
        ours->note.started_epoch = 40;
        ours->note.is_suspect = true;
        reply_acquire(&g, STORE_GRANTED, false);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_START);
        rig_close(&g);
}

/* Marked, and then its key is held, its pool is shunned, its shard left, or its runner never took it. */
static void a_mark_of_one_that_did_not_start_is_taken_back(void **state)
{
        (void)state;
        for (int way = 0; way < 4; way++) {
                struct rig g;
                rig_open(&g);
                own(&g);
                hand(&g, 1, "k", "a")->note.is_suspect = true;
                claim(&g);
                assert_null(next(&g));
                send_advance(&g);
                reply_advance(&g, STORE_OK);
                struct store_control hold = { .verb = CONTROL_HOLD, .key = SPAN_TEXT("k") };
                if (way == 0)
                        shard_obey(&g.shard, &hold, g.now_ms);
                else if (way == 1)
                        shard_return_pool(&g.shard, 0, g.now_ms);
                else if (way == 2)
                        shard_leave(&g.shard, g.now_ms);
                else
                        shard_again(&g.shard, start(&g, 1), g.now_ms);
                send_advance(&g);
                assert_said(&g, 1, STORE_INTERRUPTED);
                assert_int_equal(said(&g, 1)->cost, COST_NONE);
                assert_true(said(&g, 1)->is_suspect);
                reply_advance(&g, STORE_OK);
                assert_int_equal(window_marks(&g.shard.window, 0), 0);
                if (way == 0) {
                        send_advance(&g);
                        assert_said(&g, 1, STORE_DIVERT);
                } else if (way == 2) {
                        assert_int_equal(next_call(&g), SHARD_CALL_RELEASE);
                }
                rig_close(&g);
        }
}

/* --- a host that died ------------------------------------------------------------------------------------------------
 */

static void recover(struct rig *g, uint32_t seats)
{
        rig_open(g);
        g->limits.seats = seats;
        send_acquire(g);
        g->acquire.is_recovery = true;
}

static void a_dead_hosts_tasks_are_interrupted_at_no_cost(void **state)
{
        (void)state;
        struct rig g;
        recover(&g, 2);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a"); /* behind another: it cannot have run */
        hand(&g, 3, "j", "a");
        hand(&g, 4, "i", "a"); /* no seat was left for it */
        reply_acquire(&g, STORE_GRANTED, false);
        struct claimed *c = start(&g, 4);
        assert_null(next(&g));
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 2);
        assert_said(&g, 1, STORE_INTERRUPTED);
        assert_said(&g, 3, STORE_INTERRUPTED);
        assert_int_equal(said(&g, 1)->cost, COST_INTERRUPTION);
        assert_false(said(&g, 1)->is_suspect);
        reply_advance(&g, STORE_OK);
        /* They run beside each other, but now their starts are recorded. */
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_START);
        assert_said(&g, 3, STORE_START);
        reply_advance(&g, STORE_OK);
        (void)start(&g, 1);
        (void)start(&g, 3);
        end_as(&g, c, STORE_DONE);
        rig_close(&g);
}

/* While it ran, one of a higher lane was claimed, and comes first now. */
static void of_each_lane_the_first_may_have_been_running(void **state)
{
        (void)state;
        struct rig g;
        recover(&g, 9);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        hand(&g, LOW_FIRST, "k", "a");
        hand(&g, LOW_FIRST + 1, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 2);
        assert_said(&g, 1, STORE_INTERRUPTED);
        assert_said(&g, LOW_FIRST, STORE_INTERRUPTED);
        rig_close(&g);
}

/* Granted when it had to leave already: it says nothing of the tasks, so the next owner has to. */
static void who_gets_a_dead_hosts_shard_for_a_moment_passes_that_on(void **state)
{
        (void)state;
        for (unsigned is_recovery = 0; is_recovery < 2; is_recovery++) {
                struct rig g;
                recover(&g, 2);
                g.acquire.is_recovery = is_recovery;
                shard_unassign(&g.shard, g.now_ms);
                hand(&g, 1, "k", "a");
                reply_acquire(&g, STORE_GRANTED, false);
                send_release(&g);
                assert_int_equal(g.release.is_death, is_recovery);
                rig_close(&g);
        }
}

static void what_was_released_is_not_interrupted(void **state)
{
        (void)state;
        struct rig g;
        recover(&g, 2);
        g.acquire.is_recovery = false;
        hand(&g, 1, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        (void)start(&g, 1);
        rig_close(&g);
}

#define DIED "event:1 interruption its host died\n"

/* With a death behind them it is known who ran at the next: only those. */
static void who_did_not_run_when_it_died_again_is_left_out(void **state)
{
        (void)state;
        struct rig g;
        recover(&g, 9);
        hand(&g, 1, "a", "a")->note.events = SPAN_TEXT(DIED);
        struct store_task *ran = hand(&g, 2, "b", "a");
        ran->note.events = SPAN_TEXT(DIED);
        ran->note.started_epoch = 39;
        hand(&g, 3, "b", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_null(said(&g, 1));
        assert_said(&g, 2, STORE_RETRY);
        assert_int_equal(said(&g, 2)->cost, COST_INTERRUPTION);
        assert_int_equal(said(&g, 2)->delay_ms, 250);
        assert_said(&g, 3, STORE_DIVERT); /* the key waits */
        rig_close(&g);
}

static void four_dead_hosts_in_a_row_make_a_suspect(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "a", "a")->note.events = SPAN_TEXT(DIED DIED DIED DIED);
        hand(&g, 2, "b", "a")->note.events = SPAN_TEXT(DIED DIED DIED "event:2 attempt no\n" DIED);
        hand(&g, 3, "c", "a")->note.events = SPAN_TEXT(
                DIED DIED DIED "event:3 waited for something\nevent:4 interruption its host died while it ran alone\n");
        claim(&g);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 2, STORE_START);
        assert_true(!said(&g, 1) != !said(&g, 3)); /* one of the suspects at a time */
        reply_advance(&g, STORE_OK);
        struct claimed *first = next(&g);
        struct claimed *second = next(&g);
        assert_non_null(first);
        assert_non_null(second);
        assert_true((first->trust == TRUST_SUSPECT) != (second->trust == TRUST_SUSPECT));
        assert_null(next(&g));
        rig_close(&g);
}

/* Somebody else runs it, as far as is known: a worker, or a seat of another host. */
static void what_runs_elsewhere_is_not_started_before_its_time(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        struct store_task *busy = hand(&g, 1, "k", "a");
        busy->note = (struct task_note){ .started_epoch = 7, .holder = SPAN_TEXT("worker-7"), .until_ms = 9000 };
        busy->busy_ms = 4000;
        hand(&g, 2, "k", "a");
        hand(&g, 3, "j", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        start(&g, 3);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_DIVERT);
        assert_said(&g, 2, STORE_DIVERT);
        assert_int_equal(said(&g, 1)->delay_ms, 4000);
        assert_int_equal(said(&g, 2)->delay_ms, 4000);
        reply_advance(&g, STORE_OK);
        /* Its time has passed: it runs as any other, for no host died with it. */
        struct store_task *back = hand(&g, 1, "k", "a");
        back->note = (struct task_note){ .started_epoch = 7, .holder = SPAN_TEXT("worker-7"), .until_ms = 9000 };
        claim(&g);
        assert_int_equal(start(&g, 1)->trust, TRUST_FULL);
        rig_close(&g);
}

static void what_we_started_ourselves_is_not_kept_from_us(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        struct store_task *own_start = hand(&g, 1, "k", "a");
        own_start->note = (struct task_note){
                .started_epoch = 40, .holder = SPAN_TEXT("01020300000000000000000000000000"), .until_ms = 9000
        };
        own_start->busy_ms = 4000;
        reply_acquire(&g, STORE_GRANTED, false);
        start(&g, 1);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_runs_elsewhere_is_not_started_before_its_time),
                cmocka_unit_test(what_we_started_ourselves_is_not_kept_from_us),
                cmocka_unit_test(a_suspect_starts_once_its_start_is_recorded),
                cmocka_unit_test(one_suspect_at_a_time_is_marked),
                cmocka_unit_test(a_start_that_another_left_without_an_end_is_told),
                cmocka_unit_test(a_start_of_our_own_is_no_crash),
                cmocka_unit_test(a_mark_of_one_that_did_not_start_is_taken_back),
                cmocka_unit_test(a_dead_hosts_tasks_are_interrupted_at_no_cost),
                cmocka_unit_test(of_each_lane_the_first_may_have_been_running),
                cmocka_unit_test(who_gets_a_dead_hosts_shard_for_a_moment_passes_that_on),
                cmocka_unit_test(what_was_released_is_not_interrupted),
                cmocka_unit_test(who_did_not_run_when_it_died_again_is_left_out),
                cmocka_unit_test(four_dead_hosts_in_a_row_make_a_suspect),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
