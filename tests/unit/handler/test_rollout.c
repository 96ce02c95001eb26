/* Which version of a handler serves: candidates, promotion, draining, probation and rollback, without a process. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "host/handler/rollout.h"

#define VERSIONS 8

struct rig {
        struct rollout rollout;
        struct rollout_version versions[VERSIONS];
        bool is_forgotten[VERSIONS];
        struct rollout_actions actions;
        uint64_t now_ms;
};

static void rig_open(struct rig *g)
{
        *g = (struct rig){ .now_ms = 1000 };
        g->rollout.policy = (struct rollout_policy){ .drain_ms = 500,
                .grace_ms = 100,
                .probation_ms = 60000,
                .probation_tasks = 20,
                .crashes_max = 3,
                .failures_max = 5,
                .live_max = 3 };
        for (size_t i = 0; i < VERSIONS; i++) {
                g->versions[i].id = (struct generation_id){ .file_hash = 100 + i, .settings_hash = 1 };
                g->versions[i].runners_wanted = 1;
        }
        rollout_found(&g->rollout, &g->versions[0], g->now_ms);
}

static void step(struct rig *g, enum rollout_event_kind kind, int version, enum outcome outcome)
{
        struct rollout_event event = { .kind = kind, .outcome = outcome };
        if (version >= 0)
                event.version = &g->versions[version];
        rollout_step(&g->rollout, &event, g->now_ms, &g->actions);
        for (size_t i = 0; i < g->actions.count; i++)
                if (g->actions.list[i].kind == ROLLOUT_FORGET)
                        g->is_forgotten[g->actions.list[i].version - g->versions] = true;
}

static void post(struct rig *g, enum rollout_event_kind kind, int version)
{
        step(g, kind, version, OUTCOME_DONE);
}

static void ended(struct rig *g, int version, enum outcome outcome, int times)
{
        while (times--)
                step(g, ROLLOUT_ENDED, version, outcome);
}

static void tick_when_due(struct rig *g)
{
        assert_true(rollout_due_ms(&g->rollout) != UINT64_MAX);
        g->now_ms = rollout_due_ms(&g->rollout);
        post(g, ROLLOUT_TICK, -1);
}

/* The place of that action in what the last step wants, -1: it is not there. */
static int wanted(const struct rig *g, enum rollout_action_kind kind, int version)
{
        for (size_t i = 0; i < g->actions.count; i++)
                if (g->actions.list[i].kind == kind && g->actions.list[i].version == &g->versions[version])
                        return (int)i;
        return -1;
}

static bool was_told(const struct rig *g, enum rollout_news news, int version)
{
        for (size_t i = 0; i < g->actions.count; i++)
                if (g->actions.list[i].kind == ROLLOUT_TELL && g->actions.list[i].news == news &&
                        g->actions.list[i].version == &g->versions[version])
                        return true;
        return false;
}

static void promote(struct rig *g, int version)
{
        post(g, ROLLOUT_PROPOSED, version);
        assert_true(wanted(g, ROLLOUT_START, version) >= 0);
        post(g, ROLLOUT_READY, version);
        assert_true(was_told(g, NEWS_PROMOTED, version));
}

static enum generation_state state_of(const struct rig *g, int version)
{
        return g->versions[version].state;
}

/* --- promotion --- */

static void the_first_one_serves_at_once_and_is_good(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
        assert_int_equal(g.versions[0].number, 1);
        assert_true(rollout_is_decided(&g.rollout, 1));
        assert_true(rollout_due_ms(&g.rollout) == UINT64_MAX);
}

static void a_candidate_serves_nothing_until_all_its_runners_are_ready(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        g.versions[1].runners_wanted = 2;
        post(&g, ROLLOUT_PROPOSED, 1);
        assert_ptr_equal(rollout_target(&g.rollout), &g.versions[1]);
        post(&g, ROLLOUT_READY, 1);
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
        assert_int_equal(g.actions.count, 0);
        post(&g, ROLLOUT_READY, 1);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
}

