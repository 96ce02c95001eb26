/* bulk.c: actions on many tasks by filter: dead tasks are requeued or dropped, others cancelled.
 *
 * It first collects the matching tasks, at most `limit`, then acts on them by the numbers that the store gave them.  A
 * number identifies one stay in a state: a task that was requeued and died again has another number, and tasks that
 * came after `before` do not match.  So a person acts on what the list showed, however long ago that was. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "http/api/endpoints.h"
#include "http/api/lists.h"
#include "http/api/look_io.h"
#include "view/json.h"

enum bulk_action { BULK_REQUEUE, BULK_DROP, BULK_CANCEL };

static const struct {
        const char *name, *done;
} words[] = { { "requeue", "requeued" }, { "drop", "dropped" }, { "cancel", "cancelled" } };

/* A task to act on. */
struct bulk_item {
        uint32_t shard;
        enum store_state state;
        uint64_t number;
        struct span id, key;
};

struct bulk_call {
        struct http_look http_look;
        struct tasks_look tasks;
        struct look_place began;
        enum bulk_action action;
        bool is_dry;
        struct arena_chunk *arena;
        struct bulk_item *items;
        uint32_t count, room;

        uint32_t at; /* how many were acted on */
        uint64_t numbers[STORE_CALL_TASKS];
        union {
                struct store_request request;
                struct store_dead dead;
                struct store_cancel cancel;
        };
        uint64_t acted;
        uint64_t pending;    /* of these, those whose owner was told to do it */
        uint64_t moved;      /* tasks that were gone by then */
        uint64_t refused;    /* tasks too long to be requeued */
        uint64_t unreadable; /* tasks that cannot be read, left as they are */
        bool has_removed;    /* a task was removed from a list that is paged by position */
};

static void free_bulk(struct http_look *http_look)
{
        struct bulk_call *call = container_of(http_look, struct bulk_call, http_look);
        tasks_look_free(&call->tasks);
        arena_free(call->arena);
        free(call->items);
        free(call);
}

