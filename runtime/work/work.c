#include "work/work.h"

#include "task/envelope.h"
#include "view/json.h"

/* Texts in `headers`, bytes in `headers_base64` as they stand in the envelope. */
static void set_headers(json_t *o, struct span lines)
{
        json_t *texts = json_object();
        json_t *bytes = json_object();
        struct task_header header;
        while (header_next(&lines, &header)) {
                json_t *name = view_json_text_span(header.name);
                (void)json_object_set_new(
                        header.is_base64 ? bytes : texts, json_string_value(name), view_json_text_span(header.value));
                json_decref(name);
        }
        (void)json_object_set_new(o, "headers", texts);
        if (json_object_size(bytes))
                (void)json_object_set(o, "headers_base64", bytes);
        json_decref(bytes);
}

json_t *work_task_json(const struct work_task *task)
{
        char fence[FENCE_TEXT_MAX];
        json_t *o = json_object();
        fence_put(fence, &task->fence);
        view_json_span(o, "id", task->id);
        view_json_span(o, "handler", task->handler);
        view_json_span(o, "key", task->key);
        view_json_span(o, "payload", task->payload);
        view_json_number(o, "attempt", task->attempt);
        view_json_number(o, "attempts_max", task->attempts_max);
        view_json_number(o, "crashes", task->crashes);
        if (task->submitted_ms)
                view_json_number(o, "submitted_ms", task->submitted_ms);
        set_headers(o, task->headers);
        if (task->checkpoint.size)
                view_json_span(o, "checkpoint", task->checkpoint);
        view_json_set_text(o, "fence", fence);
        view_json_number(o, "remaining_ms", task->remaining_ms);
        view_json_number(o, "ttl_ms", task->ttl_ms);
        return o;
}
