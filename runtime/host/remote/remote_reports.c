/* remote_reports.c: reports of workers and borrowing hosts that come through a shard's control list. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/handler/handlers.h"
#include "host/remote/remote_private.h"
#include "host/shard/shard_io.h"

/* Finds a task whose worker reported in time, but whose silence was settled before the report was read.  It has not
 * started since. */
static struct claimed *find_silent(const struct shard *s, const struct work_report *report, struct span id)
{
        for (struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key))
                for (struct claimed *c = key->first; c; c = c->next)
                        if (c->seq == report->fence.seq && c->state == CLAIMED_WAITING && !key->is_busy &&
                                c->silences && c->worker_epoch == report->fence.epoch &&
                                c->worker_start == report->fence.start && span_is(c->id, id))
                                return c;
        return NULL;
}

static void obey(struct handlers *all, struct shard *shard, const struct store_control *control,
        const struct work_report *report, uint64_t now_ms)
{
        struct lent *lent = remote_find(all, shard->number, control->seq);
        struct claimed *silent = NULL;
        char text[256] = "this is not the current start of the task any more";
        bool is_here = lent && remote_is_current(lent, &report->fence, control->id);
        if (!is_here && report->kind == REPORT_OUTCOME && (silent = find_silent(shard, report, control->id))) {
                /* Lends the task to the worker again until its report is handled. */
                lent = memory_zero(1, sizeof(*lent));
                lent->fence = report->fence;
                (void)snprintf(lent->worker, sizeof(lent->worker), "(late)");
                shard_adopt_silent(shard, silent, lent, now_ms);
                remote_add(all, lent);
                is_here = true;
        }
        if (is_here && report->kind == REPORT_HEARTBEAT)
                remote_apply_heartbeat(all, lent, report, now_ms);
        else if (is_here && remote_is_allowed(all->list[lent->slot], report, text))
                remote_apply_outcome(all, lent, report, now_ms);
        else if (report->kind == REPORT_OUTCOME)
                log_event(LEVEL_WARN, "outcome-refused", "shard=%" PRIu32 " task=%.*s text=%s", shard->number,
                        (int)min_u64(control->id.size, TASK_ID_MAX), control->id.data, LOG_QUOTE(text));
}

void remotes_obey(struct handlers *all, struct shard *shard, const struct store_control *control, uint64_t now_ms)
{
        struct work_report report;
        struct error error = { "" };
        const struct lent *lent = remote_find(all, shard->number, control->seq);
        bool is_seat = lent ? lent->is_seat : seat_start_is(control->start);
        if (control->verb == CONTROL_OUTCOME && is_seat) {
                if (!remote_obey_seat(all, shard, control, now_ms, &error))
                        log_event(LEVEL_WARN, "outcome-refused", "shard=%" PRIu32 " task=%.*s text=%s", shard->number,
                                (int)min_u64(control->id.size, TASK_ID_MAX), control->id.data, LOG_QUOTE(error.text));
                return;
        }
        enum report_kind kind = control->verb == CONTROL_OUTCOME ? REPORT_OUTCOME : REPORT_HEARTBEAT;
        /* The host that took the report has checked it, but anybody can write to a store. */
        if (report_parse(control->data, kind, &report, &error) < 0) {
                log_event(LEVEL_WARN, "outcome-refused", "shard=%" PRIu32 " text=%s", shard->number,
                        LOG_QUOTE(error.text));
                return;
        }
        report.fence.seq = control->seq;
        obey(all, shard, control, &report, now_ms);
        report_free(&report);
}
