#include "host/shard/retry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"

uint64_t retry_delay_ms(const struct retry_config *retry, uint32_t failed, double random)
{
        double ms = (double)retry->backoff_ms;
        for (uint32_t i = 1; i < failed && ms < (double)retry->max_ms; i++)
                ms *= retry->factor;
        if (ms > (double)retry->max_ms)
                ms = (double)retry->max_ms;
        return (uint64_t)(ms * (1 - retry->jitter * random));
}

static struct span word(const char *text)
{
        return (struct span){ text, strlen(text) };
}

/* The task's budget is used up: it is dead, or its key is held for a person, as configured. */
static struct pending_outcome *exhausted(
        const struct handler_config *handler, enum task_cost cost, const char *reason, const char *error)
{
        bool is_hold = handler->on_exhausted == ON_EXHAUSTED_HOLD;
        struct pending_outcome *pending = pending_outcome_new(is_hold ? STORE_HOLD : STORE_DEAD, cost, error);
        pending->outcome.reason = word(reason);
        return pending;
}

static struct pending_outcome *failed_attempt(
        const struct handler_config *handler, const struct claimed *c, const struct settled *settled, double random)
{
        uint32_t failed = c->attempts + 1;
        uint32_t attempts_max = c->attempts_max ? c->attempts_max : handler->retry.attempts;
        if (failed >= attempts_max)
                return exhausted(handler, COST_ATTEMPT, "exhausted", settled->error);
        struct pending_outcome *pending = pending_outcome_new(STORE_RETRY, COST_ATTEMPT, settled->error);
        pending->outcome.delay_ms = settled->reply && settled->reply->has_retry_after
                                            ? settled->reply->retry_after_ms
                                            : retry_delay_ms(&handler->retry, failed, random);
        return pending;
}

/* The handler said LATER: only the task's key waits, and no attempt is charged while later.max is not reached. */
static struct pending_outcome *said_later(
        const struct handler_config *handler, const struct claimed *c, const struct settled *settled, double random)
{
        char text[NOTE_TEXT_MAX + 1];
        struct settled retry = { .outcome = OUTCOME_RETRY, .reply = settled->reply, .error = text };
        if (settled->is_later_off) {
                (void)snprintf(text, sizeof(text),
                        "LATER counts as RETRY until the app has the feature (quiver app upgrade later): %s",
                        settled->error);
                return failed_attempt(handler, c, &retry, random);
        }
        if (c->laters >= handler->later.max) {
                (void)snprintf(text, sizeof(text), "LATER counts as RETRY beyond later.max, which is %" PRIu32 ": %s",
                        handler->later.max, settled->error);
                return failed_attempt(handler, c, &retry, random);
        }
        struct pending_outcome *pending = pending_outcome_new(STORE_RETRY, COST_LATER, settled->error);
        pending->outcome.reason = word(STORE_SAID_LATER);
        pending->outcome.delay_ms = settled->reply && settled->reply->has_retry_after ? settled->reply->retry_after_ms
                                                                                      : handler->later.wait_ms;
        return pending;
}

static struct pending_outcome *crashed(
        const struct handler_config *handler, const struct claimed *c, const struct settled *settled, double random)
{
        uint32_t crashes = c->crashes + 1;
        if (crashes >= handler->crashes)
                return exhausted(handler, COST_CRASH, settled->outcome == OUTCOME_TIMED_OUT ? "timed-out" : "crashed",
                        settled->error);
        struct pending_outcome *pending = pending_outcome_new(STORE_RETRY, COST_CRASH, settled->error);
        pending->outcome.delay_ms = retry_delay_ms(&handler->retry, crashes, random);
        return pending;
}

/* Whatever kills hosts, this task or a person with a script, should be over by then.  The wait doubles each time, up to
 * 160 s, so that a task that does kill its host does so rarely. */
#define ALONE_AGAIN_MS      UINT64_C(10000)
#define ALONE_DOUBLINGS_MAX 4

struct pending_outcome *retry_died_alone(const struct claimed *claimed)
{
        struct pending_outcome *pending =
                pending_outcome_new(STORE_RETRY, COST_INTERRUPTION, HOST_DIED " while it ran alone");
        uint32_t more = claimed->hosts_died > HOST_DEATHS_MAX ? claimed->hosts_died - HOST_DEATHS_MAX : 0;
        pending->outcome.delay_ms = ALONE_AGAIN_MS << min_u64(more, ALONE_DOUBLINGS_MAX);
        return pending;
}

