/* host.c: the loop.  Read this first.
 *
 * A shard (shard.h) knows what to ask the store next; a pool (pool_io.h) runs a handler's tasks.  Before the loop
 * sleeps, pump() feeds the pools from the shards' windows and makes the calls that shards want.  Everything else is a
 * callback that hands a reply or an answer to the machine it belongs to. */
#include "host/host.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/host_parts.h"

#define GATHER_MS 10

static void cut_short(struct host *h);

/* What a burst took is given back once it is over: the allocator would keep it. */
static void give_memory_back(struct host *h)
{
        if (!h->was_busy)
                return;
        for (uint32_t i = 0; i < h->shards.count; i++)
                if (h->shards.list[i].shard.window.count)
                        return;
        h->was_busy = false;
        shard_tellings_free(&h->shards.schedule.spare);
        (void)malloc_trim(0);
}

static void on_timer(uv_timer_t *timer)
{
        struct host *h = timer->data;
        uint64_t now_ms = clock_boot_ms();
        h->timer_ms = UINT64_MAX;
        if (now_ms >= h->renew_at_ms) {
                h->renew_at_ms = now_ms + h->limits.ttl_ms / 3;
                if (h->store && !h->is_closing)
                        shards_renew(&h->shards, now_ms);
                give_memory_back(h);
        }
        if (h->is_stopping && now_ms >= h->cut_ms)
                cut_short(h);
        if (now_ms >= h->give_up_ms)
                host_give_up(h);
        handlers_tick(h, now_ms);
}

/* The service manager hears of a reload, of its end, and that the loop goes round. */
static void tell_manager(struct host *h, uint64_t now_ms)
{
        bool is_busy = reload_is_busy(h);
        if (is_busy && !h->is_told_busy)
                notify_reloading(&h->notify);
        else if (!is_busy && h->is_told_busy)
                notify_say(&h->notify, "READY=1\nSTATUS=%s", "Running");
        h->is_told_busy = is_busy;
        notify_beat(&h->notify, now_ms);
}

