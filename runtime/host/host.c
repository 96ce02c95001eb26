/* host.c: the loop.  Read this first.
 *
 * A shard (shard.h) knows what to ask the store next; a crew (crew.h) runs a handler's tasks.  Before the loop sleeps,
 * pump() feeds the crews from the shards' windows and makes the calls that shards want.  Everything else is a callback
 * that hands a reply or an answer to the machine it belongs to. */
#include "host/host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/crew.h"
#include "host/retry.h"
#include "host/shard.h"
#include "host/stage.h"
#include "store/store.h"

#define GATHER_MS    10
#define RING_ENTRIES 256

struct host;

/* A shard and the one request it may have under way. */
struct place {
        struct host *host;
        struct shard shard;
        union {
                struct store_request request;
                struct store_acquire acquire;
                struct store_in_flight page;
                struct store_advance advance;
                struct store_release release;
        };
};

/* A handler and the crew that runs it. */
struct station {
        struct host *host;
        const struct handler_config *handler;
        struct staged staged;
        struct crew crew;
        uint32_t next_place; /* whose turn it is to feed it */
        bool is_open, is_stopped;
};

struct host {
        const struct config *config;
        uv_loop_t loop;
        struct store *store;
        struct store_open open;
        struct store_bell bell;
        uint8_t nonce[STORE_NONCE_SIZE];
        struct leases leases;
        struct shard_limits limits;
        struct place *places;
        uint32_t places_count;
        struct station *stations;
        uint32_t stations_count;
        char staging[4096];

        struct store_renew renew;
        struct store_renewal *renewals;
        uint64_t renew_sent_ms;
        uint64_t renew_at_ms;
        bool is_renewing;

        uv_prepare_t prepare;
        uv_timer_t timer;
        uv_signal_t terminate, interrupt;
        uint64_t timer_ms;

        bool is_stopping;
        uint64_t cut_ms; /* while stopping: what still runs then is interrupted */
        uint64_t random;
        int status;
        struct error error;
};

static double random_fraction(struct host *h)
{
        h->random = h->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (double)(h->random >> 11) / 9007199254740992.0;
}

/* --- tasks -----------------------------------------------------------------------------------------------------------
 */

static uint32_t pool_of(void *arg, struct span handler)
{
        const struct host *h = arg;
        for (uint32_t i = 0; i < h->stations_count; i++) {
                const struct texts *names = &h->stations[i].handler->tasks;
                for (size_t j = 0; j < names->count; j++)
                        if (strlen(names->items[j]) == handler.size &&
                                !memcmp(names->items[j], handler.data, handler.size))
                                return i;
        }
        return WINDOW_NO_POOL;
}

static void pack_headers(struct claimed *c)
{
        struct span lines = c->headers;
        struct span name;
        struct span value;
        buffer_clear(&c->headers_packed);
        while (header_next(&lines, &name, &value)) {
                buffer_put(&c->headers_packed, name.data, name.size);
                buffer_put(&c->headers_packed, "", 1);
                buffer_put(&c->headers_packed, value.data, value.size);
                buffer_put(&c->headers_packed, "", 1);
        }
}

static void offer(struct station *st, struct place *place, struct claimed *c)
{
        pack_headers(c);
        c->pool_task.task = (struct ring_task){
                .id = c->id.data,
                .key = c->key.data,
                .handler = c->handler.data,
                .attempt = c->attempts + 1,
                .lease = place->shard.number,
                .fence_epoch = place->shard.lease.epoch,
                .fence_start = ++place->shard.starts,
                .timeout_ms = c->timeout_ms ? c->timeout_ms : st->handler->timeout_ms,
                .headers = c->headers_packed.data,
                .headers_size = c->headers_packed.size,
                .checkpoint = c->checkpoint.data,
                .checkpoint_size = c->checkpoint.size,
                .payload = c->payload.data,
                .payload_size = c->payload.size,
        };
        c->pool_task.is_suspect = c->is_suspect;
        c->pool_task.owner = place;
        crew_offer(&st->crew, &c->pool_task);
}

/* Round and round over the shards, a task of each at a time, while the crew has room. */
static void feed(struct station *st, uint64_t now_ms)
{
        struct host *h = st->host;
        uint32_t dry = 0;
        while (dry < h->places_count && crew_has_room(&st->crew)) {
                struct place *place = &h->places[st->next_place];
                st->next_place = (st->next_place + 1) % h->places_count;
                struct claimed *c = place->shard.window.count
                                            ? shard_next(&place->shard, (uint32_t)(st - h->stations), now_ms)
                                            : NULL;
                dry = c ? 0 : dry + 1;
                if (c)
                        offer(st, place, c);
        }
}

