/* borrow_io.c: tasks of other hosts that run here: from the message to a seat, and their outcomes to the store. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/lend/lend_io.h"
#include "host/lend/seat_outcome.h"

/* --- the borrowed tasks --- */

static struct borrowed *find(const struct lend *l, const struct lend_message *m)
{
        for (struct borrowed *b = l->list; b; b = b->next)
                if (b->message.shard == m->shard && b->message.fence.seq == m->fence.seq &&
                        b->message.fence.epoch == m->fence.epoch && b->message.fence.start == m->fence.start)
                        return b;
        return NULL;
}

static void forget(struct borrowed *b)
{
        struct lend *l = b->lend;
        leases_set(l->leases, b->lease, 0, 0);
        l->is_lease_used[b->lease - l->lease_first] = false;
        DL_DELETE(l->list, b);
        l->list_count--;
        buffer_free(&b->headers);
        buffer_free(&b->checkpoint);
        buffer_free(&b->outcome);
        buffer_free(&b->data);
        free(b->bytes);
        free(b);
}

/* Tells the owner that the task did not start here and will not, so that it may start the task at once. */
static void say_declined(struct lend *l, const struct lend_message *m)
{
        struct lend_message no = lend_message_of(l, LEND_DECLINE);
        no.shard = m->shard;
        no.fence = m->fence;
        no.id = m->id;
        lend_post(l, m->from, &no);
}

static void decline(struct borrowed *b)
{
        say_declined(b->lend, &b->message);
        forget(b);
}

uint32_t borrow_count_coming(const struct lend *l, uint32_t slot)
{
        uint32_t count = 0;
        for (const struct borrowed *b = l->list; b; b = b->next)
                count += b->slot == slot && b->time.state == BORROWED_CONFIRMING;
        return count;
}

/* --- from the message to a seat --- */

/* The handler that serves such tasks here; NULL: none does, or it runs no tasks of other hosts. */
static struct handler *handler_of(const struct lend *l, struct span name, bool is_worker)
{
        uint32_t slot = routes_look(&l->handlers->dispatch->routes, name);
        struct handler *handler = slot < l->handlers->count ? l->handlers->list[slot] : NULL;
        const struct generation *generation = handler ? handler_current(handler) : NULL;
        if (!generation || !generation->settings->spread || l->handlers->is_leaving ||
                handler_is_remote(generation->settings) != is_worker)
                return NULL;
        return handler;
}

static bool has_room(const struct lend *l, const struct handler *handler, const struct lend_message *m, uint32_t coming)
{
        const struct generation *generation = handler_current(handler);
        if (l->handlers->dispatch->pools[handler->slot].is_paused)
                return false;
        if (m->is_worker)
                return remote_own_polls(&handler->remote) > coming;
        return pool_spare_seats(&generation->pool_io.pool) > coming &&
               m->task.payload.size <= generation->pool_io.start.payload_max;
}

static uint32_t find_lease(const struct lend *l)
{
        uint32_t i = 0;
        while (i < LEND_LEASES && l->is_lease_used[i])
                i++;
        return i;
}

static void pack(struct borrowed *b)
{
        const struct lend_message *m = &b->message;
        (void)snprintf(b->handler, sizeof(b->handler), "%.*s", (int)m->task.handler.size, m->task.handler.data);
        handler_pack_headers(m->task.headers, &b->headers);
        if (m->is_worker)
                holder_put(b->start, &m->fence, "");
        else
                seat_start_put(b->start, &m->fence);
        buffer_put(&b->checkpoint, m->checkpoint.data, m->checkpoint.size);
        b->pool_task = (struct pool_task){ .is_borrowed = true, .lane = m->lane };
        b->pool_task.task = (struct ring_task){ .id = m->id,
                .key = m->id,
                .handler = b->handler,
                .attempt = m->attempt,
                .attempts_max = m->attempts_max,
                .crashes = m->crashes,
                .submitted_ms = m->task.submitted_ms,
                .lane = (int32_t)LANE_NORMAL - (int32_t)m->lane,
                .lease = b->lease,
                .fence_epoch = m->fence.epoch,
                .fence_start = m->fence.start,
                .timeout_ms = m->timeout_ms,
                .headers = b->headers.data,
                .headers_size = b->headers.size,
                .checkpoint = m->checkpoint.data,
                .checkpoint_size = m->checkpoint.size,
                .payload = m->task.payload.data,
                .payload_size = m->task.payload.size };
}