static void the_old_one_retreats_before_the_new_one_serves(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        assert_true(wanted(&g, ROLLOUT_RETREAT, 0) >= 0);
        assert_true(wanted(&g, ROLLOUT_SERVE, 1) > wanted(&g, ROLLOUT_RETREAT, 0));
        assert_int_equal(state_of(&g, 0), GENERATION_DRAINING);
}

static void what_does_not_end_is_told_to_stop_and_then_killed(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        assert_int_equal(rollout_due_ms(&g.rollout), g.now_ms + 500);
        tick_when_due(&g);
        assert_true(wanted(&g, ROLLOUT_INTERRUPT, 0) >= 0);
        assert_true(wanted(&g, ROLLOUT_KILL, 0) < 0);
        tick_when_due(&g);
        assert_true(wanted(&g, ROLLOUT_KILL, 0) >= 0);
        post(&g, ROLLOUT_EMPTY, 0);
        assert_int_equal(state_of(&g, 0), GENERATION_RESTING);
}

static void one_that_cannot_start_is_refused_and_the_old_one_serves_on(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        post(&g, ROLLOUT_PROPOSED, 1);
        post(&g, ROLLOUT_FAILED, 1);
        assert_true(was_told(&g, NEWS_REFUSED, 1));
        assert_true(wanted(&g, ROLLOUT_KILL, 1) >= 0);
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
        post(&g, ROLLOUT_READY, 1); /* too late */
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
        post(&g, ROLLOUT_EMPTY, 1);
        assert_true(g.is_forgotten[1]);
        /* Whatever was wrong may have been put right: it may be tried again. */
        assert_false(rollout_is_bad(&g.rollout, &g.versions[1].id));
}

/* --- turns --- */

static void only_one_is_tried_at_a_time_and_of_those_that_wait_the_newest_wins(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        post(&g, ROLLOUT_PROPOSED, 1);
        post(&g, ROLLOUT_PROPOSED, 2);
        assert_int_equal(state_of(&g, 2), GENERATION_WAITING);
        post(&g, ROLLOUT_PROPOSED, 3);
        assert_true(was_told(&g, NEWS_SUPERSEDED, 2));
        assert_true(g.is_forgotten[2]);
        post(&g, ROLLOUT_READY, 1);
        assert_true(wanted(&g, ROLLOUT_START, 3) >= 0);
        post(&g, ROLLOUT_READY, 3);
        assert_ptr_equal(g.rollout.current, &g.versions[3]);
}

static void beyond_the_limit_a_version_waits_until_an_old_one_is_gone(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        promote(&g, 2);
        post(&g, ROLLOUT_PROPOSED, 3);
        assert_int_equal(state_of(&g, 3), GENERATION_WAITING);
        post(&g, ROLLOUT_EMPTY, 1);
        assert_true(g.is_forgotten[1]);
        assert_true(wanted(&g, ROLLOUT_START, 3) >= 0);
}

static void changed_and_changed_back_while_another_was_tried_is_no_change(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        g.versions[2].id = g.versions[0].id;
        post(&g, ROLLOUT_PROPOSED, 1);
        post(&g, ROLLOUT_PROPOSED, 2);
        post(&g, ROLLOUT_FAILED, 1);
        assert_true(was_told(&g, NEWS_SUPERSEDED, 2));
        assert_true(g.is_forgotten[2]);
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
}

/* --- probation --- */

static void crashes_roll_it_back_to_the_last_good_one(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        ended(&g, 1, OUTCOME_CRASHED, 2);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
        ended(&g, 1, OUTCOME_TIMED_OUT, 1);
        assert_true(was_told(&g, NEWS_ROLLED_BACK, 1));
        assert_true(wanted(&g, ROLLOUT_RETREAT, 1) >= 0);
        assert_true(wanted(&g, ROLLOUT_SERVE, 0) > wanted(&g, ROLLOUT_RETREAT, 1));
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
        assert_true(rollout_is_bad(&g.rollout, &g.versions[1].id));
        assert_false(rollout_is_bad(&g.rollout, &g.versions[2].id));
        assert_true(rollout_is_decided(&g.rollout, 2));
        post(&g, ROLLOUT_EMPTY, 1);
        assert_true(g.is_forgotten[1]);
}

