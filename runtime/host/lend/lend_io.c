#include "host/lend/lend_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/lend/lender.h"

/* How long a worker's poll on behalf of another host waits.  Keys that wait in the store for a worker are woken within
 * it. */
#define WORKER_WAIT_MS UINT64_C(300)
#define HANDLERS_MAX   64u /* handlers whose free seats are offered */

/* --- messages --- */

struct outgoing {
        struct store_post post;
        struct lend *lend;
        struct buffer bytes;
        enum lend_kind kind;
        uint32_t slot; /* valid for an ASK */
        uint32_t shard;
        struct work_fence fence;
        char id[TASK_ID_MAX + 1];
};

struct lend_message lend_message_of(const struct lend *l, enum lend_kind kind)
{
        struct lend_message message = { .kind = kind, .host = l->host, .handler = "", .worker = "", .id = "" };
        memcpy(message.from, l->nonce, sizeof(message.from));
        return message;
}

/* Whether the message certainly did not arrive. */
static bool is_refused(int status)
{
        return status == -EDQUOT || status == -EMSGSIZE || status == -EINVAL;
}

static void on_posted(struct store_request *request)
{
        struct outgoing *out = container_of(request, struct outgoing, post.request);
        struct lend *l = out->lend;
        if (request->status < 0 && request->status != -ECANCELED)
                log_event(LEVEL_DEBUG, "message-failed", "kind=%d text=%s", (int)out->kind,
                        LOG_QUOTE(request->error.text));
        if (request->status < 0 && out->kind == LEND_ASK)
                borrower_none(&l->borrower, out->slot, out->post.nonce);
        if (is_refused(request->status) && out->kind == LEND_HAND)
                remotes_decline(l->handlers, out->shard, &out->fence, span_of_text(out->id), clock_boot_ms());
        buffer_free(&out->bytes);
        free(out);
}

static struct outgoing *post(struct lend *l, const uint8_t to[STORE_NONCE_SIZE], const struct lend_message *message)
{
        if (!l->store)
                return NULL;
        struct outgoing *out = memory_zero(1, sizeof(*out));
        out->lend = l;
        out->kind = message->kind;
        out->shard = message->shard;
        out->fence = message->fence;
        (void)snprintf(out->id, sizeof(out->id), "%s", message->id);
        lend_message_put(&out->bytes, message);
        out->post.request.done = on_posted;
        memcpy(out->post.nonce, to, STORE_NONCE_SIZE);
        out->post.bytes = (struct span){ (const char *)out->bytes.data, out->bytes.size };
        store_post(l->store, &out->post);
        return out;
}

void lend_post(struct lend *l, const uint8_t to[STORE_NONCE_SIZE], const struct lend_message *message)
{
        (void)post(l, to, message);
}

/* --- an owner: another host asks --- */

/* The polls made for one ASK; each gets a task or none. */
struct offer {
        struct lend *lend;
        uint8_t nonce[STORE_NONCE_SIZE];
        char handler[NAME_HANDLER_MAX + 1];
        char worker[WORKER_NAME_MAX + 1]; /* name of the asking host, or of its worker that polls there */
        bool is_seat;
        uint32_t left;  /* unanswered polls */
        uint32_t empty; /* polls that were answered without a task */
        struct offered {
                struct work_poll poll;
                struct offer *offer;
        } polls[];
};

static void hand(struct offer *offer, const struct work_task *task)
{
        struct lend_message m = lend_message_of(offer->lend, LEND_HAND);
        const struct span none = { 0 };
        struct handler *handler = handlers_find(offer->lend->handlers, offer->handler);
        if (handler)
                handler->counts.lent++;
        m.shard = task->shard;
        m.fence = task->fence;
        m.id = task->id.data;
        m.is_worker = !offer->is_seat;
        m.ttl_ms = task->ttl_ms;
        m.timeout_ms = task->timeout_ms;
        m.attempt = task->attempt;
        m.attempts_max = task->attempts_max;
        m.crashes = task->crashes;
        m.lane = task->lane;
        m.task = (struct envelope){ .id = task->id,
                .key = span_is(task->key, task->id) ? none : task->key,
                .handler = task->handler,
                .headers = task->headers,
                .payload = task->payload,
                .submitted_ms = task->submitted_ms,
                .lane = task->lane };
        m.checkpoint = task->checkpoint;
        lend_post(offer->lend, offer->nonce, &m);
}