static void set_timer(struct host *h, uint64_t now_ms)
{
        uint64_t due_ms = handlers_due_ms(h);
        due_ms = h->renew_at_ms < due_ms ? h->renew_at_ms : due_ms;
        due_ms = h->notify.beat_at_ms < due_ms ? h->notify.beat_at_ms : due_ms;
        if (h->is_stopping && h->cut_ms < due_ms)
                due_ms = h->cut_ms;
        if (h->give_up_ms < due_ms)
                due_ms = h->give_up_ms;
        uint64_t shards_ms = call_schedule_due_ms(&h->shards.schedule);
        due_ms = shards_ms < due_ms ? shards_ms : due_ms;
        if (due_ms == h->timer_ms)
                return;
        h->timer_ms = due_ms;
        (void)uv_timer_start(&h->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* Other hosts may have the handler, or somebody has to do something. */
static void tell_unserved(struct routes *routes)
{
        for (; routes->unserved_told < routes->unserved_count; routes->unserved_told++)
                log_event(LEVEL_WARN, "unserved", "handler=%s hint=%s",
                        LOG_QUOTE(routes->unserved[routes->unserved_told]),
                        LOG_QUOTE("its tasks wait, the others go on; add the handler to runtime.cfg and reload"));
}

/* Before the loop sleeps: tasks to the pools, outcomes to the store. */
static void pump(uv_prepare_t *prepare)
{
        struct host *h = prepare->data;
        uint64_t now_ms = clock_boot_ms();
        if (!h->store || h->is_closing) {
                pools_flush(&h->pools);
                return;
        }
        dispatch_look(&h->dispatch, &h->shards.schedule.changed);
        for (uint32_t i = 0; i < h->handlers_count; i++)
                handler_feed(h->handlers[i], now_ms);
        /* A handler may have put something back for one that was fed before it. */
        dispatch_look(&h->dispatch, &h->shards.schedule.changed);
        tell_unserved(&h->dispatch.routes);
        pools_flush(&h->pools);
        shards_call(&h->shards, now_ms);
        h->was_busy |= call_schedule_is_busy(&h->shards.schedule);
        tell_manager(h, now_ms);
        set_timer(h, now_ms);
        host_status_watch(h, now_ms);
        if (h->is_stopping)
                host_finish(h);
}

static void on_check(uv_check_t *check)
{
        struct host *h = check->data;
        pools_collect(&h->pools);
}

/* --- end --- */

void host_close_handles(void *self)
{
        struct host *h = self;
        control_close(h->control);
        host_status_close(h);
        pools_close(&h->pools);
        uv_close((uv_handle_t *)&h->prepare, NULL);
        uv_close((uv_handle_t *)&h->check, NULL);
        uv_close((uv_handle_t *)&h->timer, NULL);
        uv_close((uv_handle_t *)&h->terminate, NULL);
        uv_close((uv_handle_t *)&h->interrupt, NULL);
        uv_close((uv_handle_t *)&h->hang_up, NULL);
}

/* Stopping: shards first (their outcomes), then pools, then the store. */
void host_finish(struct host *h)
{
        for (uint32_t i = 0; i < h->shards.count && !h->has_given_up; i++)
                if (h->shards.list[i].shard.state != SHARD_AWAY || h->shards.list[i].shard.is_calling)
                        return;
        if (!handlers_stop(h) || (!h->has_given_up && !host_status_withdraw(h)))
                return;
        log_event(LEVEL_INFO, "stopped", "host=%s", h->config->host.name);
        host_close(h);
}

/* No more patience: what runs is interrupted, at no cost, and is the next owner's. */
static void cut_short(struct host *h)
{
        h->cut_ms = UINT64_MAX;
        host_set_patience(h);
        log_event(LEVEL_WARN, "cut-short", "text=%s", LOG_QUOTE("tasks still running are interrupted at no cost"));
        handlers_cut(h);
}

static void on_signal(uv_signal_t *signal, int number)
{
        struct host *h = signal->data;
        if (h->is_stopping && h->cut_ms == UINT64_MAX) {
                host_give_up(h);
                return;
        }
        if (h->is_stopping) {
                cut_short(h);
                return;
        }
        log_event(
                LEVEL_INFO, "stopping", "signal=%s drain_ms=%" PRIu64, sigabbrev_np(number), h->config->lease.drain_ms);
        h->is_stopping = true;
        reload_end(h);
        notify_say(&h->notify, "STOPPING=1\nSTATUS=%s", "Finishing what runs");
        h->cut_ms = clock_boot_ms() + h->config->lease.drain_ms;
        membership_leave(h);
        for (uint32_t i = 0; i < h->shards.count; i++)
                shard_leave(&h->shards.list[i].shard, clock_boot_ms());
}

static void on_hang_up(uv_signal_t *signal, int number)
{
        (void)number;
        reload_ask(signal->data, "SIGHUP", NULL, false, false);
}

/* --- start --- */

static void start_handles(struct host *h)
{
        (void)uv_prepare_init(&h->loop, &h->prepare);
        (void)uv_check_init(&h->loop, &h->check);
        (void)uv_timer_init(&h->loop, &h->timer);
        (void)uv_signal_init(&h->loop, &h->terminate);
        (void)uv_signal_init(&h->loop, &h->interrupt);
        (void)uv_signal_init(&h->loop, &h->hang_up);
        h->prepare.data = h->check.data = h->timer.data = h->terminate.data = h->interrupt.data = h->hang_up.data = h;
        (void)uv_prepare_start(&h->prepare, pump);
        (void)uv_check_start(&h->check, on_check);
        pools_init(&h->pools, &h->loop);
        (void)uv_signal_start(&h->terminate, on_signal, SIGTERM);
        (void)uv_signal_start(&h->interrupt, on_signal, SIGINT);
        (void)uv_signal_start(&h->hang_up, on_hang_up, SIGHUP);
}

int host_run(const struct config *config, struct error *error)
{
        struct host *h = calloc(1, sizeof(*h));
        if (!h)
                return error_set(error, -ENOMEM, "out of memory");
        h->config = config;
        notify_open(&h->notify);
        h->timer_ms = UINT64_MAX;
        h->renew_at_ms = h->cut_ms = h->give_up_ms = UINT64_MAX;
        h->limits = (struct shard_limits){ .ttl_ms = config->lease.ttl_ms,
                .drain_ms = config->lease.drain_ms,
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
                host_status_init(h);
                host_open_control(h);
                membership_open(h);
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