static void one_that_rests_is_called_back(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        post(&g, ROLLOUT_EMPTY, 0);
        assert_false(g.is_forgotten[0]);
        ended(&g, 1, OUTCOME_RETRY, 5);
        assert_true(wanted(&g, ROLLOUT_SERVE, 0) >= 0);
        assert_int_equal(state_of(&g, 0), GENERATION_CURRENT);
        /* The word of its end may have been on its way. */
        post(&g, ROLLOUT_EMPTY, 0);
        assert_int_equal(state_of(&g, 0), GENERATION_CURRENT);
}

static void a_few_crashes_among_many_tasks_are_the_tasks_own(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        g.rollout.policy.probation_tasks = 0;
        promote(&g, 1);
        ended(&g, 1, OUTCOME_DONE, 100);
        ended(&g, 1, OUTCOME_CRASHED, 10);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
        ended(&g, 1, OUTCOME_CRASHED, 1);
        assert_true(was_told(&g, NEWS_ROLLED_BACK, 1));
}

static void nothing_but_failures_roll_it_back_and_one_success_does_not(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        ended(&g, 1, OUTCOME_RETRY, 4);
        ended(&g, 1, OUTCOME_DONE, 1);
        ended(&g, 1, OUTCOME_RETRY, 100);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
        tick_when_due(&g); /* the drain of the old one */
        tick_when_due(&g);
        tick_when_due(&g);
        assert_true(was_told(&g, NEWS_GOOD, 1));
}

static void at_the_end_of_its_time_one_failure_without_success_is_enough(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        post(&g, ROLLOUT_EMPTY, 0);
        ended(&g, 1, OUTCOME_UNAVAILABLE, 1);
        g.now_ms += 59999;
        post(&g, ROLLOUT_TICK, -1);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
        tick_when_due(&g);
        assert_true(was_told(&g, NEWS_ROLLED_BACK, 1));
}

/* LATER is about the destination of one key. */
static void later_says_nothing_about_a_version(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        post(&g, ROLLOUT_EMPTY, 0);
        ended(&g, 1, OUTCOME_LATER, 100);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
        g.now_ms += 59999;
        tick_when_due(&g);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
        assert_false(was_told(&g, NEWS_ROLLED_BACK, 1));
        assert_false(rollout_excuses(&g.rollout, &g.versions[1], OUTCOME_LATER));
}

static void after_a_rejection_it_is_good_and_after_nothing_unproven(void **state)
{
        (void)state;
        for (int rejected = 0; rejected < 2; rejected++) {
                struct rig g;
                rig_open(&g);
                promote(&g, 1);
                post(&g, ROLLOUT_EMPTY, 0);
                ended(&g, 1, OUTCOME_REJECT, rejected);
                tick_when_due(&g);
                assert_true(was_told(&g, rejected ? NEWS_GOOD : NEWS_UNPROVEN, 1));
                assert_true(g.is_forgotten[0]);
                assert_true(rollout_due_ms(&g.rollout) == UINT64_MAX);
        }
}

static void enough_tasks_end_it_early(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        assert_true(rollout_is_decided(&g.rollout, 1));
        assert_false(rollout_is_decided(&g.rollout, 2));
        ended(&g, 1, OUTCOME_DONE, 19);
        assert_false(was_told(&g, NEWS_GOOD, 1));
        ended(&g, 1, OUTCOME_DONE, 1);
        assert_true(was_told(&g, NEWS_GOOD, 1));
        assert_true(rollout_is_decided(&g.rollout, 2));
        ended(&g, 1, OUTCOME_CRASHED, 100);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
}

static void runners_that_do_not_start_after_the_promotion_count_as_crashes(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        post(&g, ROLLOUT_FAILED, 1);
        post(&g, ROLLOUT_FAILED, 1);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
        post(&g, ROLLOUT_FAILED, 1);
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
}

static void one_that_starts_no_more_runners_is_rolled_back_at_once(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        post(&g, ROLLOUT_STUCK, 1);
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
        assert_true(rollout_is_bad(&g.rollout, &g.versions[1].id));
}

