/* host.c: the loop.  Read this first.
 *
 * A shard (shard.h) decides which call to make to the store next; a pool (pool_io.h) runs a handler's tasks.  Before
 * the loop sleeps, pump() hands ready tasks from the shards' windows to the pools and makes the shards' calls.  Every
 * other function is a callback that passes a reply, a timer or a signal to the machine it belongs to.  host_start.c and
 * host_stop.c are the start and the stop, each a list of steps; host_events.c connects the parts to each other. */
#include "host/host.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/host_private.h"

/* After a burst the allocator would keep the freed memory: return it to the kernel once all windows are empty. */
static void give_memory_back(struct host *h)
{
        if (!h->was_busy)
                return;
        for (uint32_t i = 0; i < h->shards.count; i++)
                if (h->shards.list[i].shard.window.count)
                        return;
        h->was_busy = false;
        shard_tellings_free(&h->shards.schedule.spare);
        blocks_free(&h->shards.blocks);
        (void)malloc_trim(0);
}

/* Called together with the lease renewal, so that an idle host does not wake up for it. */
static void tell_load(struct host *h, uint64_t now_ms)
{
        struct load_summary load;
        if (shards_sample_load(&h->shards, now_ms, &load))
                membership_load(&h->membership, &load, now_ms);
}

static void on_timer(uv_timer_t *timer)
{
        struct host *h = timer->data;
        uint64_t now_ms = clock_boot_ms();
        h->timer_ms = UINT64_MAX;
        if (now_ms >= h->renew_at_ms) {
                h->renew_at_ms = now_ms + h->limits.ttl_ms / 3;
                if (h->store && h->phase != HOST_CLOSING)
                        shards_renew(&h->shards, now_ms);
                give_memory_back(h);
                tell_load(h, now_ms);
        }
        if (h->phase == HOST_DRAINING && now_ms >= h->cut_ms)
                host_cut(h);
        if (now_ms >= h->give_up_ms)
                host_give_up(h);
        handlers_tick(&h->handlers, now_ms);
        services_tick(&h->services, now_ms);
}

