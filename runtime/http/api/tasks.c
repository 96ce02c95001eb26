/* tasks.c: one task by its id: shows its payload, cancels it, and requeues, edits or drops a dead one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "http/api/audit.h"
#include "http/api/endpoints.h"
#include "http/api/intake.h"
#include "look/keep.h"
#include "store/admin.h"

/* A task that changes its state between finding and acting is searched again; it cannot do so for ever. */
#define CANCEL_TRIES 100

struct task_act {
        struct http_exchange *x;
        union {
                struct store_request request;
                struct store_find find;
                struct store_cancel cancel;
                struct store_reschedule reschedule;
                struct store_move move;
                struct store_dead dead;
                struct store_submit submit;
        };
        struct span id; /* a parameter of the exchange */
        uint32_t shard;
        bool is_cancel;
        bool is_reschedule;
        bool is_move, is_forced;
        enum lane lane;           /* is_move: the target */
        uint64_t delay_ms, at_ms; /* is_reschedule: one of both */
        bool is_edit;             /* a dead task is queued again with another payload */
        struct kept_task old;     /* EDIT */
        struct store_submission item;
        char name[TASK_ID_MAX + 16];
        unsigned tries;
        char key[TASK_KEY_MAX + 1];
        size_t key_size;
};

bool http_check_task_id(struct http_exchange *x, struct span id, uint32_t *ret_shard)
{
        struct error error = { { 0 } };
        struct store_info info;
        uint32_t shard = 0;
        store_info(x->services->store, &info);
        int r = task_id_check(id, &shard, &error);
        if (r < 0 || shard >= info.shards) {
                http_answer_problem(x, 404, "%s", r < 0 ? error.text : "the app has no such shard");
                return false;
        }
        if (ret_shard)
                *ret_shard = shard;
        return true;
}

static struct task_act *task_act_start(struct http_exchange *x)
{
        struct span id = span_of_text(http_parameter(x, "id"));
        uint32_t shard;
        if (!http_check_task_id(x, id, &shard))
                return NULL;
        struct task_act *call = memory_zero(1, sizeof(*call));
        call->x = x;
        call->id = id;
        call->shard = shard;
        x->call = call;
        return call;
}

static void act_free(struct task_act *call)
{
        arena_free(call->old.arena);
        free(call);
}

/* Answers and frees. */
static void fail(struct task_act *call)
{
        struct http_exchange *x = call->x;
        int status = call->request.status;
        struct error error = call->request.error;
        act_free(call);
        if (status == -ENOENT)
                http_answer_problem(x, 404, "there is no such task: it is done or was dropped, or never was");
        else if (status == -EALREADY)
                http_answer_problem(x, 409, "this task is dead already");
        else
                http_answer_store_problem(x, status, error.text);
}

static void end(struct task_act *call, unsigned status, json_t *body)
{
        struct http_exchange *x = call->x;
        act_free(call);
        http_answer_json(x, status, body);
}

/* --- finding the task -------------------------------------------------------------------------------------------- */

static void on_cancelled(struct store_request *request);

static void cancel(struct task_act *call, const struct store_listed *task)
{
        call->key_size = min_u64(task->key.size, TASK_KEY_MAX);
        memcpy(call->key, task->key.data, call->key_size);
        call->cancel = (struct store_cancel){ .request.done = on_cancelled,
                .id = call->id,
                .key = { call->key, call->key_size },
                .state = task->state,
                .number = task->number };
        store_cancel(call->x->services->store, &call->cancel);
}

/* The payload is untrusted: a browser must not run it as a page of ours. */
static void answer_payload(struct task_act *call)
{
        struct http_exchange *x = call->x;
        struct store_listed task = *call->find.task;
        /* The payload points into the reply, which outlives this call. */
        free(call);
        if (task.long_bytes) {
                http_answer_problem(x, 409,
                        "the task is dead as too long: it has %llu bytes, of which the list keeps the first",
                        (unsigned long long)task.long_bytes);
                return;
        }
        http_answer_field(x, "Content-Disposition", "attachment; filename=\"payload\"");
        http_answer_field(x, "Content-Security-Policy", "sandbox; default-src 'none'");
        http_answer(x, 200, "application/octet-stream", task.envelope.payload);
}

