#include "client/work_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/envelope.h"
#include "task/id.h"
#include "view/json.h"
#include "worker/fence.h"

#define TIME_MAX_MS (UINT64_C(3650) * 86400 * 1000) /* ten years */

/* The memory of a task that qv_client_take() returned. */
struct work_block {
        struct qv_client_work work; /* must be first */
        json_t *object;
        char *host;
        struct buffer key, payload, checkpoint;
        struct qv_client_header2 *headers;
        struct buffer *values; /* decoded values of headers in base64 */
        size_t values_count;
};

void qv_client_work_free(struct qv_client_work *work)
{
        struct work_block *block = (struct work_block *)(void *)work;
        if (!block)
                return;
        for (size_t i = 0; i < block->values_count; i++)
                buffer_free(&block->values[i]);
        free(block->values);
        free(block->headers);
        free(block->host);
        buffer_free(&block->key);
        buffer_free(&block->payload);
        buffer_free(&block->checkpoint);
        json_decref(block->object);
        free(block);
}

static int refuse(struct error *error, const char *member)
{
        return error_set(error, -EBADMSG, "the host's answer has no good %s; is it of another version?", member);
}

/* A text without a NUL in it; NULL: it is not one. */
static const char *get_text(const json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);
        const char *text = json_string_value(value);
        return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* A number up to `max`; a missing one is 0. */
static int get_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret, struct error *error)
{
        const json_t *value = json_object_get(object, name);
        json_int_t number = json_integer_value(value);
        if ((value && !json_is_integer(value)) || number < 0 || (uint64_t)number > max)
                return refuse(error, name);
        *ret = (uint64_t)number;
        return 0;
}

/* Reads NAME or NAME_base64.  1: present; 0: missing. */
static int get_bytes(const json_t *object, const char *name, struct buffer *to, struct error *error)
{
        char coded[64];
        (void)snprintf(coded, sizeof(coded), "%s_base64", name);
        const json_t *text = json_object_get(object, name);
        const json_t *base64 = json_object_get(object, coded);
        if (!text && !base64)
                return 0;
        if ((text && base64) || !json_is_string(text ? text : base64))
                return refuse(error, name);
        if (text)
                buffer_put(to, json_string_value(text), json_string_length(text));
        else if (view_base64_decode(json_string_value(base64), json_string_length(base64), to) < 0)
                return refuse(error, coded);
        (void)buffer_text(to);
        return 1;
}

static int get_headers(struct work_block *block, struct error *error)
{
        json_t *texts = json_object_get(block->object, "headers");
        json_t *coded = json_object_get(block->object, "headers_base64");
        size_t count = json_object_size(texts) + json_object_size(coded);
        const char *name;
        json_t *value;
        if ((texts && !json_is_object(texts)) || (coded && !json_is_object(coded)) || count > TASK_HEADERS_MAX)
                return refuse(error, "headers");
        block->headers = memory_zero(count, sizeof(*block->headers));
        block->values = memory_zero(count, sizeof(*block->values));
        struct qv_client_header2 *to = block->headers;
        json_object_foreach(texts, name, value)
        {
                if (!json_is_string(value))
                        return refuse(error, "headers");
                *to++ = (struct qv_client_header2){ name, json_string_value(value), json_string_length(value) };
        }
        json_object_foreach(coded, name, value)
        {
                struct buffer *bytes = &block->values[block->values_count++];
                if (!json_is_string(value) ||
                        view_base64_decode(json_string_value(value), json_string_length(value), bytes) < 0)
                        return refuse(error, "headers_base64");
                *to++ = (struct qv_client_header2){ name, buffer_text(bytes), bytes->size };
        }
        block->work.headers = block->headers;
        block->work.headers_count = count;
        block->work.headers_text_count = json_object_size(texts);
        return 0;
}

