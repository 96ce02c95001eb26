#include "ring/pack.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"

/* A packed task is this head, then id, key and handler with their NULs, headers, checkpoint, payload, NUL. */
struct task_head {
        uint64_t fence_epoch, fence_start, timeout_ms, submitted_ms;
        uint32_t attempt, attempts_max, crashes, lease;
        int32_t lane;
        uint32_t unused;
        uint32_t id_size, key_size, handler_size; /* NUL included */
        uint32_t headers_size, checkpoint_size, payload_size;
};

/* A packed answer is this head, then error with its NUL, result, follow-ups, checkpoint. */
struct reply_head {
        uint64_t ticket, started_ns, ended_ns, retry_after_ms;
        int32_t outcome;
        uint32_t flags;
        uint32_t error_size, result_size, submits_size, submits_count, checkpoint_size;
        uint32_t unused;
};

enum { REPLY_HAS_RESULT = 1, REPLY_HAS_RETRY_AFTER = 2, REPLY_HAS_CHECKPOINT = 4 };

const char *outcome_name(int outcome)
{
        switch (outcome) {
        case OUTCOME_DONE:
                return "DONE";
        case OUTCOME_RETRY:
                return "RETRY";
        case OUTCOME_REJECT:
                return "REJECT";
        case OUTCOME_UNAVAILABLE:
                return "UNAVAILABLE";
        case OUTCOME_LATER:
                return "LATER";
        case OUTCOME_LIMITED:
                return "LIMITED";
        case OUTCOME_CRASHED:
                return "CRASHED";
        case OUTCOME_TIMED_OUT:
                return "TIMED_OUT";
        case OUTCOME_INTERRUPTED:
                return "INTERRUPTED";
        default:
                return "UNKNOWN";
        }
}

size_t ring_task_size(const struct ring_task *task)
{
        return sizeof(struct task_head) + strlen(task->id) + strlen(task->key) + strlen(task->handler) + 3 +
               task->headers_size + task->checkpoint_size + task->payload_size + 1;
}

size_t ring_reply_size(const struct ring_reply *reply)
{
        return sizeof(struct reply_head) + strlen(reply->error) + 1 + reply->result_size + reply->submits_size +
               reply->checkpoint_size;
}

static uint8_t *put(uint8_t *to, const void *from, size_t size)
{
        if (size)
                memcpy(to, from, size);
        return to + size;
}

void ring_pack_task(uint8_t *to, const struct ring_task *task)
{
        struct task_head head = {
                .fence_epoch = task->fence_epoch,
                .fence_start = task->fence_start,
                .timeout_ms = task->timeout_ms,
                .submitted_ms = task->submitted_ms,
                .attempt = task->attempt,
                .attempts_max = task->attempts_max,
                .crashes = task->crashes,
                .lane = task->lane,
                .lease = task->lease,
                .id_size = (uint32_t)strlen(task->id) + 1,
                .key_size = (uint32_t)strlen(task->key) + 1,
                .handler_size = (uint32_t)strlen(task->handler) + 1,
                .headers_size = (uint32_t)task->headers_size,
                .checkpoint_size = (uint32_t)task->checkpoint_size,
                .payload_size = (uint32_t)task->payload_size,
        };
        to = put(to, &head, sizeof(head));
        to = put(to, task->id, head.id_size);
        to = put(to, task->key, head.key_size);
        to = put(to, task->handler, head.handler_size);
        to = put(to, task->headers, head.headers_size);
        to = put(to, task->checkpoint, head.checkpoint_size);
        to = put(to, task->payload, head.payload_size);
        *to = 0;
}

void ring_pack_reply(uint8_t *to, const struct ring_reply *reply)
{
        struct reply_head head = {
                .ticket = reply->ticket,
                .started_ns = reply->started_ns,
                .ended_ns = reply->ended_ns,
                .retry_after_ms = reply->retry_after_ms,
                .outcome = reply->outcome,
                .flags = (reply->has_result ? REPLY_HAS_RESULT : 0u) |
                         (reply->has_retry_after ? REPLY_HAS_RETRY_AFTER : 0u) |
                         (reply->has_checkpoint ? REPLY_HAS_CHECKPOINT : 0u),
                .error_size = (uint32_t)strlen(reply->error) + 1,
                .result_size = (uint32_t)reply->result_size,
                .submits_size = (uint32_t)reply->submits_size,
                .submits_count = reply->submits_count,
                .checkpoint_size = (uint32_t)reply->checkpoint_size,
        };
        to = put(to, &head, sizeof(head));
        to = put(to, reply->error, head.error_size);
        to = put(to, reply->result, head.result_size);
        to = put(to, reply->submits, head.submits_size);
        (void)put(to, reply->checkpoint, head.checkpoint_size);
}

/* Takes the next `size` of the `*left` bytes at `*at`; NULL if there are fewer. */
static const uint8_t *take(const uint8_t **at, size_t *left, size_t size)
{
        const uint8_t *from = *at;
        if (size > *left)
                return NULL;
        *at += size;
        *left -= size;
        return from;
}