static void on_polled(struct work_poll *poll, enum work_verdict verdict, const struct work_task *task)
{
        struct offer *offer = container_of(poll, struct offered, poll)->offer;
        if (verdict == WORK_TASK)
                hand(offer, task);
        else
                offer->empty++;
        if (--offer->left)
                return;
        if (offer->empty) {
                struct lend_message m = lend_message_of(offer->lend, LEND_NONE);
                struct handler *handler = handlers_find(offer->lend->handlers, offer->handler);
                if (handler)
                        lender_asked_in_vain(&handler->lender);
                m.handler = offer->handler;
                lend_post(offer->lend, offer->nonce, &m);
        }
        free(offer);
}

static void on_ask(struct lend *l, const struct lend_message *m, uint64_t now_ms)
{
        const struct handler *handler = handlers_find(l->handlers, m->handler);
        if (!handler || !handler_current(handler) || l->handlers->is_leaving) {
                struct lend_message none = lend_message_of(l, LEND_NONE);
                none.handler = m->handler;
                lend_post(l, m->from, &none);
                return;
        }
        struct offer *offer = memory_zero(1, sizeof(*offer) + m->seats * sizeof(struct offered));
        *offer = (struct offer){ .lend = l, .is_seat = !*m->worker, .left = m->seats };
        memcpy(offer->nonce, m->from, sizeof(offer->nonce));
        (void)snprintf(offer->handler, sizeof(offer->handler), "%s", m->handler);
        (void)snprintf(offer->worker, sizeof(offer->worker), "%.*s",
                (int)(*m->worker ? WORKER_NAME_MAX : SEAT_HOST_MAX), *m->worker ? m->worker : m->host);
        for (uint32_t i = 0; i < m->seats; i++) {
                struct work_poll *poll = &offer->polls[i].poll;
                offer->polls[i].offer = offer;
                *poll = (struct work_poll){ .handler = offer->handler,
                        .worker = offer->worker,
                        .wait_ms = offer->is_seat ? 0 : WORKER_WAIT_MS,
                        .is_foreign = true,
                        .is_seat = offer->is_seat,
                        .done = on_polled };
                memcpy(poll->nonce, m->from, sizeof(poll->nonce));
                remotes_take(l->handlers, poll, now_ms);
        }
}

void lend_stop_seat(struct lend *l, const struct lent *lent)
{
        struct lend_message m = lend_message_of(l, LEND_STOP);
        m.shard = lent->shard->number;
        m.fence = lent->fence;
        m.id = lent->claimed->id.data;
        lend_post(l, lent->nonce, &m);
}

/* --- the mailbox --- */

static void on_message(struct lend *l, struct span bytes, uint64_t now_ms)
{
        struct lend_message m;
        struct error error = { "" };
        if (lend_message_parse(bytes, &m, &error) < 0) {
                log_event(LEVEL_WARN, "message-refused", "text=%s", LOG_QUOTE(error.text));
                return;
        }
        const struct handler *handler = m.kind == LEND_NONE ? handlers_find(l->handlers, m.handler) : NULL;
        switch (m.kind) {
        case LEND_ASK:
                on_ask(l, &m, now_ms);
                break;
        case LEND_NONE:
                if (handler)
                        borrower_none(&l->borrower, handler->slot, m.from);
                break;
        case LEND_HAND:
                borrow_take(l, &m, bytes, now_ms);
                break;
        case LEND_STOP:
                borrow_stop(l, &m, now_ms);
                break;
        case LEND_DECLINE:
                remotes_decline(l->handlers, m.shard, &m.fence, span_of_text(m.id), now_ms);
                break;
        case LEND_KINDS:
                break;
        }
}

static void take_mail(struct lend *l);

static void on_taken(struct store_request *request)
{
        struct lend *l = container_of(request, struct lend, take.request);
        l->is_taking = false;
        if (request->status < 0) {
                /* The mailbox is read again when the store answers another call. */
                l->must_take = request->status != -ECANCELED;
                return;
        }
        uint64_t now_ms = clock_boot_ms();
        for (uint32_t i = 0; i < l->take.messages_count; i++) {
                on_message(l, l->take.messages[i].bytes, now_ms);
                l->dealt = max_u64(l->dealt, l->take.messages[i].number);
        }
        if (l->take.has_more || l->must_take)
                take_mail(l);
}