static struct pending_outcome *done(
        const struct handler_config *handler, const struct claimed *c, const struct settled *settled, double random)
{
        struct error error = { "" };
        struct pending_outcome *pending = pending_outcome_done(settled->reply, settled->trace, &error);
        if (pending)
                return pending;
        char text[sizeof(error.text) + 64];
        (void)snprintf(text, sizeof(text), "the handler said DONE, but with a wrong follow-up: %s", error.text);
        struct settled wrong = { .outcome = OUTCOME_RETRY, .error = text };
        return failed_attempt(handler, c, &wrong, random);
}

/* A person cancelled the task: this overrides any answer but DONE. */
static bool is_cancelled(const struct claimed *c, const struct settled *settled)
{
        bool is_ended_so = c->pool_task.why == BLAME_CANCEL || settled->why == BLAME_CANCEL;
        return is_ended_so && settled->outcome != OUTCOME_DONE;
}

static struct pending_outcome *cancelled(void)
{
        struct pending_outcome *pending = pending_outcome_new(STORE_DEAD, COST_INTERRUPTION, "cancelled while it ran");
        pending->outcome.reason = word("cancelled");
        return pending;
}

/* Retries at no cost: the task failed in a new generation that has not yet done its first task. */
static struct pending_outcome *excused(
        const struct handler_config *handler, const struct settled *settled, double random)
{
        struct pending_outcome *pending = pending_outcome_new(STORE_RETRY, COST_INTERRUPTION, settled->error);
        pending->outcome.delay_ms = retry_delay_ms(&handler->retry, 1, random);
        return pending;
}

enum retry_verdict retry_judge(const struct handler_config *handler, const struct claimed *claimed,
        const struct settled *settled, double random, struct pending_outcome **ret_pending)
{
        struct pending_outcome *pending = NULL;
        if (claimed->is_told_to_stop && settled->outcome != OUTCOME_DONE) {
                /* We stopped the task because its lease or its share of a limit was lost, so any answer but DONE counts
                 * as an interruption. */
                *ret_pending = pending_outcome_new(STORE_INTERRUPTED, COST_INTERRUPTION, settled->error);
                return VERDICT_OUTCOME;
        }
        if (is_cancelled(claimed, settled)) {
                *ret_pending = cancelled();
                return VERDICT_OUTCOME;
        }
        if (settled->is_excused) {
                *ret_pending = excused(handler, settled, random);
                return VERDICT_OUTCOME;
        }
        switch (settled->outcome) {
        case OUTCOME_DONE:
                pending = done(handler, claimed, settled, random);
                break;
        case OUTCOME_RETRY:
                pending = failed_attempt(handler, claimed, settled, random);
                break;
        case OUTCOME_REJECT:
                pending = pending_outcome_new(STORE_DEAD, COST_ATTEMPT, settled->error);
                pending->outcome.reason = word("rejected");
                break;
        case OUTCOME_LATER:
                pending = said_later(handler, claimed, settled, random);
                break;
        case OUTCOME_LIMITED:
                if (settled->is_limit_closed)
                        return VERDICT_AGAIN; /* waits in its place until the limit opens */
                pending = said_later(handler, claimed, settled, random);
                break;
        case OUTCOME_UNAVAILABLE:
                /* The pool pauses, and the task waits in its place at no cost. */
                return VERDICT_AGAIN;
        case OUTCOME_CRASHED:
        case OUTCOME_TIMED_OUT:
                pending = crashed(handler, claimed, settled, random);
                break;
        case OUTCOME_INTERRUPTED:
                if (!settled->is_suspect && (settled->reply || settled->never_started))
                        return VERDICT_AGAIN; /* nothing was interrupted: it never started, or answered by itself */
                pending = pending_outcome_new(STORE_INTERRUPTED, COST_INTERRUPTION, settled->error);
                pending->outcome.is_suspect = settled->is_suspect;
                break;
        }
        *ret_pending = pending;
        return VERDICT_OUTCOME;
}