void borrow_take(struct lend *l, const struct lend_message *message, struct span bytes, uint64_t now_ms)
{
        struct handler *handler = handler_of(l, message->task.handler, message->is_worker);
        uint32_t lease = find_lease(l);
        if (message->shard >= l->handlers->dispatch->shards_count ||
                !borrower_is_new(&l->starts[message->shard], &message->fence))
                return;
        if (handler)
                borrower_got(&l->borrower, handler->slot, message->from);
        if (!handler || lease == LEND_LEASES || !has_room(l, handler, message, borrow_count_coming(l, handler->slot))) {
                say_declined(l, message);
                return;
        }
        struct borrowed *b = memory_zero(1, sizeof(*b));
        b->lend = l;
        b->slot = handler->slot;
        b->lease = l->lease_first + lease;
        b->bytes = memory_alloc(bytes.size + 1);
        memcpy(b->bytes, bytes.data, bytes.size);
        /* Parses again so that the message points into our copy of the bytes. */
        (void)lend_message_parse((struct span){ b->bytes, bytes.size }, &b->message, NULL);
        l->is_lease_used[lease] = true;
        l->list_count++;
        DL_APPEND(l->list, b);
        pack(b);
        borrowed_begin(&b->time, message->ttl_ms, now_ms);
        log_event(LEVEL_DEBUG, "borrowed", "handler=%s task=%s from=%s", handler->name, message->id, message->host);
}

/* Publishes the start's deadline in the lease page: runners do not start it later. */
static void show_lease(const struct borrowed *b)
{
        leases_set(b->lend->leases, b->lease, b->message.fence.epoch, b->time.until_ms * NS_PER_MS);
}

static void pass_on(struct borrowed *b, struct handler *handler, uint64_t now_ms)
{
        const struct lend_message *m = &b->message;
        struct work_task task = { .id = span_of_text(m->id),
                .key = m->task.key.size ? m->task.key : span_of_text(m->id),
                .handler = m->task.handler,
                .payload = m->task.payload,
                .headers = m->task.headers,
                .checkpoint = m->checkpoint,
                .attempt = m->attempt,
                .attempts_max = m->attempts_max,
                .crashes = m->crashes,
                .submitted_ms = m->task.submitted_ms,
                .fence = m->fence,
                .remaining_ms = b->time.until_ms - now_ms,
                .ttl_ms = m->ttl_ms };
        if (remotes_pass_on(handler, &task)) {
                handler->counts.borrowed++;
                forget(b);
        } else {
                decline(b);
        }
}

/* The store confirmed the recorded start: offers the task to a seat or a worker. */
static void offer(struct borrowed *b, uint64_t now_ms)
{
        struct lend *l = b->lend;
        struct handler *handler = handler_of(l, b->message.task.handler, b->message.is_worker);
        if (!handler || !borrowed_may_start(&b->time, now_ms) || !has_room(l, handler, &b->message, 0)) {
                decline(b);
                return;
        }
        b->slot = handler->slot;
        if (b->message.is_worker) {
                pass_on(b, handler, now_ms);
                return;
        }
        show_lease(b);
        b->is_in_pool = true;
        b->offered_ms = now_ms;
        handler->counts.borrowed++;
        pool_io_offer(&handler_current(handler)->pool_io, &b->pool_task, now_ms);
}

/* --- heartbeats and reports --- */

static bool find_seat(const struct borrowed *b, struct ring_seat_view *ret_seat)
{
        const struct pool_runner *runner = b->is_in_pool ? b->pool_task.runner : NULL;
        const struct process *p = runner ? runner->process : NULL;
        struct ring_view view;
        for (uint32_t cursor = 0; p && ring_host_each(&p->ring, &cursor, &view);)
                if (view.is_started && view.owner == &b->pool_task) {
                        ring_host_seat(&p->ring, view.seat, ret_seat);
                        return true;
                }
        return false;
}

