#include "host/handler/task_log.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"

#define SECOND_MS 1000u

static const char *const names[TASK_LOG_KINDS] = { "rejected", "exhausted", "dead", "held" };

uint64_t task_log_due_ms(const struct task_log *log)
{
        uint64_t untold = 0;
        for (int i = 0; i < TASK_LOG_KINDS; i++)
                untold += log->untold[i];
        return untold ? log->second_ms + SECOND_MS : UINT64_MAX;
}

void task_log_flush(struct task_log *log, const char *handler, uint64_t now_ms)
{
        if (now_ms < task_log_due_ms(log))
                return;
        log_event(LEVEL_WARN, "tasks-given-up",
                "handler=%s rejected=%" PRIu64 " exhausted=%" PRIu64 " dead=%" PRIu64 " held=%" PRIu64 " text=%s",
                handler, log->untold[TASK_LOG_REJECTED], log->untold[TASK_LOG_EXHAUSTED], log->untold[TASK_LOG_DEAD],
                log->untold[TASK_LOG_HELD],
                LOG_QUOTE("these have no log line each, to limit the log; see: quiver dead list, quiver key list"));
        memset(log->untold, 0, sizeof(log->untold));
}

static enum task_log_kind kind_of(const struct store_outcome *outcome)
{
        if (outcome->kind == STORE_HOLD)
                return TASK_LOG_HELD;
        for (int i = 0; i < TASK_LOG_HELD; i++)
                if (span_is(outcome->reason, span_of_text(names[i])))
                        return (enum task_log_kind)i;
        return TASK_LOG_DEAD;
}

/* Whether this second has room for another line. */
static bool has_room(struct task_log *log, const char *handler, uint64_t now_ms)
{
        if (now_ms >= log->second_ms + SECOND_MS) {
                task_log_flush(log, handler, now_ms);
                log->second_ms = now_ms;
                log->lines = 0;
        }
        return log->lines++ < TASK_LOG_LINES;
}

/* LATER costs a task nothing and may go on for hours: one line now and then; all of them at level debug. */
static void log_later(
        struct task_log *log, const struct task_log_line *line, const struct store_outcome *outcome, uint64_t now_ms)
{
        const struct claimed *c = line->claimed;
        bool is_due = !log->has_told_later || now_ms >= log->told_later_ms + TASK_LOG_LATER_MS;
        log->laters++;
        if (!is_due && log_level_get() < LEVEL_DEBUG)
                return;
        log_event(is_due ? LEVEL_INFO : LEVEL_DEBUG, "later",
                "handler=%s task=%s key=%s%s times=%" PRIu32 " again_ms=%" PRIu64 " laters=%" PRIu64
                " error=%s hint=%s",
                line->handler, c->id.data, LOG_QUOTE(c->key.data), line->trace, c->laters + 1, outcome->delay_ms,
                log->laters, LOG_QUOTE(line->error),
                LOG_QUOTE("only this key waits, at no cost; laters: of all keys since the last line"));
        if (!is_due)
                return;
        log->has_told_later = true;
        log->told_later_ms = now_ms;
        log->laters = 0;
}

void task_log_outcome(
        struct task_log *log, const struct task_log_line *line, const struct pending_outcome *pending, uint64_t now_ms)
{
        const struct claimed *c = line->claimed;
        const struct store_outcome *outcome = &pending->outcome;
        uint32_t attempt = c->attempts + 1;
        if (outcome->kind == STORE_RETRY && outcome->cost == COST_LATER)
                log_later(log, line, outcome, now_ms);
        else if (outcome->kind == STORE_RETRY && log_level_get() >= LEVEL_DEBUG)
                log_event(LEVEL_DEBUG, "retry",
                        "handler=%s task=%s key=%s%s attempt=%" PRIu32 " crashes=%" PRIu32 " again_ms=%" PRIu64
                        " error=%s",
                        line->handler, c->id.data, LOG_QUOTE(c->key.data), line->trace, attempt, c->crashes,
                        outcome->delay_ms, LOG_QUOTE(line->error));
        if (outcome->kind != STORE_DEAD && outcome->kind != STORE_HOLD)
                return;
        enum task_log_kind kind = kind_of(outcome);
        if (!has_room(log, line->handler, now_ms)) {
                log->untold[kind]++;
                return;
        }
        log_event(LEVEL_WARN, names[kind],
                "handler=%s task=%s key=%s%s attempt=%" PRIu32 " crashes=%" PRIu32 " reason=%.*s error=%s",
                line->handler, c->id.data, LOG_QUOTE(c->key.data), line->trace, attempt, c->crashes,
                (int)outcome->reason.size, outcome->reason.data, LOG_QUOTE(line->error));
}
