/* station.c: a host's handlers: tasks from the windows to the crews, and how they ended back to their shards. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/desired.h"
#include "host/host_parts.h"
#include "host/retry.h"
#include "host/start.h"

#define RING_ENTRIES 256

static double random_fraction(struct host *h)
{
        h->random = h->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (double)(h->random >> 11) / 9007199254740992.0;
}

/* A person has paused it; or it takes no tasks for now, and then it keeps at most half of a window: the rest is for
 * others. */
static bool is_shut(const struct berth *berth, const struct station *st)
{
        if (st->is_paused)
                return true;
        return st->crew.pool.state != POOL_OPEN && berth->shard.window.count >= berth->host->limits.window_tasks / 2;
}

uint32_t berth_pool_of(void *arg, struct span handler)
{
        const struct berth *berth = arg;
        const struct host *h = berth->host;
        for (uint32_t i = 0; i < h->stations_count; i++) {
                const struct texts *names = &h->stations[i].handler->tasks;
                for (size_t j = 0; j < names->count; j++)
                        if (strlen(names->items[j]) == handler.size &&
                                !memcmp(names->items[j], handler.data, handler.size))
                                return is_shut(berth, &h->stations[i]) ? WINDOW_NO_POOL : i;
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

/* It takes no tasks for now, and those that it was meant to take fill windows: they wait in the store instead, for the
 * sake of the others. */
static void make_way(struct station *st, uint64_t now_ms)
{
        struct host *h = st->host;
        for (uint32_t i = 0; i < h->berths_count; i++) {
                struct shard *s = &h->berths[i].shard;
                if (s->window.count >= h->limits.window_tasks || s->window.bytes >= h->limits.window_bytes)
                        shard_shun_pool(s, (uint32_t)(st - h->stations), now_ms);
        }
}

/* Round and round over the shards, a task of each at a time, while the crew has room. */
void station_feed(struct station *st, uint64_t now_ms)
{
        struct host *h = st->host;
        uint32_t dry = 0;
        if (st->crew.pool.state != POOL_OPEN)
                make_way(st, now_ms);
        while (!st->is_paused && dry < h->berths_count && crew_has_room(&st->crew)) {
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

/* --- the desired state --- */

static void set_paused(struct station *st, bool is_paused, struct span reason)
{
        struct host *h = st->host;
        if (st->is_paused == is_paused)
                return;
        st->is_paused = is_paused;
        char text[256];
        (void)snprintf(text, sizeof(text), "%.*s", (int)reason.size, reason.data ? reason.data : "");
        log_event(LEVEL_INFO, is_paused ? "paused" : "resumed", "handler=%s reason=%s", st->handler->name,
                LOG_QUOTE(text));
        for (uint32_t i = 0; is_paused && i < h->berths_count; i++)
                shard_shun_pool(&h->berths[i].shard, (uint32_t)(st - h->stations), clock_boot_ms());
}

static void on_desired(struct store_request *request)
{
        struct host *h = (struct host *)((char *)request - offsetof(struct host, desired.request));
        h->is_asking = false;
        if (request->status < 0)
                return;
        h->desired_version = h->desired.version;
        for (uint32_t i = 0; i < h->stations_count; i++) {
                struct span reason = { "", 0 };
                bool is_paused =
                        desired_is_paused(h->desired.items, h->desired.items_count, h->stations[i].handler, &reason);
                set_paused(&h->stations[i], is_paused, reason);
        }
}

void host_ask_desired(struct host *h)
{
        if (h->is_asking || !h->store)
                return;
        h->is_asking = true;
        h->desired = (struct store_desired_get){ .request.done = on_desired };
        store_desired_get(h->store, &h->desired);
}

/* --- opening --- */

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

int station_open(struct host *h, struct station *st, const struct handler_config *handler, struct error *error)
{
        struct pool_policy policy;
        struct runner_start start;
        *st = (struct station){ .host = h, .handler = handler };
        int r = stage_copy(handler->plugin_path, h->staging, &st->staged, error);
        if (r < 0)
                return error_prefix(error, r, "handler %s", handler->name);
        make_policy(handler, &policy);
        start_fill(&start, h->config, handler, &st->staged);
        start.leases = h->berths_count;
        r = crew_init(&st->crew, &h->loop, &policy, &start, &h->leases, &crew_events, st);
        if (r < 0)
                return error_set(error, r, "handler %s: %s", handler->name, strerror(-r));
        st->is_open = true;
        return 0;
}