/* Fills in a heartbeat in the form of a worker's (worker/report.h). */
static void put_heartbeat(struct borrowed *b)
{
        char fence[FENCE_TEXT_MAX];
        struct ring_seat_view seat;
        fence_put(fence, &b->message.fence);
        buffer_clear(&b->data);
        buffer_printf(&b->data, "{\"fence\":\"%s\"", fence);
        if (find_seat(b, &seat) && seat.progressed_ns)
                buffer_printf(&b->data, ",\"progress\":[%" PRIu64 ",%" PRIu64 "]",
                        min_u64(seat.progress_done, TASK_NUMBER_MAX), min_u64(seat.progress_total, TASK_NUMBER_MAX));
        if (b->has_saved) {
                buffer_printf(&b->data, ",\"checkpoint_base64\":\"");
                base64_put(&b->data, b->checkpoint.data, b->checkpoint.size);
                buffer_printf(&b->data, "\"");
        }
        buffer_printf(&b->data, "}");
}

static void on_reported(struct store_request *request);

static void report(struct borrowed *b, enum store_control_verb verb, struct span data)
{
        const struct lend_message *m = &b->message;
        b->report = (struct store_report){ .request.done = on_reported,
                .verb = verb,
                .id = span_of_text(m->id),
                .seq = m->fence.seq,
                .start = span_of_text(b->start),
                .data = data,
                /* A checkpoint is reported at once. */
                .enough_ms = b->has_saved ? 0 : b->time.ttl_ms - b->time.ttl_ms / 3 };
        if (verb == CONTROL_HEARTBEAT)
                b->has_saved = false;
        store_report(b->lend->store, &b->report);
}

static void on_reported(struct store_request *request)
{
        struct borrowed *b = container_of(request, struct borrowed, report.request);
        uint64_t now_ms = clock_boot_ms();
        bool is_outcome = b->report.verb == CONTROL_OUTCOME;
        bool was_confirming = b->time.state == BORROWED_CONFIRMING;
        if (request->status < 0 && request->status != -ECANCELED)
                log_event(LEVEL_DEBUG, "report-failed", "task=%s from=%s text=%s", b->message.id, b->message.host,
                        LOG_QUOTE(request->error.text));
        if (request->status == -ESTALE || (request->status == 0 && is_outcome)) {
                borrowed_refused(&b->time);
        } else if (request->status < 0) {
                b->has_saved |= !is_outcome && b->checkpoint.size;
                borrowed_failed(&b->time, now_ms);
        } else {
                borrowed_confirmed(&b->time, b->report.left_ms);
                if (was_confirming)
                        offer(b, now_ms);
                else if (b->time.state == BORROWED_HELD)
                        show_lease(b);
        }
}

/* --- outcomes --- */

static void put_outcome(struct borrowed *b, const struct settled *settled, uint64_t now_ms)
{
        const struct ring_reply *reply = settled->reply;
        struct seat_outcome o = { .fence = b->message.fence,
                .outcome = settled->outcome,
                .is_suspect = settled->is_suspect,
                .is_excused = settled->is_excused,
                .has_reply = reply != NULL,
                .ran_ms = reply && reply->ended_ns > reply->started_ns
                                  ? (reply->ended_ns - reply->started_ns) / NS_PER_MS
                                  : now_ms - b->offered_ms,
                .error = settled->error,
                .has_checkpoint = settled->checkpoint != NULL,
                .checkpoint = { settled->checkpoint, settled->checkpoint_size } };
        if (reply) {
                o.reply = *reply;
                o.reply.has_checkpoint = false;
                o.reply.checkpoint_size = 0;
        }
        buffer_clear(&b->outcome);
        seat_outcome_put(&b->outcome, &o);
        if (b->outcome.size <= STORE_REPORT_MAX)
                return;
        char text[160];
        (void)snprintf(text, sizeof(text),
                SEAT_FAILED " cannot send an outcome of %zu bytes (at most %u); it runs at its owner", b->outcome.size,
                STORE_REPORT_MAX);
        o = (struct seat_outcome){ .fence = b->message.fence,
                .outcome = OUTCOME_INTERRUPTED,
                .is_refused = true,
                .ran_ms = o.ran_ms,
                .error = text };
        buffer_clear(&b->outcome);
        seat_outcome_put(&b->outcome, &o);
}