static void on_settled(void *owner, struct pool_task *task, const struct settled *settled)
{
        struct station *st = owner;
        struct place *place = task->owner;
        struct claimed *c = (struct claimed *)task;
        struct outcome_draft *draft = NULL;
        if (settled->checkpoint) {
                buffer_clear(&c->checkpoint);
                buffer_put(&c->checkpoint, settled->checkpoint, settled->checkpoint_size);
        }
        if (settled->outcome == OUTCOME_CRASHED || settled->outcome == OUTCOME_TIMED_OUT)
                log_event(LEVEL_WARN, "crash", "handler=%s id=%s key=%s outcome=%s error=%s", st->handler->name,
                        c->id.data, LOG_QUOTE(c->key.data), outcome_name(settled->outcome), LOG_QUOTE(settled->error));
        if (retry_judge(st->handler, c, settled, random_fraction(st->host), &draft) == VERDICT_AGAIN)
                shard_again(&place->shard, c);
        else
                shard_ended(&place->shard, c, draft, clock_boot_ms());
}

static void on_log(void *owner, const struct runner_log *log, const struct pool_task *task)
{
        static const char *const sources[] = { "plugin", "stdout", "stderr" };
        const struct station *st = owner;
        log_event(log->level <= LEVEL_DEBUG ? (enum log_level)log->level : LEVEL_DEBUG, "handler",
                "handler=%s source=%s%s%s dropped=%" PRIu32 " text=%s", st->handler->name,
                log->source < 3 ? sources[log->source] : "plugin", task ? " id=" : "", task ? task->task.id : "",
                log->dropped, LOG_QUOTE(log->text));
}

static void on_ready(void *owner, const struct runner_ready *ready, pid_t pid)
{
        const struct station *st = owner;
        log_event(LEVEL_INFO, "runner-ready", "handler=%s plugin=%s version=%s pid=%d", st->handler->name, ready->name,
                LOG_QUOTE(ready->version), (int)pid);
        if (*ready->unread)
                log_event(LEVEL_WARN, "settings-unread", "handler=%s names=%s hint=%s", st->handler->name,
                        LOG_QUOTE(ready->unread), LOG_QUOTE("init never read them; misspelt?"));
        if (*ready->notes)
                log_event(LEVEL_WARN, "sandbox", "handler=%s text=%s", st->handler->name, LOG_QUOTE(ready->notes));
}

static void on_refused(void *owner, const char *text)
{
        const struct station *st = owner;
        log_event(LEVEL_ERROR, "runner-refused", "handler=%s text=%s", st->handler->name, LOG_QUOTE(text));
}

static int on_call(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number)
{
        (void)owner, (void)service, (void)holder, (void)name, (void)number;
        return -ENOTSUP;
}

static void on_quarantined(void *owner, const char *text)
{
        const struct station *st = owner;
        log_event(LEVEL_ERROR, "quarantine", "handler=%s text=%s", st->handler->name, LOG_QUOTE(text));
}

static void finish(struct host *h);

static void on_crew_stopped(void *owner)
{
        struct station *st = owner;
        st->is_stopped = true;
        finish(st->host);
}

static const struct crew_events crew_events = {
        .settled = on_settled,
        .log = on_log,
        .ready = on_ready,
        .refused = on_refused,
        .call = on_call,
        .quarantined = on_quarantined,
        .stopped = on_crew_stopped,
};

/* --- shards ----------------------------------------------------------------------------------------------------------
 */

static void show_lease(struct place *place)
{
        const struct shard *s = &place->shard;
        bool is_held = s->state == SHARD_OWNED || s->state == SHARD_READING || s->state == SHARD_LEAVING;
        leases_set(&place->host->leases, s->number, s->lease.epoch, is_held ? s->until_ms * NS_PER_MS : 0);
}

/* Its shard was taken from us: told to stop, killed after the grace. */
static void cancel_stale(struct place *place)
{
        struct host *h = place->host;
        struct window_key *key;
        struct window_key *next_key;
        HASH_ITER (hh, place->shard.window.keys, key, next_key)
                for (struct claimed *c = key->first; c; c = c->next)
                        if (c->state == CLAIMED_RUNNING && c->tenure != place->shard.tenure &&
                                c->pool < h->stations_count)
                                crew_cancel(&h->stations[c->pool].crew, &c->pool_task);
}

static void after_reply(struct place *place, uint64_t fenced_before)
{
        struct shard *s = &place->shard;
        show_lease(place);
        if (s->fenced == fenced_before)
                return;
        log_event(LEVEL_WARN, "fenced", "shard=%" PRIu32 " epoch=%" PRIu64, s->number, s->lease.epoch);
        cancel_stale(place);
}

static bool has_failed(struct place *place, const struct store_request *request)
{
        if (request->status == 0)
                return false;
        if (request->status == -ECANCELED)
                return true;
        if (!place->shard.failures)
                log_event(LEVEL_ERROR, "store", "shard=%" PRIu32 " text=%s", place->shard.number,
                        LOG_QUOTE(request->error.text));
        shard_failed(&place->shard, clock_boot_ms());
        return true;
}

