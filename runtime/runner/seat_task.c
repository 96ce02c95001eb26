#include "runner/seat_task.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runner/logger.h"

/* A buffer that has grown beyond this is freed instead of kept for the next task. */
#define KEEP_BYTES ((size_t)64 << 10)

/* Fills both arrays of headers: all headers, and those that are text.  Stops at a malformed one. */
static void put_headers(struct seat_task *w, const void *data, size_t size)
{
        struct reader from;
        struct ring_task_header header;
        size_t all = 0;
        size_t texts = 0;
        reader_init(&from, data, size);
        while (from.size && ring_next_header(&from, &header) == 0) {
                if (all == w->headers_room) {
                        w->headers_room = all ? 2 * all : 8;
                        w->headers = memory_resize(w->headers, w->headers_room * sizeof(*w->headers));
                        w->headers2 = memory_resize(w->headers2, w->headers_room * sizeof(*w->headers2));
                }
                w->headers2[all++] = (struct qv_header2){ .name = header.name,
                        .value = header.value,
                        .value_size = header.value_size,
                        .is_bytes = header.is_bytes };
                if (!header.is_bytes)
                        w->headers[texts++] = (struct qv_header){ .name = header.name, .value = header.value };
        }
        w->task.headers = texts ? w->headers : NULL;
        w->task.headers_count = texts;
        w->task.headers2 = all ? w->headers2 : NULL;
        w->task.headers2_count = all;
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
                .headers2_stride = sizeof(struct qv_header2),
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
        if (from->headers_size)
                put_headers(w, from->headers, from->headers_size);
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
        if (outcome == OUTCOME_RETRY || outcome == OUTCOME_LATER || outcome == OUTCOME_LIMITED) {
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
        free(w->headers2);
        *w = (struct seat_task){ 0 };
}