void lend_settled(struct lend *l, struct pool_task *task, struct generation *generation, const struct settled *settled)
{
        struct borrowed *b = (struct borrowed *)task;
        uint64_t now_ms = clock_boot_ms();
        const struct handler *handler = generation->handler;
        struct generation *current = handler_current(handler);
        b->is_in_pool = false;
        /* A reload took the task back before it started: the new generation gets it. */
        if (settled->never_started && !b->time.is_told_to_stop && current && current != generation &&
                !handler_is_remote(current->settings) && !l->handlers->is_leaving &&
                borrowed_may_start(&b->time, now_ms)) {
                b->is_in_pool = true;
                pool_io_offer(&current->pool_io, &b->pool_task, now_ms);
                return;
        }
        if (settled->never_started && !b->time.is_calling) {
                decline(b);
                return;
        }
        put_outcome(b, settled, now_ms);
        borrowed_ended(&b->time, now_ms);
}

void lend_saved(struct pool_task *task, const void *checkpoint, size_t size)
{
        struct borrowed *b = (struct borrowed *)task;
        buffer_clear(&b->checkpoint);
        buffer_put(&b->checkpoint, checkpoint, size);
        b->has_saved = true;
        b->time.call_ms = 0; /* makes the next heartbeat due now */
}

void borrow_stop(struct lend *l, const struct lend_message *message, uint64_t now_ms)
{
        struct borrowed *b = find(l, message);
        (void)now_ms;
        if (!b || !b->is_in_pool)
                return;
        b->time.is_told_to_stop = true;
        pool_io_cancel(b->pool_task.pool_io, &b->pool_task);
}

/* --- a turn of the loop --- */

/* Past its deadline the owner may run the task again, so it must stop here. */
static void stop(struct borrowed *b)
{
        log_event(LEVEL_WARN, "borrowed-late", "task=%s from=%s text=%s", b->message.id, b->message.host,
                LOG_QUOTE("the store has not confirmed the task for too long: it is stopped, and its owner runs it"));
        leases_set(b->lend->leases, b->lease, 0, 0);
        if (b->is_in_pool)
                pool_io_interrupt_task(b->pool_task.pool_io, &b->pool_task);
}

static void step(struct borrowed *b, uint64_t now_ms)
{
        switch (borrowed_next(&b->time, now_ms)) {
        case BORROWED_WAIT:
                break;
        case BORROWED_ASK:
                put_heartbeat(b);
                report(b, CONTROL_HEARTBEAT, (struct span){ (const char *)b->data.data, b->data.size });
                break;
        case BORROWED_STOP:
                stop(b);
                break;
        case BORROWED_TELL:
                report(b, CONTROL_OUTCOME, (struct span){ (const char *)b->outcome.data, b->outcome.size });
                break;
        case BORROWED_DROP:
                forget(b);
                break;
        }
}

void borrow_turn(struct lend *l, uint64_t now_ms)
{
        for (struct borrowed *b = l->list, *next; b && l->store; b = next) {
                next = b->next;
                step(b, now_ms);
        }
}

uint64_t borrow_due_ms(const struct lend *l)
{
        uint64_t due_ms = UINT64_MAX;
        for (const struct borrowed *b = l->list; b; b = b->next)
                due_ms = min_u64(due_ms, borrowed_due_ms(&b->time));
        return due_ms;
}

void borrow_free(struct lend *l)
{
        for (struct borrowed *b = l->list, *next; b; b = next) {
                next = b->next;
                forget(b);
        }
        free(l->starts);
        l->starts = NULL;
}