static void a_successor_that_has_not_proved_itself_is_nobodys_fallback(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        promote(&g, 2);
        post(&g, ROLLOUT_EMPTY, 1);
        assert_true(g.is_forgotten[1]);
        ended(&g, 2, OUTCOME_CRASHED, 3);
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
}

static void without_probation_a_new_one_is_trusted_at_once(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        g.rollout.policy.probation_ms = 0;
        promote(&g, 1);
        ended(&g, 1, OUTCOME_CRASHED, 100);
        assert_ptr_equal(g.rollout.current, &g.versions[1]);
        post(&g, ROLLOUT_EMPTY, 0);
        assert_true(g.is_forgotten[0]);
}

static void failures_are_excused_until_the_first_success_and_after_a_rollback(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        assert_false(rollout_excuses(&g.rollout, &g.versions[0], OUTCOME_CRASHED));
        promote(&g, 1);
        assert_true(rollout_excuses(&g.rollout, &g.versions[1], OUTCOME_CRASHED));
        assert_true(rollout_excuses(&g.rollout, &g.versions[1], OUTCOME_RETRY));
        assert_false(rollout_excuses(&g.rollout, &g.versions[1], OUTCOME_REJECT));
        assert_false(rollout_excuses(&g.rollout, &g.versions[0], OUTCOME_CRASHED));
        ended(&g, 1, OUTCOME_DONE, 1);
        assert_false(rollout_excuses(&g.rollout, &g.versions[1], OUTCOME_CRASHED));
        ended(&g, 1, OUTCOME_CRASHED, 3);
        assert_ptr_equal(g.rollout.current, &g.versions[0]);
        assert_true(rollout_excuses(&g.rollout, &g.versions[1], OUTCOME_CRASHED));
}

/* --- the end --- */

static void a_withdrawn_handler_drains_and_can_come_back(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        post(&g, ROLLOUT_PROPOSED, 2);
        post(&g, ROLLOUT_WITHDRAWN, -1);
        assert_null(g.rollout.current);
        assert_null(rollout_target(&g.rollout));
        assert_true(wanted(&g, ROLLOUT_RETREAT, 1) >= 0);
        assert_true(wanted(&g, ROLLOUT_KILL, 2) >= 0);
        post(&g, ROLLOUT_EMPTY, 0);
        post(&g, ROLLOUT_EMPTY, 2);
        assert_true(g.is_forgotten[0] && g.is_forgotten[2]);
        promote(&g, 3);
        assert_int_equal(g.versions[3].watched_until_ms, 0); /* there is nothing to go back to */
        post(&g, ROLLOUT_EMPTY, 1);
        assert_true(g.is_forgotten[1]);
}

static void cut_short_everything_is_killed(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        promote(&g, 1);
        post(&g, ROLLOUT_PROPOSED, 2);
        post(&g, ROLLOUT_PROPOSED, 3);
        post(&g, ROLLOUT_CUT, -1);
        for (int i = 0; i < 3; i++)
                assert_true(wanted(&g, ROLLOUT_KILL, i) >= 0);
        assert_true(g.is_forgotten[3]);
        for (int i = 0; i < 3; i++)
                post(&g, ROLLOUT_EMPTY, i);
        assert_null(g.rollout.newest);
}

/* --- anything, in any order --- */

static void check(const struct rig *g)
{
        uint32_t live = 0;
        uint32_t waiting = 0;
        uint32_t current = 0;
        for (const struct rollout_version *i = g->rollout.newest; i; i = i->older) {
                assert_false(g->is_forgotten[i - g->versions]);
                assert_true(!i->older || i->number > i->older->number);
                live += i->state != GENERATION_WAITING && i->state != GENERATION_RESTING;
                waiting += i->state == GENERATION_WAITING;
                current += i->state == GENERATION_CURRENT;
                if (i->state == GENERATION_RESTING)
                        assert_ptr_equal(i, g->rollout.fallback);
        }
        assert_true(live <= g->rollout.policy.live_max + 1); /* one that was called back comes on top */
        assert_true(waiting <= 1);
        assert_int_equal(current, g->rollout.current != NULL);
        assert_true(!g->rollout.current || g->rollout.current->state == GENERATION_CURRENT);
        assert_true(!g->rollout.candidate || g->rollout.candidate->state == GENERATION_CANDIDATE);
}

