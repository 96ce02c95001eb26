#include "trace/export.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"

void trace_export_init(struct trace_export *e, uint64_t interval_ms, uint32_t queue_max, uint64_t random)
{
        *e = (struct trace_export){ .interval_ms = interval_ms, .queue_max = queue_max, .random = random };
}

/* Removes the first batch, whose spans have been counted. */
static void remove_first(struct trace_export *e)
{
        struct trace_batch *batch = e->first;
        e->first = batch->next;
        if (!e->first)
                e->last = NULL;
        e->waiting -= batch->count;
        buffer_free(&batch->spans);
        free(batch);
}

void trace_export_free(struct trace_export *e)
{
        while (e->first)
                remove_first(e);
}

void trace_export_drop(struct trace_export *e)
{
        e->counts.dropped += e->waiting;
        trace_export_free(e);
        e->is_sending = false;
}

bool trace_export_has_room(struct trace_export *e)
{
        if (e->waiting < e->queue_max)
                return true;
        e->counts.dropped++;
        return false;
}

static bool is_full(const struct trace_batch *batch)
{
        return batch->count >= TRACE_BATCH_MAX || batch->spans.size >= TRACE_BATCH_BYTES;
}

struct buffer *trace_export_begin(struct trace_export *e, uint64_t now_ms)
{
        /* A batch being sent must not change: it may have to be sent again. */
        if (!e->last || is_full(e->last) || (e->last == e->first && e->is_sending)) {
                struct trace_batch *batch = memory_zero(1, sizeof(*batch));
                batch->first_ms = now_ms;
                if (e->last)
                        e->last->next = batch;
                else
                        e->first = batch;
                e->last = batch;
        }
        if (e->last->count)
                buffer_put(&e->last->spans, ",", 1);
        return &e->last->spans;
}

void trace_export_added(struct trace_export *e)
{
        e->last->count++;
        e->waiting++;
}

uint64_t trace_export_due_ms(const struct trace_export *e)
{
        if (!e->first || e->is_sending)
                return UINT64_MAX;
        bool is_at_once = is_full(e->first) || e->first->next || e->stop_ms;
        return max_u64(is_at_once ? 0 : e->first->first_ms + e->interval_ms, e->again_ms);
}

const struct trace_batch *trace_export_next(struct trace_export *e, uint64_t now_ms)
{
        if (now_ms < trace_export_due_ms(e) || !e->first || e->is_sending)
                return NULL;
        e->is_sending = true;
        return e->first;
}

static double random_fraction(struct trace_export *e)
{
        e->random = e->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (double)(e->random >> 11) / 9007199254740992.0;
}

/* Half of the pause to all of it, so that many hosts do not return at once. */
static uint64_t pause_ms(struct trace_export *e, const struct trace_answer *answer)
{
        if (answer->retry_after_ms)
                return min_u64(answer->retry_after_ms, TRACE_AFTER_MAX_MS);
        uint64_t pause = min_u64(TRACE_PAUSE_MS << min_u64(e->failures, 8), TRACE_PAUSE_MAX_MS);
        return (uint64_t)((double)pause * (1 + random_fraction(e)) / 2);
}

/* By the protocol only these may succeed later. */
static bool may_be_taken_later(const struct trace_answer *answer)
{
        long code = answer->http_code;
        return answer->status < 0 || code == 429 || code == 502 || code == 503 || code == 504;
}

enum trace_news trace_export_answered(struct trace_export *e, const struct trace_answer *answer, uint64_t now_ms)
{
        struct trace_batch *batch = e->first;
        bool was_failing = e->is_failing;
        e->is_sending = false;
        if (answer->status == 0 && answer->http_code >= 200 && answer->http_code < 300) {
                uint64_t rejected = min_u64(answer->rejected, batch->count);
                e->counts.failed += rejected;
                e->counts.exported += batch->count - rejected;
                e->failures = 0;
                e->again_ms = 0;
                remove_first(e);
                e->is_failing = rejected > 0;
                e->is_dropping &= e->waiting > 0;
                return e->is_failing == was_failing ? TRACE_NEWS_NONE
                       : e->is_failing              ? TRACE_NEWS_FAILING
                                                    : TRACE_NEWS_WELL;
        }
        e->is_failing = true;
        if (!may_be_taken_later(answer) || now_ms >= batch->first_ms + TRACE_GIVE_UP_MS) {
                e->counts.failed += batch->count;
                remove_first(e);
        }
        e->again_ms = now_ms + pause_ms(e, answer);
        e->failures++;
        return was_failing ? TRACE_NEWS_NONE : TRACE_NEWS_FAILING;
}

enum trace_news trace_export_news(struct trace_export *e)
{
        if (e->is_dropping || e->waiting < e->queue_max || !e->counts.dropped)
                return TRACE_NEWS_NONE;
        e->is_dropping = true;
        return TRACE_NEWS_DROPPING;
}

bool trace_export_stop(struct trace_export *e, uint64_t now_ms)
{
        if (!e->stop_ms)
                e->stop_ms = now_ms + TRACE_STOP_MS;
        return !e->first || now_ms >= e->stop_ms;
}