/* As take(), for a text that must end in its only NUL. */
static const char *take_text(const uint8_t **at, size_t *left, size_t size)
{
        const char *text = (const char *)take(at, left, size);
        return text && size && strnlen(text, size) == size - 1 ? text : NULL;
}

int ring_unpack_task(const uint8_t *from, size_t size, struct ring_task *ret)
{
        struct task_head head;
        const uint8_t *at = take(&from, &size, sizeof(head));
        if (!at)
                return -EBADMSG;
        memcpy(&head, at, sizeof(head));
        struct ring_task task = {
                .submitted_ms = head.submitted_ms,
                .attempts_max = head.attempts_max,
                .crashes = head.crashes,
                .lane = head.lane,
                .attempt = head.attempt,
                .lease = head.lease,
                .fence_epoch = head.fence_epoch,
                .fence_start = head.fence_start,
                .timeout_ms = head.timeout_ms,
                .headers_size = head.headers_size,
                .checkpoint_size = head.checkpoint_size,
                .payload_size = head.payload_size,
        };
        task.id = take_text(&from, &size, head.id_size);
        task.key = take_text(&from, &size, head.key_size);
        task.handler = take_text(&from, &size, head.handler_size);
        task.headers = take(&from, &size, head.headers_size);
        task.checkpoint = take(&from, &size, head.checkpoint_size);
        task.payload = take(&from, &size, head.payload_size);
        if (!task.id || !task.key || !task.handler || !task.headers || !task.checkpoint || !task.payload || size != 1)
                return -EBADMSG;
        *ret = task;
        return 0;
}

int ring_unpack_reply(const uint8_t *from, size_t size, struct ring_reply *ret)
{
        struct reply_head head;
        const uint8_t *at = take(&from, &size, sizeof(head));
        if (!at)
                return -EBADMSG;
        memcpy(&head, at, sizeof(head));
        struct ring_reply reply = {
                .ticket = head.ticket,
                .outcome = head.outcome,
                .started_ns = head.started_ns,
                .ended_ns = head.ended_ns,
                .has_result = head.flags & REPLY_HAS_RESULT,
                .has_retry_after = head.flags & REPLY_HAS_RETRY_AFTER,
                .has_checkpoint = head.flags & REPLY_HAS_CHECKPOINT,
                .retry_after_ms = head.retry_after_ms,
                .result_size = head.result_size,
                .submits_size = head.submits_size,
                .submits_count = head.submits_count,
                .checkpoint_size = head.checkpoint_size,
        };
        reply.error = take_text(&from, &size, head.error_size);
        reply.result = take(&from, &size, head.result_size);
        reply.submits = take(&from, &size, head.submits_size);
        reply.checkpoint = take(&from, &size, head.checkpoint_size);
        if (!reply.error || !reply.result || !reply.submits || !reply.checkpoint || size)
                return -EBADMSG;
        if (reply.checkpoint_size > QV_CHECKPOINT_MAX || reply.submits_count > QV_SUBMITS_MAX)
                return -EBADMSG;
        *ret = reply;
        return 0;
}

void ring_put_header(struct buffer *to, const struct ring_task_header *header)
{
        buffer_put_text(to, header->name);
        buffer_put_u32(to, header->is_bytes);
        buffer_put_u32(to, (uint32_t)header->value_size + 1);
        buffer_put(to, header->value, header->value_size);
        buffer_put(to, "", 1);
}

int ring_next_header(struct reader *from, struct ring_task_header *ret)
{
        struct ring_task_header header = { 0 };
        size_t size = 0;
        header.name = reader_text(from);
        header.is_bytes = reader_u32(from);
        header.value = reader_block(from, &size);
        if (from->is_bad || !size || header.value[size - 1] ||
                (!header.is_bytes && strnlen(header.value, size) != size - 1))
                return -EBADMSG;
        header.value_size = size - 1;
        *ret = header;
        return 0;
}

void ring_put_submit(struct buffer *to, const struct ring_submit *submit)
{
        buffer_put_text(to, submit->handler);
        buffer_put_text(to, submit->key);
        buffer_put_u32(to, (uint32_t)submit->lane);
        buffer_put_u64(to, submit->delay_ms);
        buffer_put_u32(to, submit->is_merge);
        buffer_put_u64(to, submit->debounce_ms);
        buffer_put_block(to, submit->headers, submit->headers_size);
        buffer_put_block(to, submit->payload, submit->payload_size);
}

int ring_next_submit(struct reader *from, struct ring_submit *ret)
{
        struct ring_submit submit = { 0 };
        submit.handler = reader_text(from);
        submit.key = reader_text(from);
        submit.lane = (int32_t)reader_u32(from);
        submit.delay_ms = reader_u64(from);
        submit.is_merge = reader_u32(from);
        submit.debounce_ms = reader_u64(from);
        submit.headers = reader_block(from, &submit.headers_size);
        submit.payload = reader_block(from, &submit.payload_size);
        if (from->is_bad)
                return -EBADMSG;
        *ret = submit;
        return 0;
}