static void on_acquired(struct store_request *request)
{
        struct place *place = (struct place *)((char *)request - offsetof(struct place, request));
        if (has_failed(place, request))
                return;
        uint64_t fenced = place->shard.fenced;
        shard_acquired(&place->shard, &place->acquire, pool_of, place->host, clock_boot_ms());
        if (place->acquire.grant == STORE_GRANTED)
                log_event(LEVEL_DEBUG, "acquired", "shard=%" PRIu32 " epoch=%" PRIu64 " in_flight=%" PRIu32,
                        place->shard.number, place->shard.lease.epoch, place->acquire.page.tasks_count);
        after_reply(place, fenced);
}

static void on_paged(struct store_request *request)
{
        struct place *place = (struct place *)((char *)request - offsetof(struct place, request));
        if (has_failed(place, request))
                return;
        uint64_t fenced = place->shard.fenced;
        shard_paged(&place->shard, &place->page, pool_of, place->host);
        after_reply(place, fenced);
}

/* What a person asked for, as far as it is about tasks that we hold. */
static void obey(struct place *place, const struct store_control *control)
{
        struct host *h = place->host;
        struct claimed *c =
                control->verb == CONTROL_CANCEL ? window_find(&place->shard.window, control->key, control->seq) : NULL;
        if (c && c->state == CLAIMED_RUNNING && c->pool < h->stations_count)
                crew_cancel(&h->stations[c->pool].crew, &c->pool_task);
        else
                shard_obey(&place->shard, control, clock_boot_ms());
}

static void on_advanced(struct store_request *request)
{
        struct place *place = (struct place *)((char *)request - offsetof(struct place, request));
        if (has_failed(place, request))
                return;
        uint64_t fenced = place->shard.fenced;
        shard_advanced(&place->shard, &place->advance, pool_of, place->host, clock_boot_ms());
        for (uint32_t i = 0; i < place->advance.controls_count; i++)
                obey(place, &place->advance.controls[i]);
        after_reply(place, fenced);
}

static void on_released(struct store_request *request)
{
        struct place *place = (struct place *)((char *)request - offsetof(struct place, request));
        if (has_failed(place, request))
                return;
        shard_released(&place->shard);
        show_lease(place);
        finish(place->host);
}

static void make_call(struct place *place, enum shard_call call, uint64_t now_ms)
{
        struct host *h = place->host;
        switch (call) {
        case SHARD_CALL_ACQUIRE:
                shard_fill_acquire(&place->shard, &place->acquire, now_ms);
                place->request.done = on_acquired;
                store_acquire(h->store, &place->acquire);
                break;
        case SHARD_CALL_PAGE:
                shard_fill_page(&place->shard, &place->page, now_ms);
                place->request.done = on_paged;
                store_in_flight(h->store, &place->page);
                break;
        case SHARD_CALL_ADVANCE:
                shard_fill_advance(&place->shard, &place->advance, now_ms);
                place->request.done = on_advanced;
                store_advance(h->store, &place->advance);
                break;
        case SHARD_CALL_RELEASE:
                shard_fill_release(&place->shard, &place->release, now_ms);
                place->request.done = on_released;
                store_release(h->store, &place->release);
                break;
        case SHARD_CALL_NONE:
                break;
        }
}

/* --- renewal ---------------------------------------------------------------------------------------------------------
 */

static void on_renewed(struct store_request *request)
{
        struct host *h = (struct host *)((char *)request - offsetof(struct host, renew.request));
        h->is_renewing = false;
        if (request->status < 0)
                return;
        for (uint32_t i = 0; i < h->renew.items_count; i++) {
                struct place *place = &h->places[h->renewals[i].lease.shard];
                uint64_t fenced = place->shard.fenced;
                if (place->shard.lease.epoch == h->renewals[i].lease.epoch)
                        shard_renewed(&place->shard, &h->renewals[i], h->renew_sent_ms);
                after_reply(place, fenced);
        }
}

static void renew(struct host *h, uint64_t now_ms)
{
        h->renew_at_ms = now_ms + h->limits.ttl_ms / 3;
        if (h->is_renewing)
                return;
        uint32_t count = 0;
        for (uint32_t i = 0; i < h->places_count; i++) {
                const struct shard *s = &h->places[i].shard;
                if (s->state == SHARD_OWNED || s->state == SHARD_READING || s->state == SHARD_LEAVING)
                        h->renewals[count++] = (struct store_renewal){ .lease = s->lease };
        }
        if (!count)
                return;
        h->renew = (struct store_renew){ .items = h->renewals, .items_count = count };
        h->renew.request.done = on_renewed;
        h->renew_sent_ms = now_ms;
        h->is_renewing = true;
        store_renew(h->store, &h->renew);
}