static bool take_item(void *self, const struct store_listed *task, const json_t *where)
{
        struct bulk_call *call = self;
        (void)where;
        if (call->count == call->room) {
                call->room = call->room ? 2 * call->room : 64;
                call->items = memory_resize(call->items, call->room * sizeof(*call->items));
        }
        call->items[call->count++] = (struct bulk_item){ .shard = call->tasks.place.shard,
                .state = task->state,
                .number = task->number,
                .id = arena_copy(&call->arena, task->id),
                .key = arena_copy(&call->arena, task->key) };
        return true;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* One audit line, whatever the result. */
static void audit(const struct bulk_call *call)
{
        const struct http_exchange *x = call->http_look.x;
        char query[512];
        (void)snprintf(query, sizeof(query), "%.*s", (int)min_u64(x->head->query.size, sizeof(query) - 1),
                x->head->query.size ? x->head->query.data : "");
        if (!call->is_dry)
                log_event(LEVEL_INFO, "action", "by=%s action=%s on=%s tasks=%llu", LOG_QUOTE(x->who.name),
                        words[call->action].name, LOG_QUOTE(query), (unsigned long long)call->acted);
}

/* If a list that is paged by position got shorter, the next request begins where this one did.  Other lists continue
 * where it stopped. */
static struct look_place next_place(const struct bulk_call *call)
{
        struct look_place place = call->has_removed ? call->began : call->tasks.place;
        place.skip = 0;
        return place;
}

static void answer(struct bulk_call *call)
{
        struct look_place place = next_place(call);
        json_t *o = json_object();
        audit(call);
        view_json_number(o, words[call->action].done, call->acted);
        view_json_number(o, "chosen", call->count);
        if (call->action == BULK_CANCEL) {
                view_json_number(o, "pending", call->pending);
                view_json_number(o, "moved", call->moved);
        } else {
                view_json_number(o, "refused", call->refused);
                view_json_number(o, "unreadable", call->unreadable);
        }
        view_json_number(o, "looked", call->tasks.looked);
        view_json_number(o, "total", call->tasks.total);
        list_set_more(o, call->tasks.has_more, &place);
        http_look_answer(&call->http_look, 200, o);
}

/* --- acting ------------------------------------------------------------------------------------------------------- */

static void act(struct bulk_call *call);

static void fail(struct bulk_call *call)
{
        struct error error = call->request.error;
        bool is_unknown = call->request.status == -ETIMEDOUT || call->request.status == -ECONNRESET;
        audit(call);
        http_look_problem(&call->http_look, is_unknown ? 504 : 503, "%s; %llu were %s before that%s", error.text,
                (unsigned long long)call->acted, words[call->action].done,
                is_unknown ? ", and some may have been with the last step" : "");
}

static void on_dead(struct store_request *request)
{
        struct bulk_call *call = container_of(request, struct bulk_call, request);
        if (request->status < 0) {
                fail(call);
                return;
        }
        call->acted += call->dead.acted;
        call->refused += call->dead.refused;
        call->unreadable += call->dead.unreadable;
        call->at += call->dead.looked;
        act(call);
}

static void on_cancelled(struct store_request *request)
{
        struct bulk_call *call = container_of(request, struct bulk_call, request);
        enum store_state state = call->items[call->at].state;
        if (request->status < 0 && request->status != -ENOENT && request->status != -EALREADY) {
                fail(call);
                return;
        }
        bool is_done = request->status == 0;
        call->acted += is_done;
        call->moved += !is_done;
        call->pending += is_done && call->cancel.is_pending;
        call->has_removed |= is_done && (state == STATE_DELAYED || state == STATE_PARKED);
        call->at++;
        act(call);
}

static void act(struct bulk_call *call)
{
        struct store *store = call->http_look.x->services->store;
        const struct bulk_item *item = &call->items[call->at];
        uint32_t count = 0;
        if (call->at == call->count || call->is_dry) {
                answer(call);
                return;
        }
        if (call->action == BULK_CANCEL) {
                call->cancel = (struct store_cancel){ .request.done = on_cancelled,
                        .id = item->id,
                        .key = item->key,
                        .state = item->state,
                        .number = item->number };
                store_cancel(store, &call->cancel);
                return;
        }
        while (count < STORE_CALL_TASKS && call->at + count < call->count && item[count].shard == item->shard) {
                call->numbers[count] = item[count].number;
                count++;
        }
        call->dead = (struct store_dead){ .request.done = on_dead,
                .shard = item->shard,
                .verb = call->action == BULK_DROP ? DEAD_DROP : DEAD_REQUEUE,
                .numbers = call->numbers,
                .numbers_count = count };
        store_dead(store, &call->dead);
}

static void act_on_found(struct http_look *http_look)
{
        act(container_of(http_look, struct bulk_call, http_look));
}

/* --- the request -------------------------------------------------------------------------------------------------- */

/* Requires a filter, because a person who forgot it does not mean all tasks.  False: the request was answered. */
static bool check(struct http_exchange *x, const struct bulk_call *call)
{
        const struct tasks_filter *f = &call->tasks.filter;
        if (!f->before_ms) {
                http_answer_problem(
                        x, 400, "before: is missing; send time_ms of the list: what came after it is left alone");
                return false;
        }
        if (f->handler || f->key || f->host || f->error || f->cause || f->reason || f->older_ms ||
                http_is_asked(x, "all"))
                return true;
        http_answer_problem(x, 400, "which tasks? handler, key, error or another filter; or all=1");
        return false;
}

static void start(struct http_exchange *x, enum bulk_action action)
{
        struct bulk_call *call = memory_zero(1, sizeof(*call));
        call->http_look = (struct http_look){ .answer = act_on_found, .free = free_bulk };
        call->action = action;
        call->is_dry = http_is_asked(x, "dry_run");
        call->tasks.filter.state = action == BULK_CANCEL ? SHOW_ALL : SHOW_DEAD;
        call->tasks.is_plain = action != BULK_CANCEL;
        if (!list_read_filter(x, &call->tasks.filter) ||
                !list_read_page(x, &call->tasks.shown_max, &call->tasks.place) || !check(x, call)) {
                free_bulk(&call->http_look);
                return;
        }
        if (!http_parameter(x, "limit"))
                call->tasks.shown_max = LIST_LIMIT_MAX;
        call->began = call->tasks.place;
        call->tasks.now_ms = clock_wall_ms();
        call->tasks.looked_max = call->tasks.keys_max = LIST_LOOKED;
        call->tasks.show = take_item;
        call->tasks.self = call;
        tasks_look_init(&call->tasks);
        http_look_start(&call->http_look, x, &call->tasks.look);
}

void http_requeue_dead(struct http_exchange *x)
{
        start(x, BULK_REQUEUE);
}

void http_drop_dead(struct http_exchange *x)
{
        start(x, BULK_DROP);
}

void http_cancel_tasks(struct http_exchange *x)
{
        start(x, BULK_CANCEL);
}