static void chance_finds_nothing_that_breaks_it(void **state)
{
        (void)state;
        srand(7);
        for (int run = 0; run < 300; run++) {
                struct rig g;
                rig_open(&g);
                for (int i = 0; i < 400; i++) {
                        int v = rand() % VERSIONS;
                        struct rollout_version *x = &g.versions[v];
                        bool is_in = false;
                        for (struct rollout_version *y = g.rollout.newest; y; y = y->older)
                                is_in |= y == x;
                        bool is_leaving =
                                is_in && (x->state == GENERATION_DRAINING || x->state == GENERATION_STOPPING ||
                                                 x->state == GENERATION_ENDING);
                        g.now_ms += (uint64_t)(rand() % 300);
                        if (!is_in && rand() % 3 == 0) {
                                *x = (struct rollout_version){ .id.file_hash = (uint64_t)(rand() % 4),
                                        .runners_wanted = 1 };
                                g.is_forgotten[v] = false;
                                post(&g, ROLLOUT_PROPOSED, v);
                        } else if (is_in && x->state == GENERATION_CANDIDATE) {
                                post(&g, rand() % 2 ? ROLLOUT_READY : ROLLOUT_FAILED, v);
                        } else if (is_in && x->state == GENERATION_CURRENT) {
                                ended(&g, v, (enum outcome)(rand() % 7), 1);
                        } else if (is_leaving && rand() % 2) {
                                post(&g, ROLLOUT_EMPTY, v);
                        } else if (rand() % 50 == 0) {
                                post(&g, ROLLOUT_WITHDRAWN, -1);
                        } else {
                                post(&g, ROLLOUT_TICK, -1);
                        }
                        check(&g);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_one_serves_at_once_and_is_good),
                cmocka_unit_test(a_candidate_serves_nothing_until_all_its_runners_are_ready),
                cmocka_unit_test(the_old_one_retreats_before_the_new_one_serves),
                cmocka_unit_test(what_does_not_end_is_told_to_stop_and_then_killed),
                cmocka_unit_test(one_that_cannot_start_is_refused_and_the_old_one_serves_on),
                cmocka_unit_test(only_one_is_tried_at_a_time_and_of_those_that_wait_the_newest_wins),
                cmocka_unit_test(beyond_the_limit_a_version_waits_until_an_old_one_is_gone),
                cmocka_unit_test(changed_and_changed_back_while_another_was_tried_is_no_change),
                cmocka_unit_test(crashes_roll_it_back_to_the_last_good_one),
                cmocka_unit_test(one_that_rests_is_called_back),
                cmocka_unit_test(a_few_crashes_among_many_tasks_are_the_tasks_own),
                cmocka_unit_test(nothing_but_failures_roll_it_back_and_one_success_does_not),
                cmocka_unit_test(at_the_end_of_its_time_one_failure_without_success_is_enough),
                cmocka_unit_test(later_says_nothing_about_a_version),
                cmocka_unit_test(after_a_rejection_it_is_good_and_after_nothing_unproven),
                cmocka_unit_test(enough_tasks_end_it_early),
                cmocka_unit_test(runners_that_do_not_start_after_the_promotion_count_as_crashes),
                cmocka_unit_test(one_that_starts_no_more_runners_is_rolled_back_at_once),
                cmocka_unit_test(a_successor_that_has_not_proved_itself_is_nobodys_fallback),
                cmocka_unit_test(without_probation_a_new_one_is_trusted_at_once),
                cmocka_unit_test(failures_are_excused_until_the_first_success_and_after_a_rollback),
                cmocka_unit_test(a_withdrawn_handler_drains_and_can_come_back),
                cmocka_unit_test(cut_short_everything_is_killed),
                cmocka_unit_test(chance_finds_nothing_that_breaks_it),
        };
        return cmocka_run_group_tests_name("generation", tests, NULL, NULL);
}
