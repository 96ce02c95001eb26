/* What follows from how a task ended: budgets, backoff, and whose fault it was. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "host/shard/retry.h"

static const struct handler_config handler = {
        .name = (char *)"h",
        .retry = { .attempts = 4, .backoff_ms = 1000, .factor = 2, .max_ms = 5000, .jitter = 0.5 },
        .later = { .max = 3, .wait_ms = 700 },
        .crashes = 3,
};

static const struct ring_reply plain_reply = { .error = "no" };

/* What the store would be told; NULL: run it again. */
static struct pending_outcome *judge(const struct handler_config *h, const struct claimed *c, const struct settled *s)
{
        struct pending_outcome *pending = NULL;
        enum retry_verdict verdict = retry_judge(h, c, s, 0, &pending);
        assert_int_equal(verdict, pending ? VERDICT_OUTCOME : VERDICT_AGAIN);
        return pending;
}

static struct pending_outcome *judge_outcome(
        const struct handler_config *h, const struct claimed *c, enum outcome outcome)
{
        bool is_word = outcome <= OUTCOME_LATER;
        struct settled s = { .outcome = outcome, .error = "no", .reply = is_word ? &plain_reply : NULL };
        return judge(h, c, &s);
}

static void assert_draft(struct pending_outcome *pending, enum store_outcome_kind kind, enum task_cost cost)
{
        assert_non_null(pending);
        assert_int_equal(pending->outcome.kind, kind);
        assert_int_equal(pending->outcome.cost, cost);
}

static void assert_gone(struct pending_outcome *pending, enum store_outcome_kind kind, const char *reason)
{
        assert_non_null(pending);
        assert_int_equal(pending->outcome.kind, kind);
        assert_true(span_is(pending->outcome.reason, (struct span){ reason, strlen(reason) }));
        pending_outcome_free(pending);
}

static void the_delay_grows_by_the_factor_up_to_the_cap(void **state)
{
        (void)state;
        const struct retry_config *r = &handler.retry;
        assert_int_equal(retry_delay_ms(r, 1, 0), 1000);
        assert_int_equal(retry_delay_ms(r, 2, 0), 2000);
        assert_int_equal(retry_delay_ms(r, 3, 0), 4000);
        assert_int_equal(retry_delay_ms(r, 4, 0), 5000);
        assert_int_equal(retry_delay_ms(r, UINT32_MAX, 0), 5000);
        const struct retry_config steady = { .backoff_ms = 100, .factor = 1, .max_ms = 5000 };
        assert_int_equal(retry_delay_ms(&steady, 5000000, 0), 100);
}

static void jitter_only_shortens(void **state)
{
        (void)state;
        assert_int_equal(retry_delay_ms(&handler.retry, 1, 0.5), 750);
        assert_true(retry_delay_ms(&handler.retry, 1, 0.999999) >= 500);
        assert_int_equal(retry_delay_ms(&handler.retry, 4, 0.5), 3750);
}

static void an_attempt_is_charged_and_retried(void **state)
{
        (void)state;
        struct claimed c = { .attempts = 1 };
        struct pending_outcome *pending = judge_outcome(&handler, &c, OUTCOME_RETRY);
        assert_draft(pending, STORE_RETRY, COST_ATTEMPT);
        assert_int_equal(pending->outcome.delay_ms, 2000);
        assert_true(span_is(pending->outcome.error, SPAN_TEXT("no")));
        pending_outcome_free(pending);
}

static void attempts_run_out(void **state)
{
        (void)state;
        struct claimed c = { .attempts = 3, .crashes = 1 };
        struct pending_outcome *pending = judge_outcome(&handler, &c, OUTCOME_RETRY);
        assert_int_equal(pending->outcome.cost, COST_ATTEMPT);
        assert_gone(pending, STORE_DEAD, "exhausted");
}

static void a_task_may_bring_its_own_number_of_attempts(void **state)
{
        (void)state;
        struct claimed once = { .attempts_max = 1 };
        assert_gone(judge_outcome(&handler, &once, OUTCOME_RETRY), STORE_DEAD, "exhausted");
        struct claimed often = { .attempts_max = 10, .attempts = 8 };
        struct pending_outcome *pending = judge_outcome(&handler, &often, OUTCOME_RETRY);
        assert_draft(pending, STORE_RETRY, COST_ATTEMPT);
        pending_outcome_free(pending);
}

static void crashes_have_a_budget_of_their_own(void **state)
{
        (void)state;
        struct claimed c = { .attempts = 3, .crashes = 1 };
        struct pending_outcome *pending = judge_outcome(&handler, &c, OUTCOME_CRASHED);
        assert_draft(pending, STORE_RETRY, COST_CRASH);
        assert_int_equal(pending->outcome.delay_ms, 2000);
        pending_outcome_free(pending);
        c.crashes = 2;
        assert_gone(judge_outcome(&handler, &c, OUTCOME_CRASHED), STORE_DEAD, "crashed");
        assert_gone(judge_outcome(&handler, &c, OUTCOME_TIMED_OUT), STORE_DEAD, "timed-out");
        c.attempts = 0;
        pending = judge_outcome(&handler, &c, OUTCOME_RETRY);
        assert_draft(pending, STORE_RETRY, COST_ATTEMPT);
        pending_outcome_free(pending);
}