static void submit_edited(struct task_act *call);
static void reschedule(struct task_act *call);
static void move(struct task_act *call);

static void on_found(struct store_request *request)
{
        struct task_act *call = container_of(request, struct task_act, request);
        struct store *store = call->x->services->store;
        if (request->status < 0) {
                fail(call);
        } else if (call->find.task && call->is_cancel) {
                struct store_listed task = *call->find.task;
                cancel(call, &task);
        } else if (call->find.task && call->is_reschedule) {
                reschedule(call);
        } else if (call->find.task && call->is_move) {
                move(call);
        } else if (call->find.task && call->is_edit) {
                submit_edited(call);
        } else if (call->find.task) {
                answer_payload(call);
        } else if (call->find.is_end) {
                call->request.status = -ENOENT;
                fail(call);
        } else {
                /* Searches a slice at a time, so that other requests get their turn. */
                store_find(store, &call->find);
        }
}

static void find(struct task_act *call)
{
        call->find = (struct store_find){ .request.done = on_found, .id = call->id };
        store_find(call->x->services->store, &call->find);
}

/* Whether the store did it.  If it did not find the task, somebody changed it meanwhile, and it is searched again; any
 * other error fails the call. */
static bool is_done(struct task_act *call)
{
        int status = call->request.status;
        if (status == -ENOENT && call->tries++ < CANCEL_TRIES)
                find(call);
        else if (status < 0)
                fail(call);
        else
                return true;
        return false;
}

static void on_cancelled(struct store_request *request)
{
        struct task_act *call = container_of(request, struct task_act, request);
        if (!is_done(call))
                return;
        http_audit(call->x, "cancel", http_parameter(call->x, "id"));
        bool is_pending = call->cancel.is_pending;
        end(call, is_pending ? 202 : 200,
                json_pack("{s:s, s:b}", "id", http_parameter(call->x, "id"), "pending", is_pending));
}

void http_get_payload(struct http_exchange *x)
{
        struct task_act *call = task_act_start(x);
        if (call)
                find(call);
}

void http_cancel_task(struct http_exchange *x)
{
        struct task_act *call = task_act_start(x);
        if (!call)
                return;
        call->is_cancel = true;
        find(call);
}

/* --- another lane --- */

static void answer_conflict(struct task_act *call, const char *text)
{
        struct http_exchange *x = call->x;
        act_free(call);
        http_answer_problem(x, 409, "%s", text);
}

static void on_moved(struct store_request *request)
{
        struct task_act *call = container_of(request, struct task_act, request);
        struct http_exchange *x = call->x;
        bool is_dead = call->move.state == STATE_DEAD;
        if (request->status == -EALREADY || request->status == -EPERM || request->status == -ENOTSUP ||
                (request->status == -ENOENT && is_dead)) {
                struct error error = request->error;
                answer_conflict(call, error.text);
                return;
        }
        if (!is_done(call))
                return;
        bool is_pending = call->move.is_pending;
        http_audit(x, "move", http_parameter(x, "id"));
        end(call, is_pending ? 202 : 200,
                json_pack("{s:s, s:s, s:b}", "id", http_parameter(x, "id"), "lane", lane_name(call->lane), "pending",
                        is_pending));
}

static void move(struct task_act *call)
{
        struct store_move asked;
        struct error error = { "" };
        const struct store_listed *task = call->find.task;
        if (store_move_fill(task, call->lane, call->is_forced, &asked, &error) < 0) {
                answer_conflict(call, error.text);
                return;
        }
        call->key_size = min_u64(task->key.size, TASK_KEY_MAX);
        memcpy(call->key, task->key.data, call->key_size);
        asked.request.done = on_moved;
        asked.id = call->id;
        asked.key = (struct span){ call->key, call->key_size };
        call->move = asked;
        store_move(call->x->services->store, &call->move);
}

