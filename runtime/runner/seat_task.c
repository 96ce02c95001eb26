#include "runner/seat_task.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runner/logger.h"

/* A buffer that has grown beyond this is freed instead of kept for the next task. */
#define KEEP_BYTES ((size_t)64 << 10)

/* Fills the array of headers from `name NUL value NUL …`.  A last value without its NUL is left out. */
static size_t put_headers(struct seat_task *w, const char *at, size_t size)
{
        const char *end = at + size;
        size_t count = 0;
        while (at < end) {
                const char *value = memchr(at, 0, (size_t)(end - at));
                const char *next = value ? memchr(value + 1, 0, (size_t)(end - value - 1)) : NULL;
                if (!next)
                        break;
                if (count == w->headers_room) {
                        w->headers_room = count ? 2 * count : 8;
                        w->headers = memory_resize(w->headers, w->headers_room * sizeof(*w->headers));
                }
                w->headers[count++] = (struct qv_header){ .name = at, .value = value + 1 };
                at = next + 1;
        }
        return count;
}

void seat_task_begin(struct seat_task *w, const struct ring_taken *taken)
{
        const struct ring_task *from = &taken->task;
        w->ticket = taken->ticket;
        w->has_result = w->has_retry_after = w->has_checkpoint = false;
        w->submits_count = 0;
        w->error[0] = 0;
        buffer_clear(&w->result);
        buffer_clear(&w->submits);
        buffer_clear(&w->checkpoint);
        w->task = (struct qv_task){
                .size = sizeof(w->task),
                .attempt = from->attempt,
                .attempts_max = from->attempts_max,
                .submitted_ms = from->submitted_ms,
                .lane = from->lane,
                .crashes = from->crashes,
                .id = from->id,
                .key = from->key,
                .handler = from->handler,
                .payload = from->payload,
                .payload_size = from->payload_size,
                .fence_epoch = from->fence_epoch,
                .fence_start = from->fence_start,
                .checkpoint = from->checkpoint_size ? from->checkpoint : NULL,
                .checkpoint_size = from->checkpoint_size,
        };
        if (from->headers_size) {
                w->task.headers_count = put_headers(w, from->headers, from->headers_size);
                w->task.headers = w->headers;
        }
}

void seat_task_set_error(struct seat_task *w, const char *text)
{
        logger_clean(w->error, sizeof(w->error), text);
}

void seat_task_reply(const struct seat_task *w, int32_t outcome, struct ring_reply *ret)
{
        bool is_done = outcome == OUTCOME_DONE;
        *ret = (struct ring_reply){ .ticket = w->ticket, .outcome = outcome, .error = is_done ? "" : w->error };
        if (is_done) {
                ret->has_result = w->has_result;
                ret->result = w->result.data;
                ret->result_size = w->result.size;
                ret->submits = w->submits.data;
                ret->submits_size = w->submits.size;
                ret->submits_count = w->submits_count;
                return;
        }
        if (outcome == OUTCOME_RETRY || outcome == OUTCOME_LATER) {
                ret->has_retry_after = w->has_retry_after;
                ret->retry_after_ms = w->retry_after_ms;
        }
        if (w->has_checkpoint) {
                ret->has_checkpoint = true;
                ret->checkpoint = w->checkpoint.data;
                ret->checkpoint_size = w->checkpoint.size;
        }
}

size_t seat_task_size(const struct seat_task *w)
{
        struct ring_reply reply;
        seat_task_reply(w, OUTCOME_DONE, &reply);
        return ring_reply_size(&reply);
}

static void shrink(struct buffer *b)
{
        if (b->room > KEEP_BYTES)
                buffer_free(b);
}

void seat_task_end(struct seat_task *w)
{
        shrink(&w->result);
        shrink(&w->submits);
}

void seat_task_free(struct seat_task *w)
{
        if (!w)
                return;
        buffer_free(&w->result);
        buffer_free(&w->submits);
        buffer_free(&w->checkpoint);
        free(w->headers);
        *w = (struct seat_task){ 0 };
}