/* Nobody saw what its host died of: it waits, ever longer, and is never charged for it. */
static void a_hosts_death_is_nobodys_crash(void **state)
{
        (void)state;
        for (uint32_t deaths = 1; deaths <= NOTE_EVENTS_MAX; deaths++) {
                struct claimed c = { .attempts = 3, .crashes = 2, .hosts_died = deaths };
                struct pending_outcome *pending = retry_died_alone(&c);
                assert_draft(pending, STORE_RETRY, COST_INTERRUPTION);
                assert_int_equal(pending->outcome.delay_ms,
                        deaths <= HOST_DEATHS_MAX ? 10000 : 10000 << (deaths - HOST_DEATHS_MAX));
                pending_outcome_free(pending);
        }
}

static void the_wait_after_many_deaths_has_a_bound(void **state)
{
        (void)state;
        static const uint32_t deaths[] = { NOTE_EVENTS_MAX + 1, 63 + HOST_DEATHS_MAX, 64 + HOST_DEATHS_MAX,
                UINT32_MAX };
        for (unsigned i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
                struct pending_outcome *pending = retry_died_alone(&(struct claimed){ .hosts_died = deaths[i] });
                assert_int_equal(pending->outcome.delay_ms, 160000);
                pending_outcome_free(pending);
        }
}

static void a_handler_may_say_when(void **state)
{
        (void)state;
        struct claimed c = { 0 };
        struct ring_reply reply = { .error = "", .has_retry_after = true, .retry_after_ms = 77 };
        struct settled s = { .outcome = OUTCOME_RETRY, .error = "", .reply = &reply };
        struct pending_outcome *pending = judge(&handler, &c, &s);
        assert_int_equal(pending->outcome.delay_ms, 77);
        pending_outcome_free(pending);
        c.attempts = 3; /* that does not make the budget larger */
        assert_gone(judge(&handler, &c, &s), STORE_DEAD, "exhausted");
}

static void an_exhausted_key_is_held_if_so_configured(void **state)
{
        (void)state;
        struct handler_config holding = handler;
        holding.on_exhausted = ON_EXHAUSTED_HOLD;
        struct claimed c = { .attempts = 3, .crashes = 2 };
        assert_gone(judge_outcome(&holding, &c, OUTCOME_RETRY), STORE_HOLD, "exhausted");
        assert_gone(judge_outcome(&holding, &c, OUTCOME_CRASHED), STORE_HOLD, "crashed");
        assert_gone(judge_outcome(&holding, &c, OUTCOME_REJECT), STORE_DEAD, "rejected");
}

static void a_rejected_task_is_dead_at_once(void **state)
{
        (void)state;
        struct claimed c = { 0 };
        assert_gone(judge_outcome(&handler, &c, OUTCOME_REJECT), STORE_DEAD, "rejected");
}

static void unavailable_costs_nothing(void **state)
{
        (void)state;
        struct claimed c = { .attempts = 3, .crashes = 2 };
        assert_null(judge_outcome(&handler, &c, OUTCOME_UNAVAILABLE));
}

static void later_parks_the_key_and_costs_no_attempt(void **state)
{
        (void)state;
        struct claimed c = { .attempts = 3, .crashes = 2, .laters = 2 };
        struct pending_outcome *pending = judge_outcome(&handler, &c, OUTCOME_LATER);
        assert_draft(pending, STORE_RETRY, COST_LATER);
        assert_int_equal(pending->outcome.delay_ms, 700);
        assert_true(span_is(pending->outcome.reason, SPAN_TEXT(STORE_SAID_LATER)));
        assert_true(span_is(pending->outcome.error, SPAN_TEXT("no")));
        pending_outcome_free(pending);
        struct ring_reply reply = { .error = "no", .has_retry_after = true, .retry_after_ms = 12345 };
        struct settled s = { .outcome = OUTCOME_LATER, .error = "no", .reply = &reply };
        pending = judge(&handler, &c, &s);
        assert_int_equal(pending->outcome.delay_ms, 12345);
        pending_outcome_free(pending);
}

static void assert_counts_as_retry(struct pending_outcome *pending, const char *says)
{
        assert_draft(pending, STORE_RETRY, COST_ATTEMPT);
        assert_int_equal(pending->outcome.reason.size, 0);
        assert_int_equal(pending->outcome.delay_ms, 1000);
        assert_non_null(memmem(pending->outcome.error.data, pending->outcome.error.size, says, strlen(says)));
        assert_non_null(memmem(pending->outcome.error.data, pending->outcome.error.size, ": no", 4));
        pending_outcome_free(pending);
}