void http_move_task(struct http_exchange *x)
{
        const char *lane = http_parameter(x, "lane"), *force = http_parameter(x, "force");
        enum lane to;
        if (!lane || !lane_parse(span_of_text(lane), &to)) {
                http_answer_problem(x, 400, "say where to: lane=high, lane=normal or lane=low");
                return;
        }
        if (force && strcmp(force, "true") != 0) {
                http_answer_problem(x, 400, "force: true, or leave it out");
                return;
        }
        struct task_act *call = task_act_start(x);
        if (!call)
                return;
        call->is_move = true;
        call->is_forced = force;
        call->lane = to;
        find(call);
}

/* --- rescheduling a delayed task --- */

static void on_rescheduled(struct store_request *request)
{
        struct task_act *call = container_of(request, struct task_act, request);
        struct http_exchange *x = call->x;
        if (!is_done(call))
                return;
        uint64_t due_ms = call->at_ms ? call->at_ms : clock_wall_ms() + call->delay_ms;
        http_audit(x, "reschedule", http_parameter(x, "id"));
        end(call, 200, json_pack("{s:s, s:I}", "id", http_parameter(x, "id"), "due_ms", (json_int_t)due_ms));
}

static void reschedule(struct task_act *call)
{
        struct http_exchange *x = call->x;
        const struct store_listed *task = call->find.task;
        if (task->state != STATE_DELAYED) {
                act_free(call);
                http_answer_problem(x, 409, "this task is not delayed: it cannot be given another time");
                return;
        }
        call->reschedule = (struct store_reschedule){ .request.done = on_rescheduled,
                .id = call->id,
                .number = task->number,
                .delay_ms = call->delay_ms,
                .at_ms = call->at_ms };
        store_reschedule(x->services->store, &call->reschedule);
}

void http_reschedule_task(struct http_exchange *x)
{
        struct error error = { "" };
        const char *delay = http_parameter(x, "delay"), *at = http_parameter(x, "at");
        uint64_t delay_ms = 0, at_ms = 0;
        int r = 0;
        if (!delay == !at)
                r = error_set(&error, -EINVAL, "say when: either delay=10m or at=2026-11-20T09:00:00Z");
        else if (delay && units_duration_ms(delay, &delay_ms, &error) < 0)
                r = error_prefix(&error, -EINVAL, "delay");
        else if (at && timestamp_parse(at, false, 0, &at_ms, &error) < 0)
                r = error_prefix(&error, -EINVAL, "at");
        if (r < 0) {
                http_answer_problem(x, 400, "%s", error.text);
                return;
        }
        struct task_act *call = task_act_start(x);
        if (!call)
                return;
        call->is_reschedule = true;
        call->delay_ms = delay_ms;
        call->at_ms = at_ms;
        find(call);
}

/* --- a dead task ------------------------------------------------------------------------------------------------- */

static void on_dead_done(struct store_request *request)
{
        struct task_act *call = container_of(request, struct task_act, request);
        const char *verb = call->dead.verb == DEAD_REQUEUE ? "requeue" : "drop";
        if (request->status == 0 && !call->dead.acted && call->dead.refused) {
                struct http_exchange *x = call->x;
                free(call);
                http_answer_problem(x, 409,
                        "this task is too long to be requeued; drop it, or raise store.max_payload and submit it "
                        "again");
                return;
        }
        if (request->status == 0 && !call->dead.acted)
                request->status = -ENOENT;
        if (request->status == -ENOENT) {
                struct http_exchange *x = call->x;
                free(call);
                http_answer_problem(x, 404, "there is no dead task of this id");
                return;
        }
        if (request->status < 0) {
                fail(call);
                return;
        }
        http_audit(call->x, verb, http_parameter(call->x, "id"));
        end(call, 200, json_pack("{s:s, s:s}", "id", http_parameter(call->x, "id"), "done", verb));
}