/* The key as a C string; it may hold any bytes that a key may have. */
static int get_key(struct work_block *block, struct error *error)
{
        int r = get_bytes(block->object, "key", &block->key, error);
        if (r < 0)
                return r;
        if (block->key.size > TASK_KEY_MAX || (block->key.size && memchr(block->key.data, 0, block->key.size)))
                return refuse(error, "key");
        block->work.key = buffer_text(&block->key);
        return 0;
}

static int get_numbers(struct qv_client_work *work, const json_t *object, struct error *error)
{
        uint64_t attempt = 0, attempts_max = 0, crashes = 0;
        if (get_number(object, "attempt", UINT32_MAX, &attempt, error) < 0 ||
                get_number(object, "attempts_max", UINT32_MAX, &attempts_max, error) < 0 ||
                get_number(object, "crashes", UINT32_MAX, &crashes, error) < 0 ||
                get_number(object, "submitted_ms", INT64_MAX, &work->submitted_ms, error) < 0 ||
                get_number(object, "remaining_ms", TIME_MAX_MS, &work->remaining_ms, error) < 0 ||
                get_number(object, "ttl_ms", TIME_MAX_MS, &work->ttl_ms, error) < 0)
                return -EBADMSG;
        work->attempt = (uint32_t)attempt;
        work->attempts_max = (uint32_t)attempts_max;
        work->crashes = (uint32_t)crashes;
        return attempt && work->ttl_ms ? 0 : refuse(error, attempt ? "ttl_ms" : "attempt");
}

static int get_names(struct qv_client_work *work, const json_t *object, const char *handler, struct error *error)
{
        struct work_fence fence;
        uint32_t shard;
        work->handler = get_text(object, "handler");
        work->id = get_text(object, "id");
        work->fence = get_text(object, "fence");
        if (!work->handler || strcmp(work->handler, handler) != 0)
                return refuse(error, "handler");
        if (!work->id || task_id_check(span_of_text(work->id), &shard, NULL) < 0)
                return refuse(error, "id");
        if (!work->fence || fence_parse(span_of_text(work->fence), &fence, NULL) < 0)
                return refuse(error, "fence");
        work->fence_epoch = fence.epoch;
        work->fence_start = fence.start;
        return 0;
}

int work_of_json(
        json_t *object, const char *handler, const char *host, struct qv_client_work **ret, struct error *error)
{
        struct work_block *block = memory_zero(1, sizeof(*block));
        struct qv_client_work *work = &block->work;
        block->object = json_incref(object);
        block->host = memory_text(host);
        *work = (struct qv_client_work){ .size = sizeof(*work), .host = block->host };
        int r = get_names(work, object, handler, error);
        if (r == 0)
                r = get_numbers(work, object, error);
        if (r == 0)
                r = get_headers(block, error);
        if (r == 0)
                r = get_key(block, error);
        if (r == 0)
                r = get_bytes(object, "payload", &block->payload, error);
        if (r == 0)
                r = refuse(error, "payload");
        if (r > 0)
                r = get_bytes(object, "checkpoint", &block->checkpoint, error);
        if (r < 0) {
                qv_client_work_free(work);
                return r;
        }
        work->payload = buffer_text(&block->payload);
        work->payload_size = block->payload.size;
        work->checkpoint = r ? buffer_text(&block->checkpoint) : NULL;
        work->checkpoint_size = block->checkpoint.size;
        *ret = work;
        return 0;
}

int kept_of_json(struct span json, struct qv_client_kept *ret, struct error *error)
{
        struct qv_client_kept kept = QV_CLIENT_KEPT_INIT;
        json_t *o = json_loadb(json.size ? json.data : "", json.size, JSON_REJECT_DUPLICATES, NULL);
        const json_t *stop = json_object_get(o, "stop");
        int r = json_is_boolean(stop) && json_object_get(o, "remaining_ms")
                        ? get_number(o, "remaining_ms", TIME_MAX_MS, &kept.remaining_ms, error)
                        : refuse(error, "remaining_ms and stop");
        kept.stop = json_is_true(stop);
        json_decref(o);
        if (r == 0)
                *ret = kept;
        return r;
}
