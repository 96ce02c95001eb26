#include "client/say_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/numbers.h"
#include "client/admin.h"
#include "client/sized_struct.h"
#include "view/headers.h"
#include "view/json.h"

json_t *heartbeat_json(const char *fence, const struct qv_client_heartbeat *heartbeat)
{
        json_t *o = json_object();
        view_json_set_text(o, "fence", fence);
        if (heartbeat->has_progress)
                (void)json_object_set_new(o, "progress",
                        json_pack("[I, I]", (json_int_t)min_u64(heartbeat->progress_done, INT64_MAX),
                                (json_int_t)min_u64(heartbeat->progress_total, INT64_MAX)));
        if (heartbeat->checkpoint)
                view_json_bytes(o, "checkpoint", heartbeat->checkpoint, heartbeat->checkpoint_size);
        return o;
}

static void put_duration(json_t *object, const char *name, uint64_t ms)
{
        char text[32];
        (void)snprintf(text, sizeof(text), "%" PRIu64 "ms", ms);
        view_json_set_text(object, name, text);
}

/* -EINVAL: a field is set that a follow-up cannot have. */
static int put_follow_up(json_t *list, const struct qv_client_task *given, struct error *error)
{
        static const char *const lanes[] = { "low", "normal", "high" };
        struct qv_client_task task = QV_CLIENT_TASK_INIT;
        struct buffer headers = { 0 };
        struct envelope envelope;
        if (SIZED_COPY(&task, given) < 0)
                return error_set(error, -EINVAL, "size: start from QV_CLIENT_TASK_INIT");
        if (task.unique_ms || task.timeout_ms || task.reply_ms || task.attempts || task.idempotency_key || task.merge ||
                task.debounce_ms || task.not_before_ms)
                return error_set(error, -EINVAL,
                        "has handler, key, lane, payload, delay_ms, headers and headers2, and nothing else");
        int r = client_check_task(&task, error);
        if (r == 0)
                r = client_task_envelope(&task, &headers, &envelope, error);
        if (r == 0) {
                json_t *o = json_object();
                view_json_set_text(o, "handler", task.handler);
                if (task.key)
                        view_json_set_text(o, "key", task.key);
                view_json_set_text(o, "lane", lanes[task.lane + 1]);
                if (task.delay_ms)
                        put_duration(o, "delay", task.delay_ms);
                view_json_bytes(o, "payload", task.payload, task.payload_size);
                headers_as_json(o, envelope.headers);
                (void)json_array_append_new(list, o);
        }
        buffer_free(&headers);
        return r;
}

json_t *finish_json(const char *fence, const struct qv_client_finish *finish, struct error *error)
{
        static const char *const outcomes[] = { "done", "retry", "later", "reject", "unavailable", "limited" };
        json_t *follow_ups = NULL;
        if (finish->outcome < 0 || finish->outcome > QV_CLIENT_FINISH_LIMITED) {
                (void)error_set(
                        error, -EINVAL, "finish.outcome: %d; it is one of QV_CLIENT_FINISH_...", finish->outcome);
                return NULL;
        }
        json_t *o = json_object();
        view_json_set_text(o, "fence", fence);
        view_json_set_text(o, "outcome", outcomes[finish->outcome]);
        if (finish->result)
                view_json_bytes(o, "result", finish->result, finish->result_size);
        if (finish->error)
                view_json_set_text(o, "error", finish->error);
        if (finish->retry_after_ms)
                put_duration(o, "retry_after", finish->retry_after_ms);
        if (finish->checkpoint)
                view_json_bytes(o, "checkpoint", finish->checkpoint, finish->checkpoint_size);
        if (finish->follow_ups_count)
                (void)json_object_set_new(o, "follow_ups", follow_ups = json_array());
        for (size_t i = 0; i < finish->follow_ups_count; i++) {
                const char *at = (const char *)finish->follow_ups + i * finish->follow_ups->size;
                if (put_follow_up(follow_ups, (const struct qv_client_task *)(const void *)at, error) < 0) {
                        (void)error_prefix(error, -EINVAL, "finish.follow_ups[%zu]", i);
                        json_decref(o);
                        return NULL;
                }
        }
        return o;
}