/* --- the loop --------------------------------------------------------------------------------------------------------
 */

static void cut_short(struct host *h);

static void on_timer(uv_timer_t *timer)
{
        struct host *h = timer->data;
        uint64_t now_ms = clock_boot_ms();
        h->timer_ms = UINT64_MAX;
        if (now_ms >= h->renew_at_ms)
                renew(h, now_ms);
        if (h->is_stopping && now_ms >= h->cut_ms)
                cut_short(h);
}

static void set_timer(struct host *h, uint64_t now_ms)
{
        uint64_t due_ms = h->renew_at_ms;
        if (h->is_stopping && h->cut_ms < due_ms)
                due_ms = h->cut_ms;
        for (uint32_t i = 0; i < h->places_count; i++) {
                uint64_t at_ms = shard_due_ms(&h->places[i].shard);
                due_ms = at_ms < due_ms ? at_ms : due_ms;
        }
        if (due_ms == h->timer_ms)
                return;
        h->timer_ms = due_ms;
        (void)uv_timer_start(&h->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* Before the loop sleeps: tasks to the crews, outcomes to the store. */
static void pump(uv_prepare_t *prepare)
{
        struct host *h = prepare->data;
        uint64_t now_ms = clock_boot_ms();
        if (!h->store)
                return;
        for (uint32_t i = 0; i < h->stations_count; i++)
                feed(&h->stations[i], now_ms);
        bool has_other_work = false;
        for (uint32_t i = 0; i < h->places_count && !has_other_work; i++)
                has_other_work = h->places[i].shard.running > 0;
        for (uint32_t i = 0; i < h->places_count; i++)
                make_call(&h->places[i], shard_next_call(&h->places[i].shard, has_other_work, now_ms), now_ms);
        set_timer(h, now_ms);
}

static void on_bell(void *self, uint32_t shard)
{
        struct host *h = self;
        if (shard < h->places_count)
                h->places[shard].shard.has_work = true;
}

static void on_bell_desired(void *self)
{
        (void)self;
}

static void on_bell_look(void *self)
{
        struct host *h = self;
        for (uint32_t i = 0; i < h->places_count; i++)
                h->places[i].shard.has_work = true;
}

/* --- end -------------------------------------------------------------------------------------------------------------
 */

static void on_store_closed(void *self)
{
        struct host *h = self;
        for (uint32_t i = 0; i < h->stations_count; i++)
                crew_close(&h->stations[i].crew);
        uv_close((uv_handle_t *)&h->prepare, NULL);
        uv_close((uv_handle_t *)&h->timer, NULL);
        uv_close((uv_handle_t *)&h->terminate, NULL);
        uv_close((uv_handle_t *)&h->interrupt, NULL);
}

/* Stopping: shards first (their outcomes), then crews, then the store. */
static void finish(struct host *h)
{
        if (!h->is_stopping || !h->store)
                return;
        for (uint32_t i = 0; i < h->places_count; i++)
                if (h->places[i].shard.state != SHARD_AWAY || h->places[i].shard.is_calling)
                        return;
        bool is_stopped = true;
        for (uint32_t i = 0; i < h->stations_count; i++) {
                struct station *st = &h->stations[i];
                if (!st->crew.is_stopping)
                        crew_stop(&st->crew);
                is_stopped &= st->is_stopped;
        }
        if (!is_stopped)
                return;
        struct store *store = h->store;
        h->store = NULL;
        log_event(LEVEL_INFO, "stopped", "host=%s", h->config->host.name);
        store_close(store, on_store_closed, h);
}

/* No more patience: what runs is interrupted, at no cost, and is the next owner's. */
static void cut_short(struct host *h)
{
        h->cut_ms = UINT64_MAX;
        log_event(LEVEL_WARN, "cut-short", "text=%s", LOG_QUOTE("tasks still running are interrupted at no cost"));
        for (uint32_t i = 0; i < h->stations_count; i++)
                for (uint32_t j = 0; j < h->stations[i].crew.pool.runners_count; j++)
                        crew_cut(&h->stations[i].crew, j);
}

static void on_signal(uv_signal_t *signal, int number)
{
        struct host *h = signal->data;
        if (h->is_stopping) {
                cut_short(h);
                return;
        }
        log_event(
                LEVEL_INFO, "stopping", "signal=%s drain_ms=%" PRIu64, sigabbrev_np(number), h->config->lease.drain_ms);
        h->is_stopping = true;
        h->cut_ms = clock_boot_ms() + h->config->lease.drain_ms;
        for (uint32_t i = 0; i < h->places_count; i++)
                shard_leave(&h->places[i].shard);
        finish(h);
}