static void later_is_a_retry_beyond_its_maximum(void **state)
{
        (void)state;
        struct claimed c = { .laters = 3 };
        assert_counts_as_retry(judge_outcome(&handler, &c, OUTCOME_LATER), "beyond later.max, which is 3");
        c.attempts = 3;
        assert_gone(judge_outcome(&handler, &c, OUTCOME_LATER), STORE_DEAD, "exhausted");
}

static void later_is_a_retry_while_the_app_cannot_count_it(void **state)
{
        (void)state;
        struct claimed c = { 0 };
        struct settled s = { .outcome = OUTCOME_LATER, .error = "no", .reply = &plain_reply, .is_later_off = true };
        assert_counts_as_retry(judge(&handler, &c, &s), "quiver app upgrade later");
}

static void what_never_started_was_not_interrupted(void **state)
{
        (void)state;
        struct claimed c = { 0 };
        struct settled s = { .outcome = OUTCOME_INTERRUPTED, .error = "", .reply = &plain_reply };
        assert_null(judge(&handler, &c, &s));
}

static void an_interruption_is_recorded_and_costs_nothing(void **state)
{
        (void)state;
        struct claimed c = { .attempts = 3, .crashes = 2, .interruptions = 1000 };
        struct settled s = { .outcome = OUTCOME_INTERRUPTED, .error = "a neighbour", .why = BLAME_NEIGHBOUR };
        struct pending_outcome *pending = judge(&handler, &c, &s);
        assert_draft(pending, STORE_INTERRUPTED, COST_INTERRUPTION);
        assert_false(pending->outcome.is_suspect);
        pending_outcome_free(pending);
        s.is_suspect = true;
        s.why = BLAME_UNSURE;
        pending = judge(&handler, &c, &s);
        assert_draft(pending, STORE_INTERRUPTED, COST_INTERRUPTION);
        assert_true(pending->outcome.is_suspect);
        pending_outcome_free(pending);
}

static void a_cancelled_task_is_dead_unless_it_was_done_first(void **state)
{
        (void)state;
        struct claimed c = { 0 };
        struct settled killed = { .outcome = OUTCOME_INTERRUPTED, .error = "", .why = BLAME_CANCEL };
        assert_gone(judge(&handler, &c, &killed), STORE_DEAD, "cancelled");
        /* It saw the stop flag and gave up in its own words. */
        c.pool_task.why = BLAME_CANCEL;
        assert_gone(judge_outcome(&handler, &c, OUTCOME_RETRY), STORE_DEAD, "cancelled");
        assert_gone(judge_outcome(&handler, &c, OUTCOME_UNAVAILABLE), STORE_DEAD, "cancelled");
        struct pending_outcome *pending = judge_outcome(&handler, &c, OUTCOME_DONE);
        assert_draft(pending, STORE_DONE, COST_NONE);
        pending_outcome_free(pending);
}

static void done_with_a_wrong_follow_up_is_a_failed_attempt(void **state)
{
        (void)state;
        struct buffer submits = { 0 };
        ring_put_submit(&submits, &(struct ring_submit){ .handler = "not a name", .key = "k", .payload = "" });
        struct ring_reply reply = {
                .error = "", .submits = submits.data, .submits_size = submits.size, .submits_count = 1
        };
        struct settled s = { .outcome = OUTCOME_DONE, .error = "", .reply = &reply };
        struct claimed c = { 0 };
        struct pending_outcome *pending = judge(&handler, &c, &s);
        assert_draft(pending, STORE_RETRY, COST_ATTEMPT);
        assert_non_null(memmem(pending->outcome.error.data, pending->outcome.error.size, "follow-up", 9));
        pending_outcome_free(pending);
        buffer_free(&submits);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_delay_grows_by_the_factor_up_to_the_cap),
                cmocka_unit_test(jitter_only_shortens),
                cmocka_unit_test(an_attempt_is_charged_and_retried),
                cmocka_unit_test(attempts_run_out),
                cmocka_unit_test(a_task_may_bring_its_own_number_of_attempts),
                cmocka_unit_test(crashes_have_a_budget_of_their_own),
                cmocka_unit_test(a_hosts_death_is_nobodys_crash),
                cmocka_unit_test(the_wait_after_many_deaths_has_a_bound),
                cmocka_unit_test(a_handler_may_say_when),
                cmocka_unit_test(an_exhausted_key_is_held_if_so_configured),
                cmocka_unit_test(a_rejected_task_is_dead_at_once),
                cmocka_unit_test(unavailable_costs_nothing),
                cmocka_unit_test(later_parks_the_key_and_costs_no_attempt),
                cmocka_unit_test(later_is_a_retry_beyond_its_maximum),
                cmocka_unit_test(later_is_a_retry_while_the_app_cannot_count_it),
                cmocka_unit_test(what_never_started_was_not_interrupted),
                cmocka_unit_test(an_interruption_is_recorded_and_costs_nothing),
                cmocka_unit_test(a_cancelled_task_is_dead_unless_it_was_done_first),
                cmocka_unit_test(done_with_a_wrong_follow_up_is_a_failed_attempt),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
