/* submit.c: converts a program's tasks to submissions, a thousand at a time. */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "client/admin.h"
#include "client/call.h"
#include "client/sized_struct.h"
#include "store/idempotency.h"

CALL_START(submit)

static struct span text_span(const char *text)
{
        return (struct span){ text, text ? strlen(text) : 0 };
}

static int put_headers(const struct qv_client_task *task, struct buffer *lines, struct error *error)
{
        for (size_t i = 0; i < task->headers_count; i++) {
                const struct qv_client_header *header = &task->headers[i];
                if (!header->name || !header->value)
                        return error_set(error, -EINVAL, "header %zu: has no name or no value", i + 1);
                int r = header_put(lines, text_span(header->name), text_span(header->value), error);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < task->headers2_count; i++) {
                const struct qv_client_header2 *header = &task->headers2[i];
                if (!header->name || (header->value_size && !header->value))
                        return error_set(error, -EINVAL, "headers2, %zu: has no name or no value", i + 1);
                int r = header_put_bytes(
                        lines, text_span(header->name), (struct span){ header->value, header->value_size }, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* An upper bound of the bytes of a task's header lines. */
static size_t headers_size(const struct qv_client_task *task)
{
        size_t size = 0;
        for (size_t i = 0; i < task->headers_count; i++)
                size += sizeof("header.:\n") + text_span(task->headers[i].name).size +
                        text_span(task->headers[i].value).size;
        for (size_t i = 0; i < task->headers2_count; i++)
                size += sizeof("header64.:\n") + text_span(task->headers2[i].name).size +
                        (min_u64(task->headers2[i].value_size, TASK_HEADER_MAX) + 2) / 3 * 4;
        return size;
}

int client_task_envelope(
        const struct qv_client_task *task, struct buffer *headers, struct envelope *ret_envelope, struct error *error)
{
        static const enum lane lanes[] = { LANE_LOW, LANE_NORMAL, LANE_HIGH };
        if (task->lane < -1 || task->lane > 1)
                return error_set(error, -EINVAL, "lane: %d, it is -1 (low), 0 or 1 (high)", task->lane);
        if (task->payload_size && !task->payload)
                return error_set(error, -EINVAL, "payload: has a size and no bytes");
        size_t start = headers->size;
        int r = put_headers(task, headers, error);
        if (r < 0)
                return r;
        *ret_envelope = (struct envelope){
                .key = text_span(task->key),
                .handler = text_span(task->handler),
                .headers = { headers->data ? (const char *)headers->data + start : NULL, headers->size - start },
                .payload = { task->payload, task->payload_size },
                .not_before_ms = task->not_before_ms,
                .unique_ms = task->unique_ms,
                .timeout_ms = task->timeout_ms,
                .reply_ms = task->reply_ms,
                .attempts = task->attempts,
                .lane = lanes[task->lane + 1],
                .is_merge = task->merge || task->debounce_ms,
                .debounce_ms = task->debounce_ms,
        };
        return 0;
}

int client_check_task(const struct qv_client_task *task, struct error *error)
{
        struct envelope envelope;
        struct buffer headers = { 0 };
        int r = client_task_envelope(task, &headers, &envelope, error);
        if (r == 0)
                r = envelope_check(&envelope, error);
        if (r == 0 && task->unique_ms && !envelope.key.size)
                r = error_set(error, -EINVAL, "unique: needs a key");
        if (r == 0 && task->idempotency_key)
                r = idempotency_check(text_span(task->idempotency_key), error);
        buffer_free(&headers);
        return r;
}

int client_refusal(const struct qv_client_task *task, const struct store_submission *item, struct error *error)
{
        switch (item->status) {
        case -EEXIST:
                return error_set(error, item->status, "unique: a task for handler %s and key %s is there already: %s",
                        task->handler, task->key, item->id);
        case -ENOTUNIQ:
                return error_set(error, item->status,
                        "idempotency key %s: another handler, payload or option was submitted under it, as task %s; "
                        "give this one a key of its own",
                        task->idempotency_key, item->id);
        case -ENOBUFS:
                return error_set(error, item->status,
                        "idempotency key: shard %u remembers as many as it may; ask for a shorter time, or try later",
                        item->shard);
        case -EBADMSG:
                return error_set(error, item->status,
                        "idempotency key %s: what shard %u remembers of it cannot be read; remove it: quiver fsck "
                        "--repair",
                        task->idempotency_key, item->shard);
        case -EDQUOT:
                return error_set(error, item->status,
                        "the backlog of shard %u is full (store.max_backlog); wait until the hosts have caught up",
                        item->shard);
        case -EMSGSIZE:
                return error_set(error, item->status, "payload: %zu bytes are more than store.max_payload allows",
                        task->payload_size);
        case -ENOTSUP:
                return error_set(error, item->status,
                        "merge: the app has this feature not switched on; when all its hosts know it: quiver app "
                        "upgrade merge");
        default:
                (void)client_check_task(task, error);
                return item->status;
        }
}

/* --- a thousand at a time ----------------------------------------------------------------------------------------- */

/* The tasks of one request.  The program's array may have another version of the struct, and is iterated with its own
 * size. */
struct batch {
        struct qv_client_task *tasks;
        struct store_submission *items;
        uint32_t count;
        struct buffer headers;
};

static void batch_free(struct batch *b)
{
        free(b->tasks);
        free(b->items);
        buffer_free(&b->headers);
}

static void batch_init(struct batch *b, size_t count)
{
        size_t room = min_u64(count, STORE_SUBMIT_TASKS);
        *b = (struct batch){ .tasks = memory_zero(room, sizeof(*b->tasks)),
                .items = memory_zero(room, sizeof(*b->items)) };
}

static void batch_fill_item(struct batch *b, uint32_t i)
{
        const char *name = b->tasks[i].idempotency_key;
        b->items[i] = (struct store_submission){ .delay_ms = b->tasks[i].delay_ms,
                .idempotency = text_span(name),
                .idempotency_ms = b->tasks[i].idempotency_ms };
        /* A task that cannot be expressed stays without a handler, so the store refuses it. */
        if (!name || *name)
                (void)client_task_envelope(&b->tasks[i], &b->headers, &b->items[i].envelope, NULL);
}

/* Returns how many were taken: at least one. */
static uint32_t batch_fill(struct batch *b, const void *from, uint32_t size, size_t count)
{
        static const uint32_t bytes_max = STORE_CALL_BYTES;
        size_t bytes = 0;
        size_t headers = 0;
        buffer_clear(&b->headers);
        for (b->count = 0; b->count < count && b->count < STORE_SUBMIT_TASKS; b->count++) {
                struct qv_client_task *task = &b->tasks[b->count];
                *task = (struct qv_client_task)QV_CLIENT_TASK_INIT;
                (void)sized_copy(task, sizeof(*task), (const char *)from + (size_t)size * b->count, size);
                bytes += task->payload_size;
                if (b->count && bytes > bytes_max)
                        break;
                headers += headers_size(task);
        }
        /* Reserved once, because the submissions point into it. */
        (void)buffer_reserve(&b->headers, headers);
        for (uint32_t i = 0; i < b->count; i++)
                batch_fill_item(b, i);
        return b->count;
}

static void report(const struct batch *b, struct qv_client_submitted *ret_submitted, int r)
{
        for (uint32_t i = 0; i < b->count; i++) {
                ret_submitted[i].status = r < 0 ? r : b->items[i].status;
                ret_submitted[i].is_repeat = r >= 0 && b->items[i].is_repeat;
                memcpy(ret_submitted[i].id, b->items[i].id, sizeof(b->items[i].id));
        }
}

/* Sets the error to that of the first refused task. */
static void explain(const struct batch *b, size_t before, size_t count, struct error *error)
{
        for (uint32_t i = 0; i < b->count; i++) {
                if (!b->items[i].status)
                        continue;
                int r = client_refusal(&b->tasks[i], &b->items[i], error);
                if (count > 1)
                        (void)error_prefix(error, r, "task %zu", before + i + 1);
                return;
        }
}

_Static_assert(QV_CLIENT_ID_SIZE == TASK_ID_MAX + 1, "an id fits");
/* Programs iterate over an array of these with the size that they were built with. */
_Static_assert(sizeof(struct qv_client_submitted) == 72, "what was submitted keeps its size");

int qv_client_submit_many(struct qv_client *client, const struct qv_client_task *tasks, size_t count,
        struct qv_client_submitted *ret_submitted)
{
        struct error *error = client_error_start();
        struct batch batch;
        int refused = 0;
        if (!count)
                return 0;
        uint32_t size = tasks->size;
        if (size < SIZED_MIN || size > SIZED_MAX)
                return error_set(error, -EINVAL, "task.size: start from QV_CLIENT_TASK_INIT");
        int r = 0;
        batch_init(&batch, count);
        for (size_t i = 0; ret_submitted && i < count; i++)
                ret_submitted[i] = (struct qv_client_submitted){ .status = -ECANCELED };
        for (size_t at = 0; at < count && r == 0; at += batch.count) {
                struct client_call call = { .start = start_submit };
                call.submit.items = batch.items;
                call.submit.items_count = batch_fill(&batch, (const char *)tasks + (size_t)size * at, size, count - at);
                r = client_call(client, &call, error);
                if (ret_submitted)
                        report(&batch, ret_submitted + at, r);
                if (r == 0 && call.submit.refused && !refused)
                        explain(&batch, at, count, error);
                refused += (int)call.submit.refused;
        }
        batch_free(&batch);
        return r < 0 ? r : refused;
}

int qv_client_submit(struct qv_client *client, const struct qv_client_task *task, char ret_id[QV_CLIENT_ID_SIZE])
{
        struct qv_client_submitted submitted = { 0 };
        int r = qv_client_submit_many(client, task, 1, &submitted);
        if (r < 0)
                return r;
        if (ret_id && (!submitted.status || submitted.status == -EEXIST || submitted.status == -ENOTUNIQ))
                memcpy(ret_id, submitted.id, sizeof(submitted.id));
        return submitted.status;
}