static void take_mail(struct lend *l)
{
        l->must_take = true;
        if (l->is_taking || !l->store)
                return;
        l->must_take = false;
        l->is_taking = true;
        l->take = (struct store_mail_take){ .request.done = on_taken, .after = l->dealt };
        memcpy(l->take.nonce, l->nonce, STORE_NONCE_SIZE);
        store_mail_take(l->store, &l->take);
}

void lend_open(struct lend *l, uint64_t now_ms)
{
        (void)now_ms;
        l->borrower.is_stale = true;
        if (!l->starts)
                l->starts = memory_zero(l->handlers->dispatch->shards_count, sizeof(*l->starts));
        take_mail(l);
}

void lend_mail_rang(struct lend *l)
{
        take_mail(l);
}

void lend_wanting_rang(struct lend *l)
{
        borrower_rang(&l->borrower);
}

void lend_look(struct lend *l)
{
        borrower_rang(&l->borrower);
        take_mail(l);
}

void lend_store_answers(struct lend *l)
{
        if (l->must_take)
                take_mail(l);
}

/* --- the `wanting` record --- */

static void on_set(struct store_request *request)
{
        struct lend *l = container_of(request, struct lend, set.request);
        l->is_setting = false;
        if (l->set_slot < l->handlers->count)
                lender_told(&l->handlers->list[l->set_slot]->lender, request->status == 0);
}

/* Whether tasks of the handler wait because all seats are busy or no worker polls. */
static bool is_short(const struct handler *handler, const struct generation *generation)
{
        const struct dispatch *d = handler->all->dispatch;
        bool has_ready = false;
        for (unsigned lane = 0; lane < LANES; lane++)
                has_ready |= !shard_set_is_empty(&d->ready[lane]);
        if (!generation || !generation->settings->spread)
                return false;
        /* Tasks without a worker may have been returned to the store. */
        if (handler_is_remote(generation->settings))
                return (has_ready || d->pools[handler->slot].may_be_stored) && !remote_own_polls(&handler->remote);
        const struct pool *pool = &generation->pool_io.pool;
        return (has_ready || pool->waiting_count) && !pool_free_seats(pool);
}

static void tell(struct lend *l, struct handler *handler, uint64_t now_ms)
{
        uint32_t tasks;
        struct lender *lender = &handler->lender;
        if (!l->store || l->is_setting || !lender_wants_to_tell(lender, l->paced_ms, now_ms, &tasks))
                return;
        lender_telling(lender, tasks, now_ms);
        l->paced_ms = now_ms + LENDER_PACE_MS;
        l->is_setting = true;
        l->set_slot = handler->slot;
        l->set = (struct store_wanting_set){ .request.done = on_set,
                .handler = span_of_text(handler->name),
                .tasks = tasks,
                .keep_ms = LENDER_KEEP_MS };
        memcpy(l->set.nonce, l->nonce, STORE_NONCE_SIZE);
        store_wanting_set(l->store, &l->set);
}

static void lender_turn(struct lend *l, uint64_t now_ms)
{
        for (uint32_t i = 0; i < l->handlers->count; i++) {
                struct handler *handler = l->handlers->list[i];
                bool is_lending = l->has_others && !l->handlers->is_leaving;
                if (lender_look(&handler->lender, is_lending && is_short(handler, handler_current(handler)), now_ms))
                        lender_counted(&handler->lender, remote_count_wanting(handler, LENDER_COUNT, now_ms), now_ms);
                tell(l, handler, now_ms);
        }
}

/* --- free seats --- */

static void on_listed(struct store_request *request)
{
        struct lend *l = container_of(request, struct lend, wanting.request);
        const struct store_wanting_list *list = &l->wanting;
        for (uint32_t i = 0; request->status == 0 && i < list->items_count; i++) {
                char name[NAME_HANDLER_MAX + 1];
                const struct store_wanting *item = &list->items[i];
                if (item->handler.size > NAME_HANDLER_MAX || !memcmp(item->nonce, l->nonce, STORE_NONCE_SIZE))
                        continue;
                (void)snprintf(name, sizeof(name), "%.*s", (int)item->handler.size, item->handler.data);
                const struct handler *handler = handlers_find(l->handlers, name);
                if (handler && item->tasks)
                        borrower_found(&l->borrower, handler->slot, item->nonce, item->tasks);
        }
        borrower_listed(&l->borrower, request->status == 0);
}