static void act_on_dead(struct http_exchange *x, enum store_dead_verb verb)
{
        struct task_act *call = task_act_start(x);
        if (!call)
                return;
        call->dead = (struct store_dead){
                .request.done = on_dead_done, .shard = call->shard, .verb = verb, .ids = &call->id, .ids_count = 1
        };
        store_dead(x->services->store, &call->dead);
}

/* --- a dead task with another payload ---------------------------------------------------------------------------- */

/* The new task is stored even if removing the dead one failed: somebody may have dropped or requeued that one
 * meanwhile. */
static void on_replaced(struct store_request *request)
{
        struct task_act *call = container_of(request, struct task_act, request);
        const char *id = http_parameter(call->x, "id");
        if (request->status < 0) {
                struct http_exchange *x = call->x;
                struct error error = request->error;
                char as[TASK_ID_MAX + 1];
                (void)snprintf(as, sizeof(as), "%s", call->item.id);
                act_free(call);
                http_answer_problem(x, 504,
                        "%s; the task is queued again as %s, and the dead one may be there still: repeat this, or drop "
                        "it",
                        error.text, as);
                return;
        }
        http_audit(call->x, "requeue-edited", id);
        end(call, 200, json_pack("{s:s, s:s, s:s}", "id", id, "done", "requeue", "as", call->item.id));
}

static void on_resubmitted(struct store_request *request)
{
        struct task_act *call = container_of(request, struct task_act, request);
        struct http_exchange *x = call->x;
        struct error error = { { 0 } };
        if (request->status < 0) {
                fail(call);
                return;
        }
        unsigned status = intake_status(&call->item, &error);
        if (status != 202) {
                act_free(call);
                http_answer_problem(x, status, "%s", error.text);
                return;
        }
        call->dead = (struct store_dead){
                .request.done = on_replaced, .shard = call->shard, .verb = DEAD_DROP, .ids = &call->id, .ids_count = 1
        };
        store_dead(x->services->store, &call->dead);
}

/* Stores the new task first, with an id that makes repeating safe, so that there is always at least one of both. */
static void submit_edited(struct task_act *call)
{
        struct http_exchange *x = call->x;
        struct envelope *e = &call->item.envelope;
        keep_task(&call->old, call->find.task);
        if (call->old.task.state != STATE_DEAD || !call->old.task.envelope.handler.size) {
                bool is_dead = call->old.task.state == STATE_DEAD;
                act_free(call);
                http_answer_problem(x, 409, "%s",
                        is_dead ? "this task cannot be read, so it cannot be queued again" : "this task is not dead");
                return;
        }
        *e = call->old.task.envelope;
        e->id = (struct span){ 0 };
        e->payload = x->body;
        e->submitted_ms = e->not_before_ms = e->unique_ms = 0;
        if (span_is(e->key, call->id))
                e->key = (struct span){ 0 };
        (void)snprintf(call->name, sizeof(call->name), "requeue %.*s", (int)call->id.size, call->id.data);
        call->item.idempotency = span_of_text(call->name);
        call->submit = (struct store_submit){ .request.done = on_resubmitted, .items = &call->item, .items_count = 1 };
        store_submit(x->services->store, &call->submit);
}

void http_requeue_task(struct http_exchange *x)
{
        if (!x->body.size && !http_parameter(x, "edit")) {
                act_on_dead(x, DEAD_REQUEUE);
                return;
        }
        struct task_act *call = task_act_start(x);
        if (!call)
                return;
        call->is_edit = true;
        find(call);
}

void http_drop_task(struct http_exchange *x)
{
        act_on_dead(x, DEAD_DROP);
}
