#include "worker/work.h"

#include "view/headers.h"
#include "view/json.h"

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
        /* Present even if empty, so that a worker need not check. */
        (void)json_object_set_new(o, "headers", json_object());
        headers_as_json(o, task->headers);
        if (task->checkpoint.size)
                view_json_span(o, "checkpoint", task->checkpoint);
        view_json_set_text(o, "fence", fence);
        view_json_number(o, "remaining_ms", task->remaining_ms);
        view_json_number(o, "ttl_ms", task->ttl_ms);
        return o;
}
