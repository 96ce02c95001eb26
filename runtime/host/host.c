/* host.c: the loop.  Read this first.
 *
 * A shard (shard.h) knows what to ask the store next; a crew (crew.h) runs a handler's tasks.  Before the loop sleeps,
 * pump() feeds the crews from the shards' windows and makes the calls that shards want.  Everything else is a callback
 * that hands a reply or an answer to the machine it belongs to. */
#include "host/host.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/host_parts.h"

#define GATHER_MS 10

static void cut_short(struct host *h);

static void on_timer(uv_timer_t *timer)
{
        struct host *h = timer->data;
        uint64_t now_ms = clock_boot_ms();
        h->timer_ms = UINT64_MAX;
        if (now_ms >= h->renew_at_ms)
                host_renew(h, now_ms);
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

/* Before the loop sleeps: tasks to the crews, outcomes to the store. */
static void pump(uv_prepare_t *prepare)
{
        struct host *h = prepare->data;
        uint64_t now_ms = clock_boot_ms();
        if (!h->store)
                return;
        for (uint32_t i = 0; i < h->stations_count; i++)
                station_feed(&h->stations[i], now_ms);
        bool has_other_work = false;
        for (uint32_t i = 0; i < h->berths_count && !has_other_work; i++)
                has_other_work = h->berths[i].shard.running > 0;
        for (uint32_t i = 0; i < h->berths_count; i++)
                berth_call(&h->berths[i], shard_next_call(&h->berths[i].shard, has_other_work, now_ms), now_ms);
        set_timer(h, now_ms);
        if (h->is_stopping)
                host_finish(h);
}

/* --- end --- */

void host_close_handles(void *self)
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
void host_finish(struct host *h)
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
        store_close(store, host_close_handles, h);
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

/* --- start --- */

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
        int r = host_open_folders(h, error);
        if (r == 0 && getrandom(h->nonce, sizeof(h->nonce), 0) != sizeof(h->nonce))
                r = error_set(error, -EIO, "no random numbers to be had");
        if (r == 0) {
                memcpy(&h->random, h->nonce, sizeof(h->random));
                (void)uv_loop_init(&h->loop);
                start_handles(h);
                host_open_store(h);
                (void)uv_run(&h->loop, UV_RUN_DEFAULT);
                (void)uv_loop_close(&h->loop);
                r = h->status;
                if (r < 0)
                        *error = h->error;
        }
        host_free(h);
        free(h);
        return r;
}