static void set_timer(struct host *h, uint64_t now_ms)
{
        uint64_t due_ms = handlers_due_ms(&h->handlers);
        due_ms = min_u64(remotes_due_ms(&h->handlers, now_ms), due_ms);
        due_ms = min_u64(services_due_ms(&h->services), due_ms);
        due_ms = min_u64(lend_due_ms(&h->lend, now_ms), due_ms);
        due_ms = min_u64(h->renew_at_ms, due_ms);
        due_ms = min_u64(h->notify.beat_at_ms, due_ms);
        due_ms = h->phase == HOST_DRAINING && h->cut_ms < due_ms ? h->cut_ms : due_ms;
        due_ms = min_u64(h->give_up_ms, due_ms);
        due_ms = min_u64(limits_io_due_ms(&h->fleet_limits, now_ms, clock_wall_ms()), due_ms);
        uint64_t shards_ms = call_schedule_due_ms(&h->shards.schedule);
        due_ms = min_u64(shards_ms, due_ms);
        if (due_ms == h->timer_ms)
                return;
        h->timer_ms = due_ms;
        (void)uv_timer_start(&h->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* Tells the service manager (systemd) when a reload begins and ends, and sends its watchdog heartbeat. */
static void tell_manager(struct host *h, uint64_t now_ms)
{
        bool is_busy = reload_is_busy(&h->reload);
        if (is_busy && !h->is_told_busy)
                notify_reloading(&h->notify);
        else if (!is_busy && h->is_told_busy)
                notify_say(&h->notify, "READY=1\nSTATUS=%s", "Running");
        h->is_told_busy = is_busy;
        notify_beat(&h->notify, now_ms);
}

/* Warns once for each task name that no handler of this host serves: another host may serve it, or the configuration
 * lacks it. */
static void tell_unserved(struct routes *routes)
{
        for (; routes->unserved_told < routes->unserved_count; routes->unserved_told++)
                log_event(LEVEL_WARN, "unserved", "handler=%s hint=%s",
                        LOG_QUOTE(routes->unserved[routes->unserved_told]),
                        LOG_QUOTE("its tasks wait, the others go on; add the handler to runtime.cfg and reload"));
}

/* One turn of the loop: hands ready tasks to the pools, then sends the shards' outcomes and claims to the store. */
static void pump(struct host *h)
{
        uint64_t now_ms = clock_boot_ms();
        if (!h->store || h->phase == HOST_CLOSING) {
                pools_flush(&h->pools);
                return;
        }
        dispatch_look(&h->dispatch, &h->shards.schedule.changed);
        remotes_look(&h->handlers, &h->shards, now_ms);
        handlers_feed(&h->handlers, now_ms);
        shards_look_at_shares(&h->shards);
        /* While it was fed, a handler may have put tasks back for a handler that was fed before it. */
        dispatch_look(&h->dispatch, &h->shards.schedule.changed);
        h->lend.has_others = h->membership.assignment.owners_count > 1 && !h->membership.is_drained;
        lend_turn(&h->lend, now_ms);
        tell_unserved(&h->dispatch.routes);
        pools_flush(&h->pools);
        shards_see_clock(&h->shards, clock_wall_ms(), now_ms);
        shards_call(&h->shards, now_ms);
        limits_io_call(&h->fleet_limits, now_ms, clock_wall_ms());
        store_flush(h->store);
        if (call_schedule_expects_task(&h->shards.schedule))
                pools_expect(&h->pools);
        h->was_busy |= call_schedule_is_busy(&h->shards.schedule);
        reload_look(&h->reload);
        tell_manager(h, now_ms);
        set_timer(h, now_ms);
        host_status_watch(&h->status_doc, now_ms);
        if (h->phase > HOST_RUNNING)
                host_stop_go_on(h);
}

static void note_turn(struct host *h)
{
        uint64_t now_ns = uv_hrtime();
        uint64_t idle_ns = uv_metrics_idle_time(&h->loop);
        uint64_t took_ns = now_ns - h->times.turned_ns;
        uint64_t slept_ns = min_u64(idle_ns - h->times.idle_ns, took_ns);
        if (h->times.turned_ns)
                histogram_add(&h->times.busy, took_ns - slept_ns);
        h->times.turned_ns = now_ns;
        h->times.idle_ns = idle_ns;
}

/* libuv calls this each time before the loop sleeps. */
static void on_prepare(uv_prepare_t *prepare)
{
        struct host *h = prepare->data;
        pump(h);
        note_turn(h);
}

static void on_check(uv_check_t *check)
{
        struct host *h = check->data;
        pools_collect(&h->pools);
}

/* --- signals --- */

static void on_signal(uv_signal_t *signal, int number)
{
        struct host *h = signal->data;
        switch (h->phase) {
        case HOST_STARTING:
        case HOST_RUNNING:
                host_stop(h, number);
                break;
        case HOST_DRAINING:
                host_cut(h);
                break;
        case HOST_CUTTING:
                host_give_up(h);
                break;
        case HOST_GIVEN_UP:
        case HOST_CLOSING:
                break;
        }
}

/* Log rotation may have renamed the file: opens its path again. */
static void open_log_anew(const char *why)
{
        const char *path = log_file_get();
        struct error error = { "" };
        char text[128];
        if (path && log_to_file(path, &error) < 0) {
                log_event(LEVEL_ERROR, "log", "text=%s", LOG_QUOTE(error.text));
                return;
        }
        path = log_file_get();
        (void)snprintf(text, sizeof(text), "%s: %s", why,
                path ? "the file was opened anew" : "the log goes to standard error; log.file names a file");
        log_event(LEVEL_INFO, "log", "file=%s text=%s", LOG_QUOTE(path ? path : ""), LOG_QUOTE(text));
}

/* Many log rotation setups send SIGHUP to have logs reopened, so SIGHUP does that besides the reload. */
static void on_hang_up(uv_signal_t *signal, int number)
{
        struct host *h = signal->data;
        (void)number;
        if (log_file_get())
                open_log_anew("SIGHUP");
        reload_ask(&h->reload, "SIGHUP", NULL, false, false);
}

static void on_rotate(uv_signal_t *signal, int number)
{
        (void)signal;
        (void)number;
        open_log_anew("SIGUSR1");
}

int host_catch_signals(struct host *h)
{
        (void)uv_signal_start(&h->terminate, on_signal, SIGTERM);
        (void)uv_signal_start(&h->interrupt, on_signal, SIGINT);
        (void)uv_signal_start(&h->hang_up, on_hang_up, SIGHUP);
        (void)uv_signal_start(&h->rotate, on_rotate, SIGUSR1);
        return 0;
}

/* --- from the first to the last turn --- */

static void start_loop(struct host *h)
{
        (void)uv_prepare_init(&h->loop, &h->prepare);
        (void)uv_check_init(&h->loop, &h->check);
        (void)uv_timer_init(&h->loop, &h->timer);
        (void)uv_signal_init(&h->loop, &h->terminate);
        (void)uv_signal_init(&h->loop, &h->interrupt);
        (void)uv_signal_init(&h->loop, &h->hang_up);
        (void)uv_signal_init(&h->loop, &h->rotate);
        h->prepare.data = h->check.data = h->timer.data = h->terminate.data = h->interrupt.data = h->hang_up.data = h;
        h->rotate.data = h;
        h->timer_ms = h->renew_at_ms = h->give_up_ms = UINT64_MAX;
        (void)uv_prepare_start(&h->prepare, on_prepare);
        (void)uv_check_start(&h->check, on_check);
}

int host_run(const struct config *config, bool is_strict, struct error *error)
{
        struct host *h = memory_zero(1, sizeof(*h));
        int r = uv_loop_init(&h->loop);
        if (r < 0) {
                free(h);
                return error_set(error, r, "cannot make the event loop: %s", strerror(-r));
        }
        h->config = config;
        h->is_strict = is_strict;
        (void)uv_loop_configure(&h->loop, UV_METRICS_IDLE_TIME);
        start_loop(h);
        host_start(h);
        (void)uv_run(&h->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&h->loop);
        r = h->status;
        if (r < 0)
                *error = h->error;
        host_free(h);
        free(h);
        return r;
}
