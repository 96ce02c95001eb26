/* work.c: for workers: POST /v1/work/HANDLER hands out a task, …/ID/heartbeat keeps it, …/ID/outcome ends it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "http/api/audit.h"
#include "http/api/endpoints.h"
#include "http/server.h"
#include "store/reports.h"
#include "store/store.h"
#include "task/id.h"
#include "worker/work.h"

#define WAIT_MAX_MS 60000u

/* --- a poll ------------------------------------------------------------------------------------------------------- */

struct poll_call {
        struct http_exchange *x;
        struct work_poll poll;
};

static void answer_no_handler(struct http_exchange *x)
{
        http_answer_problem(x, 404,
                "this host has no handler %s with plugin = \"remote\"; name one of its runtime.cfg, or add it and "
                "reload",
                http_parameter(x, "handler"));
}

static void on_polled(struct work_poll *poll, enum work_verdict verdict, const struct work_task *task)
{
        struct poll_call *call = container_of(poll, struct poll_call, poll);
        struct http_exchange *x = call->x;
        free(call);
        switch (verdict) {
        case WORK_TASK:
                http_answer_json(x, 200, work_task_json(task));
                break;
        case WORK_NO_HANDLER:
                answer_no_handler(x);
                break;
        case WORK_STOPPING:
                http_answer_field(x, "Retry-After", "1");
                http_answer_problem(x, 503, "this host stops; ask another one, or this one again later");
                break;
        default:
                http_answer(x, 204, "application/json", (struct span){ "", 0 });
        }
}

/* The client is gone, so it must not get a task. */
static void on_poll_gone(struct http_exchange *x)
{
        struct poll_call *call = x->call;
        const struct work_services *work = x->services->work;
        work->leave(work->self, &call->poll);
        free(call);
        http_answer(x, 204, "application/json", (struct span){ "", 0 });
}

void http_take_work(struct http_exchange *x)
{
        struct error error = { { 0 } };
        const struct work_services *work = x->services->work;
        const char *wait = http_parameter(x, "wait");
        const char *worker = http_parameter(x, "worker");
        uint64_t wait_ms = 0;
        if (!worker || worker_name_check(span_of_text(worker), &error) < 0) {
                http_answer_problem(x, 400, "worker: %s",
                        worker ? error.text : "is missing; give yourself a name, such as HOST-PID: ?worker=web1-4711");
                return;
        }
        if (wait && units_duration_ms(wait, &wait_ms, &error) < 0) {
                http_answer_problem(x, 400, "wait: %s", error.text);
                return;
        }
        if (wait_ms > WAIT_MAX_MS) {
                http_answer_problem(x, 400, "wait: %s; at most 60s", wait);
                return;
        }
        if (!work->ttl_ms(work->self, http_parameter(x, "handler"))) {
                answer_no_handler(x);
                return;
        }
        struct poll_call *call = memory_zero(1, sizeof(*call));
        call->x = x;
        call->poll = (struct work_poll){
                .handler = http_parameter(x, "handler"), .worker = worker, .wait_ms = wait_ms, .done = on_polled
        };
        x->call = call;
        x->gone = on_poll_gone;
        work->take(work->self, &call->poll);
}

/* --- a heartbeat, an outcome -------------------------------------------------------------------------------------- */

struct say_call {
        struct http_exchange *x;
        struct work_saying saying;
        struct work_report report;
        struct store_report to_owner;
        struct buffer body; /* a copy: the client may leave, and its body with it, while the store reads it */
        char start[NOTE_HOLDER_MAX + 1];
        uint64_t ttl_ms; /* of the handler on this host; 0: unknown */
};

static void say_free(struct say_call *call)
{
        report_free(&call->report);
        buffer_free(&call->body);
        free(call);
}

static void answer_stale(struct http_exchange *x)
{
        http_answer_problem(x, 409,
                "this is not the current start of the task: it has ended, or its time was over and it runs elsewhere; "
                "forget it and poll for another");
}

static void answer_remaining(struct say_call *call, uint64_t remaining_ms, bool is_stop)
{
        struct http_exchange *x = call->x;
        say_free(call);
        http_answer_json(x, 200, json_pack("{s:I, s:b}", "remaining_ms", (json_int_t)remaining_ms, "stop", is_stop));
}