/* Seats, or workers that poll, without a task of our own for them. */
static uint32_t count_free(const struct lend *l, const struct handler *handler)
{
        const struct generation *generation = handler_current(handler);
        if (!generation || !generation->settings->spread || l->handlers->is_leaving ||
                l->handlers->dispatch->pools[handler->slot].is_paused)
                return 0;
        uint32_t free_seats = handler_is_remote(generation->settings) ? remote_own_polls(&handler->remote)
                                                                      : pool_spare_seats(&generation->pool_io.pool);
        uint32_t coming = borrow_count_coming(l, handler->slot);
        uint32_t leases = LEND_LEASES - l->list_count;
        free_seats = free_seats > coming ? free_seats - coming : 0;
        return (uint32_t)min_u64(min_u64(free_seats, leases), LEND_SEATS_MAX);
}

static uint32_t find_free(const struct lend *l, struct borrower_seats seats[HANDLERS_MAX], uint64_t now_ms)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < l->handlers->count && count < HANDLERS_MAX; i++) {
                struct handler *handler = l->handlers->list[i];
                uint32_t free_seats = count_free(l, handler);
                if (!free_seats)
                        handler->free_ms = 0;
                else if (!handler->free_ms)
                        handler->free_ms = now_ms;
                if (free_seats)
                        seats[count++] = (struct borrower_seats){ i, free_seats, handler->free_ms };
        }
        return count;
}

static void ask(struct lend *l, const struct borrower_ask *ask)
{
        const struct handler *handler = l->handlers->list[ask->slot];
        const struct generation *generation = handler_current(handler);
        struct lend_message m = lend_message_of(l, LEND_ASK);
        m.handler = handler->name;
        m.seats = ask->seats;
        if (handler_is_remote(generation->settings))
                m.worker = remote_first_worker(&handler->remote);
        struct outgoing *out = post(l, ask->nonce, &m);
        if (out)
                out->slot = ask->slot;
}

static bool has_interest(const struct borrower *b)
{
        return b->is_stale || b->wants_count || b->asks_count;
}

static void borrower_turn(struct lend *l, uint64_t now_ms)
{
        struct borrower *b = &l->borrower;
        struct borrower_seats seats[HANDLERS_MAX];
        struct borrower_ask wanted;
        if (!l->store || !l->has_others || !has_interest(b))
                return;
        uint32_t count = find_free(l, seats, now_ms);
        for (;;) {
                switch (borrower_next(b, seats, count, now_ms, &wanted)) {
                case BORROWER_NOTHING:
                        return;
                case BORROWER_LIST:
                        borrower_listing(b, now_ms);
                        l->wanting = (struct store_wanting_list){ .request.done = on_listed };
                        store_wanting_list(l->store, &l->wanting);
                        break;
                case BORROWER_ASK:
                        ask(l, &wanted);
                        break;
                }
        }
}

/* --- the loop --- */

void lend_turn(struct lend *l, uint64_t now_ms)
{
        lender_turn(l, now_ms);
        borrower_turn(l, now_ms);
        borrow_turn(l, now_ms);
}

uint64_t lend_due_ms(const struct lend *l, uint64_t now_ms)
{
        struct borrower_seats seats[HANDLERS_MAX];
        uint64_t due_ms = borrow_due_ms(l);
        for (uint32_t i = 0; i < l->handlers->count; i++)
                due_ms = min_u64(due_ms, lender_due_ms(&l->handlers->list[i]->lender, l->paced_ms));
        if (!l->has_others || !has_interest(&l->borrower))
                return due_ms;
        uint32_t count = find_free(l, seats, now_ms);
        return min_u64(due_ms, borrower_due_ms(&l->borrower, seats, count));
}

bool lend_is_quiet(const struct lend *l)
{
        return !l->list;
}

void lend_free(struct lend *l)
{
        borrow_free(l);
}
