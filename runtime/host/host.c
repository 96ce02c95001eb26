/* host.c: the loop.  Read this first.
 *
 * A shard (shard.h) knows what to ask the store next; a crew (crew.h) runs a handler's tasks.  Before the loop sleeps,
 * pump() feeds the crews from the shards' windows and makes the calls that shards want.  Everything else is a callback
 * that hands a reply or an answer to the machine it belongs to. */
#include "host/host.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
struct berth {
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
        uint32_t next_berth; /* whose turn it is to feed it */
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
        struct berth *berths;
        uint32_t berths_count;
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

/* A handler that takes no tasks for now keeps at most half of a window: the rest is for others. */
static bool is_crowded(const struct berth *berth, const struct station *st)
{
        return st->crew.pool.state != POOL_OPEN && berth->shard.window.count >= berth->host->limits.window_tasks / 2;
}

static uint32_t pool_of(void *arg, struct span handler)
{
        const struct berth *berth = arg;
        const struct host *h = berth->host;
        for (uint32_t i = 0; i < h->stations_count; i++) {
                const struct texts *names = &h->stations[i].handler->tasks;
                for (size_t j = 0; j < names->count; j++)
                        if (strlen(names->items[j]) == handler.size &&
                                !memcmp(names->items[j], handler.data, handler.size))
                                return is_crowded(berth, &h->stations[i]) ? WINDOW_NO_POOL : i;
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

static void offer(struct station *st, struct berth *berth, struct claimed *c)
{
        pack_headers(c);
        c->pool_task.task = (struct ring_task){
                .id = c->id.data,
                .key = c->key.data,
                .handler = c->handler.data,
                .attempt = c->attempts + 1,
                .lease = berth->shard.number,
                .fence_epoch = berth->shard.lease.epoch,
                .fence_start = ++berth->shard.starts,
                .timeout_ms = c->timeout_ms ? c->timeout_ms : st->handler->timeout_ms,
                .headers = c->headers_packed.data,
                .headers_size = c->headers_packed.size,
                .checkpoint = c->checkpoint.data,
                .checkpoint_size = c->checkpoint.size,
                .payload = c->payload.data,
                .payload_size = c->payload.size,
        };
        c->pool_task.is_suspect = c->is_suspect;
        c->pool_task.owner = berth;
        crew_offer(&st->crew, &c->pool_task);
}

/* Round and round over the shards, a task of each at a time, while the crew has room. */
static void feed(struct station *st, uint64_t now_ms)
{
        struct host *h = st->host;
        uint32_t dry = 0;
        while (dry < h->berths_count && crew_has_room(&st->crew)) {
                struct berth *berth = &h->berths[st->next_berth];
                st->next_berth = (st->next_berth + 1) % h->berths_count;
                struct claimed *c = berth->shard.window.count
                                            ? shard_next(&berth->shard, (uint32_t)(st - h->stations), now_ms)
                                            : NULL;
                dry = c ? 0 : dry + 1;
                if (c)
                        offer(st, berth, c);
        }
        crew_flush(&st->crew);
}

static void on_settled(void *owner, struct pool_task *task, const struct settled *settled)
{
        struct station *st = owner;
        struct berth *berth = task->owner;
        struct claimed *c = (struct claimed *)task;
        struct outcome_draft *draft = NULL;
        if (settled->checkpoint) {
                buffer_clear(&c->checkpoint);
                buffer_put(&c->checkpoint, settled->checkpoint, settled->checkpoint_size);
                c->has_saved = true;
        }
        if (settled->outcome == OUTCOME_CRASHED || settled->outcome == OUTCOME_TIMED_OUT)
                log_event(LEVEL_WARN, "crash", "handler=%s id=%s key=%s outcome=%s error=%s", st->handler->name,
                        c->id.data, LOG_QUOTE(c->key.data), outcome_name(settled->outcome), LOG_QUOTE(settled->error));
        if (retry_judge(st->handler, c, settled, random_fraction(st->host), &draft) == VERDICT_AGAIN)
                shard_again(&berth->shard, c, clock_boot_ms());
        else
                shard_ended(&berth->shard, c, draft, clock_boot_ms());
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

static void on_crew_stopped(void *owner)
{
        struct station *st = owner;
        st->is_stopped = true;
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

static void show_lease(struct berth *berth)
{
        const struct shard *s = &berth->shard;
        bool is_held = s->state == SHARD_OWNED || s->state == SHARD_READING || s->state == SHARD_LEAVING;
        leases_set(&berth->host->leases, s->number, s->lease.epoch, is_held ? s->until_ms * NS_PER_MS : 0);
}

/* Its shard was taken from us: told to stop, killed after the grace. */
static void cancel_stale(struct berth *berth)
{
        struct host *h = berth->host;
        struct window_key *key;
        struct window_key *next_key;
        HASH_ITER (hh, berth->shard.window.keys, key, next_key)
                for (struct claimed *c = key->first; c; c = c->next)
                        if (c->state == CLAIMED_RUNNING && c->tenure != berth->shard.tenure &&
                                c->pool < h->stations_count)
                                crew_cancel(&h->stations[c->pool].crew, &c->pool_task);
}

static void after_reply(struct berth *berth, uint64_t fenced_before)
{
        struct shard *s = &berth->shard;
        show_lease(berth);
        if (s->fenced == fenced_before)
                return;
        log_event(LEVEL_WARN, "fenced", "shard=%" PRIu32 " epoch=%" PRIu64, s->number, s->lease.epoch);
        cancel_stale(berth);
}

static bool has_failed(struct berth *berth, const struct store_request *request)
{
        if (request->status == 0)
                return false;
        if (request->status == -ECANCELED)
                return true;
        if (!berth->shard.failures)
                log_event(LEVEL_ERROR, "store", "shard=%" PRIu32 " text=%s", berth->shard.number,
                        LOG_QUOTE(request->error.text));
        shard_failed(&berth->shard, clock_boot_ms());
        return true;
}

static void on_acquired(struct store_request *request)
{
        struct berth *berth = (struct berth *)((char *)request - offsetof(struct berth, request));
        if (has_failed(berth, request))
                return;
        uint64_t fenced = berth->shard.fenced;
        shard_acquired(&berth->shard, &berth->acquire, pool_of, berth, clock_boot_ms());
        if (berth->acquire.grant == STORE_GRANTED)
                log_event(LEVEL_DEBUG, "acquired", "shard=%" PRIu32 " epoch=%" PRIu64 " in_flight=%" PRIu32,
                        berth->shard.number, berth->shard.lease.epoch, berth->acquire.page.tasks_count);
        after_reply(berth, fenced);
}

static void on_paged(struct store_request *request)
{
        struct berth *berth = (struct berth *)((char *)request - offsetof(struct berth, request));
        if (has_failed(berth, request))
                return;
        uint64_t fenced = berth->shard.fenced;
        shard_paged(&berth->shard, &berth->page, pool_of, berth);
        after_reply(berth, fenced);
}

/* What a person asked for, as far as it is about tasks that we hold. */
static void obey(struct berth *berth, const struct store_control *control)
{
        struct host *h = berth->host;
        struct claimed *c =
                control->verb == CONTROL_CANCEL ? window_find(&berth->shard.window, control->key, control->seq) : NULL;
        if (c && c->state == CLAIMED_RUNNING && c->pool < h->stations_count)
                crew_cancel(&h->stations[c->pool].crew, &c->pool_task);
        else
                shard_obey(&berth->shard, control, clock_boot_ms());
}

static void on_advanced(struct store_request *request)
{
        struct berth *berth = (struct berth *)((char *)request - offsetof(struct berth, request));
        if (has_failed(berth, request))
                return;
        uint64_t fenced = berth->shard.fenced;
        shard_advanced(&berth->shard, &berth->advance, pool_of, berth, clock_boot_ms());
        for (uint32_t i = 0; i < berth->advance.controls_count; i++)
                obey(berth, &berth->advance.controls[i]);
        after_reply(berth, fenced);
}

static void on_released(struct store_request *request)
{
        struct berth *berth = (struct berth *)((char *)request - offsetof(struct berth, request));
        if (has_failed(berth, request))
                return;
        shard_released(&berth->shard);
        show_lease(berth);
}

static void make_call(struct berth *berth, enum shard_call call, uint64_t now_ms)
{
        struct host *h = berth->host;
        switch (call) {
        case SHARD_CALL_ACQUIRE:
                shard_fill_acquire(&berth->shard, &berth->acquire, now_ms);
                berth->request.done = on_acquired;
                store_acquire(h->store, &berth->acquire);
                break;
        case SHARD_CALL_PAGE:
                shard_fill_page(&berth->shard, &berth->page, now_ms);
                berth->request.done = on_paged;
                store_in_flight(h->store, &berth->page);
                break;
        case SHARD_CALL_ADVANCE:
                shard_fill_advance(&berth->shard, &berth->advance, now_ms);
                berth->request.done = on_advanced;
                store_advance(h->store, &berth->advance);
                break;
        case SHARD_CALL_RELEASE:
                shard_fill_release(&berth->shard, &berth->release, now_ms);
                berth->request.done = on_released;
                store_release(h->store, &berth->release);
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
                struct berth *berth = &h->berths[h->renewals[i].lease.shard];
                uint64_t fenced = berth->shard.fenced;
                if (berth->shard.lease.epoch == h->renewals[i].lease.epoch)
                        shard_renewed(&berth->shard, &h->renewals[i], h->renew_sent_ms);
                after_reply(berth, fenced);
        }
}

static void renew(struct host *h, uint64_t now_ms)
{
        h->renew_at_ms = now_ms + h->limits.ttl_ms / 3;
        if (h->is_renewing)
                return;
        uint32_t count = 0;
        for (uint32_t i = 0; i < h->berths_count; i++) {
                const struct shard *s = &h->berths[i].shard;
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
        for (uint32_t i = 0; i < h->berths_count; i++) {
                uint64_t at_ms = shard_due_ms(&h->berths[i].shard);
                due_ms = at_ms < due_ms ? at_ms : due_ms;
        }
        if (due_ms == h->timer_ms)
                return;
        h->timer_ms = due_ms;
        (void)uv_timer_start(&h->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void finish(struct host *h);

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
        for (uint32_t i = 0; i < h->berths_count && !has_other_work; i++)
                has_other_work = h->berths[i].shard.running > 0;
        for (uint32_t i = 0; i < h->berths_count; i++)
                make_call(&h->berths[i], shard_next_call(&h->berths[i].shard, has_other_work, now_ms), now_ms);
        set_timer(h, now_ms);
        if (h->is_stopping)
                finish(h);
}

static void on_bell(void *self, uint32_t shard)
{
        struct host *h = self;
        if (shard < h->berths_count)
                h->berths[shard].shard.has_work = true;
}

static void on_bell_desired(void *self)
{
        (void)self;
}

static void on_bell_look(void *self)
{
        struct host *h = self;
        for (uint32_t i = 0; i < h->berths_count; i++)
                h->berths[i].shard.has_work = true;
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
        for (uint32_t i = 0; i < h->berths_count; i++)
                if (h->berths[i].shard.state != SHARD_AWAY || h->berths[i].shard.is_calling)
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
                crew_cut(&h->stations[i].crew);
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
        for (uint32_t i = 0; i < h->berths_count; i++)
                shard_leave(&h->berths[i].shard);
}

/* --- start -----------------------------------------------------------------------------------------------------------
 */

static void make_policy(const struct handler_config *handler, struct pool_policy *ret)
{
        *ret = (struct pool_policy){
                .processes = handler->processes,
                .threads = handler->threads,
                .batch_max = handler->batch.max,
                .batch_wait_ms = handler->batch.wait_ms,
                .grace_ms = handler->grace_ms,
                .abort_ms = 1000,
                .stall_ms = handler->stall_ms,
                .init_ms = handler->init_timeout_ms,
                .idle_ms = handler->idle_timeout_ms,
                .max_tasks = handler->max_tasks,
                .backoff_ms = 100,
                .backoff_max_ms = 30000,
                .quarantine_after = 8,
                .ring_entries = RING_ENTRIES,
        };
}

static void make_start(const struct station *st, struct runner_start *ret)
{
        const struct handler_config *handler = st->handler;
        *ret = (struct runner_start){
                .handler = handler->name,
                .plugin = st->staged.path,
                .label = st->staged.label,
                .seats = handler->threads,
                .batch_max = handler->batch.max,
                .leases = st->host->berths_count,
                .log_level = (uint32_t)st->host->config->log.level,
                .log_rate = st->host->config->log.rate,
                .result_max = handler->result_max_bytes,
                .payload_max = handler->payload_max_bytes,
                .memory_max = handler->limits.memory_bytes,
                .cpu_seconds_max = handler->limits.cpu_ms / 1000,
                .files_max = handler->limits.descriptors,
                .processes_max = handler->limits.processes,
                .user = handler->limits.user ? handler->limits.user : "",
                .paths_read = (const char *const *)handler->limits.read.items,
                .paths_read_count = handler->limits.read.count,
                .paths_write = (const char *const *)handler->limits.write.items,
                .paths_write_count = handler->limits.write.count,
                .settings = handler->settings.items,
                .settings_count = handler->settings.count,
        };
}

static int open_station(struct host *h, struct station *st, const struct handler_config *handler, struct error *error)
{
        struct pool_policy policy;
        struct runner_start start;
        *st = (struct station){ .host = h, .handler = handler };
        int r = stage_copy(handler->plugin_path, h->staging, &st->staged, error);
        if (r < 0)
                return error_prefix(error, r, "handler %s", handler->name);
        make_policy(handler, &policy);
        make_start(st, &start);
        r = crew_init(&st->crew, &h->loop, &policy, &start, &h->leases, &crew_events, st);
        if (r < 0)
                return error_set(error, r, "handler %s: %s", handler->name, strerror(-r));
        st->is_open = true;
        return 0;
}

static int open_berths(struct host *h, uint32_t shards, struct error *error)
{
        h->berths_count = shards;
        h->berths = calloc(shards, sizeof(*h->berths));
        h->renewals = calloc(shards, sizeof(*h->renewals));
        h->stations = calloc(h->config->handlers_count + 1, sizeof(*h->stations));
        if (!h->berths || !h->renewals || !h->stations)
                return error_set(error, -ENOMEM, "out of memory");
        int r = leases_create(&h->leases, shards);
        if (r < 0)
                return error_set(error, r, "cannot make the lease page: %s", strerror(-r));
        for (size_t i = 0; i < h->config->handlers_count; i++) {
                r = open_station(h, &h->stations[i], &h->config->handlers[i], error);
                if (r < 0)
                        return r;
                h->stations_count++;
        }
        for (uint32_t i = 0; i < shards; i++) {
                h->berths[i].host = h;
                r = shard_init(&h->berths[i].shard, i, &h->limits, h->stations_count, h->config->window.per_key);
                if (r < 0)
                        return error_set(error, r, "out of memory");
                /* A new epoch must be above whatever was recorded: the time is, unless clocks went backwards, and then
                 * the store says so. */
                shard_seek(&h->berths[i].shard, h->nonce, (uint64_t)time(NULL));
        }
        return 0;
}

static void on_store_open(struct store_request *request)
{
        struct host *h = (struct host *)((char *)request - offsetof(struct host, open.request));
        struct store_info info;
        if (request->status < 0) {
                h->status = error_set(&h->error, request->status, "%s", request->error.text);
                on_store_closed(h);
                return;
        }
        if (h->is_stopping) {
                store_close(h->open.store, on_store_closed, h);
                return;
        }
        store_info(h->open.store, &info);
        log_event(LEVEL_INFO, "store", "driver=%s app=%s shards=%" PRIu32 " durability=%s", info.driver, info.app,
                info.shards, LOG_QUOTE(info.durability));
        h->status = open_berths(h, info.shards, &h->error);
        if (h->status < 0) {
                store_close(h->open.store, on_store_closed, h);
                return;
        }
        h->store = h->open.store;
        h->renew_at_ms = clock_boot_ms() + h->limits.ttl_ms / 3;
        log_event(LEVEL_INFO, "running", "host=%s handlers=%" PRIu32 " pid=%d", h->config->host.name, h->stations_count,
                (int)getpid());
}

static void open_store(struct host *h)
{
        const struct config *c = h->config;
        h->bell = (struct store_bell){ .shard = on_bell, .desired = on_bell_desired, .look = on_bell_look, .self = h };
        h->open.request.done = on_store_open;
        h->open.options = (struct store_options){
                .url = c->store.url.text,
                .app = c->app,
                .shards = c->shards,
                .coordination = c->coordination.url.text,
                .may_create = true,
                .is_host = true,
                .sync = c->store.synchronous == SYNCHRONOUS_FULL ? STORE_SYNC_FULL : STORE_SYNC_NORMAL,
                .payload_max = c->store.payload_max_bytes,
                .backlog_max = c->store.backlog_max,
                .results_max = c->store.results.count_max,
                .results_age_ms = c->store.results.age_max_ms,
                .bell = &h->bell,
        };
        memcpy(h->open.options.nonce, h->nonce, sizeof(h->nonce));
        store_open(&h->loop, &h->open);
}

static int prepare_folders(struct host *h, struct error *error)
{
        if (mkdir(h->config->state, 0700) < 0 && errno != EEXIST)
                return error_set(error, -errno, "state folder %s: %s", h->config->state, strerror(errno));
        (void)snprintf(h->staging, sizeof(h->staging), "%s/staging-XXXXXX", h->config->state);
        if (!mkdtemp(h->staging))
                return error_set(error, -errno, "state folder %s: %s", h->config->state, strerror(errno));
        return 0;
}

static void start_handles(struct host *h)
{
        (void)uv_prepare_init(&h->loop, &h->prepare);
        (void)uv_timer_init(&h->loop, &h->timer);
        (void)uv_signal_init(&h->loop, &h->terminate);
        (void)uv_signal_init(&h->loop, &h->interrupt);
        h->prepare.data = h->timer.data = h->terminate.data = h->interrupt.data = h;
        (void)uv_prepare_start(&h->prepare, pump);
        (void)uv_signal_start(&h->terminate, on_signal, SIGTERM);
        (void)uv_signal_start(&h->interrupt, on_signal, SIGINT);
}

static void free_host(struct host *h)
{
        for (uint32_t i = 0; i < h->stations_count; i++)
                stage_remove(&h->stations[i].staged);
        if (*h->staging)
                (void)rmdir(h->staging);
        for (uint32_t i = 0; h->berths && i < h->berths_count; i++)
                shard_free(&h->berths[i].shard);
        leases_free(&h->leases);
        free(h->berths);
        free(h->renewals);
        free(h->stations);
}

int host_run(const struct config *config, struct error *error)
{
        struct host *h = calloc(1, sizeof(*h));
        if (!h)
                return error_set(error, -ENOMEM, "out of memory");
        h->config = config;
        h->timer_ms = UINT64_MAX;
        h->renew_at_ms = h->cut_ms = UINT64_MAX;
        h->limits = (struct shard_limits){ .ttl_ms = config->lease.ttl_ms,
                .gather_ms = GATHER_MS,
                .window_tasks = config->window.tasks,
                .window_bytes = config->window.bytes };
        int r = prepare_folders(h, error);
        if (r == 0 && getrandom(h->nonce, sizeof(h->nonce), 0) != sizeof(h->nonce))
                r = error_set(error, -EIO, "no random numbers to be had");
        if (r == 0) {
                memcpy(&h->random, h->nonce, sizeof(h->random));
                (void)uv_loop_init(&h->loop);
                start_handles(h);
                open_store(h);
                (void)uv_run(&h->loop, UV_RUN_DEFAULT);
                (void)uv_loop_close(&h->loop);
                r = h->status;
                if (r < 0)
                        *error = h->error;
        }
        free_host(h);
        free(h);
        return r;
}