static void on_reported(struct store_request *request)
{
        struct say_call *call = container_of(request, struct say_call, to_owner.request);
        struct http_exchange *x = call->x;
        const struct store_report *report = &call->to_owner;
        int status = request->status;
        struct error error = request->error;
        if (status == 0 && report->verb == CONTROL_HEARTBEAT) {
                /* The next heartbeat shows what the owner decided; until then the recorded time counts. */
                answer_remaining(call, report->left_ms - report->left_ms / 10, false);
                return;
        }
        say_free(call);
        if (status == -ESTALE)
                answer_stale(x);
        else if (status == -EMSGSIZE)
                http_answer_problem(
                        x, 413, "%s; send it to the host that owns the shard (quiver task ID names it)", error.text);
        else if (status < 0)
                http_answer_store_problem(x, status, error.text);
        else
                http_answer_json(x, 202, json_pack("{s:s, s:b}", "id", http_parameter(x, "id"), "pending", 1));
}

/* Another host owns the shard: the report goes to it through the shard's control list. */
static void send_to_owner(struct say_call *call)
{
        struct http_exchange *x = call->x;
        struct work_fence fence = call->report.fence;
        bool is_outcome = call->report.kind == REPORT_OUTCOME;
        holder_put(call->start, &fence, "");
        call->to_owner = (struct store_report){ .request.done = on_reported,
                .verb = is_outcome ? CONTROL_OUTCOME : CONTROL_HEARTBEAT,
                .id = call->saying.id,
                .seq = fence.seq,
                .start = span_of_text(call->start),
                .data = { (const char *)call->body.data, call->body.size },
                .enough_ms = call->report.has_checkpoint ? 0 : call->ttl_ms - call->ttl_ms / 3 };
        store_report(x->services->store, &call->to_owner);
}

static void on_said(struct work_saying *saying)
{
        struct say_call *call = container_of(saying, struct say_call, saying);
        struct http_exchange *x = call->x;
        bool is_outcome = call->report.kind == REPORT_OUTCOME;
        char text[sizeof(saying->text)];
        switch (saying->verdict) {
        case WORK_ELSEWHERE:
        case WORK_UNKNOWN: /* if the outcome was taken after all, the store answers that the start is over */
                send_to_owner(call);
                return;
        case WORK_STALE:
                say_free(call);
                answer_stale(x);
                return;
        case WORK_REFUSED:
                memcpy(text, saying->text, sizeof(text));
                say_free(call);
                http_answer_problem(x, 400, "%s", text);
                return;
        default:
                break;
        }
        if (!is_outcome) {
                answer_remaining(call, saying->remaining_ms, saying->is_stop);
                return;
        }
        say_free(call);
        http_answer_json(x, 200, json_pack("{s:s}", "id", http_parameter(x, "id")));
}

static void say(struct http_exchange *x, enum report_kind kind)
{
        const struct work_services *work = x->services->work;
        struct error error = { { 0 } };
        struct store_info info;
        uint32_t shard;
        struct span id = span_of_text(http_parameter(x, "id"));
        store_info(x->services->store, &info);
        int r = task_id_check(id, &shard, &error);
        if (r < 0 || shard >= info.shards) {
                http_answer_problem(x, 404, "%s", r < 0 ? error.text : "the app has no such shard");
                return;
        }
        struct say_call *call = memory_zero(1, sizeof(*call));
        if (report_parse(x->body, kind, &call->report, &error) < 0) {
                free(call);
                http_answer_problem(x, 400, "%s", error.text);
                return;
        }
        call->x = x;
        x->call = call;
        buffer_put(&call->body, x->body.data, x->body.size);
        call->ttl_ms = work->ttl_ms(work->self, http_parameter(x, "handler"));
        call->saying = (struct work_saying){ .shard = shard, .id = id, .report = &call->report, .done = on_said };
        if (!work->say(work->self, &call->saying))
                on_said(&call->saying);
}

void http_work_heartbeat(struct http_exchange *x)
{
        say(x, REPORT_HEARTBEAT);
}

void http_work_outcome(struct http_exchange *x)
{
        say(x, REPORT_OUTCOME);
}
