/* host_stop.c: how a host stops.
 *
 *         host_stop()       on a signal: begins no more reloads, gives up leadership and shards, and lets running tasks
 *                           end within lease.drain
 *         host_cut()        on a second signal, or when the drain time is over: interrupts the tasks that still run
 *         host_give_up()    on a third signal, or if the store does not answer: stops waiting for the store
 *         host_stop_go_on() in every turn of the loop: shards released → runners gone → status withdrawn → host_close()
 *         host_close()      leaves the tree → dismisses the guard → closes the store → closes the loop's handles
 *         host_free()       after the loop
 *
 * A start that fails, or that a signal interrupts, goes to host_close() at once. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/host_private.h"

/* After the cut the host waits for the store for lease.ttl plus this: by then its leases have expired. */
#define SLACK_MS 500

void host_stop(struct host *h, int signal_number)
{
        uint64_t now_ms = clock_boot_ms();
        log_event(LEVEL_INFO, "stopping", "signal=%s drain_ms=%" PRIu64, sigabbrev_np(signal_number),
                h->config->lease.drain_ms);
        h->phase = HOST_DRAINING;
        h->cut_ms = now_ms + h->config->lease.drain_ms;
        reload_end(&h->reload);
        h->handlers.is_leaving = true;
        h->fleet_limits.limits.is_leaving = true;
        notify_say(&h->notify, "STOPPING=1\nSTATUS=%s", "Finishing what runs");
        http_stop_accepting(h->http);
        membership_leave(&h->membership);
        shards_leave(&h->shards, now_ms);
}

void host_stop_lacking(struct host *h, const char *feature)
{
        h->status = error_set(&h->error, -EPROTO,
                "the app has its feature \"%s\" switched on, which this Quiver does not know; run a newer one",
                feature);
        log_event(LEVEL_ERROR, "feature-missing", "feature=%s text=%s", feature, LOG_QUOTE(h->error.text));
        host_stop(h, SIGTERM);
}

void host_cut(struct host *h)
{
        h->phase = HOST_CUTTING;
        h->give_up_ms = clock_boot_ms() + h->limits.ttl_ms + SLACK_MS;
        log_event(LEVEL_WARN, "cut-short", "text=%s", LOG_QUOTE("tasks still running are interrupted at no cost"));
        handlers_cut(&h->handlers);
}

void host_give_up(struct host *h)
{
        uint32_t shards = shards_count_held(&h->shards);
        uint64_t outcomes = 0;
        h->give_up_ms = UINT64_MAX;
        if (h->phase != HOST_CUTTING || !shards)
                return;
        for (uint32_t i = 0; i < h->shards.count; i++) {
                const struct shard *s = &h->shards.list[i].shard;
                outcomes += s->ended_count + shard_telling_count(s);
        }
        h->phase = HOST_GIVEN_UP;
        h->has_run = false; /* Keeps NAME.last: with it the next host of this name can release these leases. */
        h->status = error_set(&h->error, -EIO,
                "stopped while the store did not answer: %" PRIu32 " shards were not released (their leases end by "
                "themselves), and %" PRIu64 " outcomes were not recorded (those tasks will run again)",
                shards, outcomes);
        log_event(LEVEL_ERROR, "gave-up", "shards=%" PRIu32 " outcomes=%" PRIu64, shards, outcomes);
}

void host_stop_go_on(struct host *h)
{
        bool has_given_up = h->phase == HOST_GIVEN_UP;
        if (!has_given_up && shards_count_held(&h->shards))
                return;
        if (!handlers_stop(&h->handlers))
                return;
        /* Owners of borrowed tasks must get the outcomes, or they wait until the starts expire. */
        if (!has_given_up && !lend_is_quiet(&h->lend))
                return;
        if (!has_given_up && !host_status_withdraw(&h->status_doc))
                return;
        if (!has_given_up && !hour_report_flush(&h->hour))
                return;
        if (!traces_flush(&h->traces, clock_boot_ms()))
                return;
        log_event(LEVEL_INFO, "stopped", "host=%s", h->config->host.name);
        host_close(h);
}

/* --- closing --- */

static void close_next(void *self);

static void give_slot_back(struct host *h)
{
        services_release(&h->services, close_next, h);
}

static void leave_tree(struct host *h)
{
        membership_close(&h->membership, close_next);
}

static void dismiss_guard(struct host *h)
{
        if (h->has_run)
                last_run_remove(h->locks.folder_fd, h->config->host.name);
        if (h->has_guard)
                guard_client_close(&h->guard, close_next, h);
        else
                close_next(h);
}

static void close_store(struct host *h)
{
        struct store *store = h->open.store;
        copied_stop(&h->copied);
        /* The remotes' open store requests end when the store is closed. */
        remotes_close(&h->handlers, clock_boot_ms());
        h->status_doc.view.http = NULL;
        http_close(h->http);
        h->http = NULL;
        file_schedules_stop(&h->file_schedules);
        h->open.store = h->store = h->shards.store = h->file_schedules.store = h->lend.store = NULL;
        if (store)
                store_close(store, close_next, h);
        else
                close_next(h);
}

/* The loop ends when all its handles are closed. */
static void close_handles(struct host *h)
{
        control_close(h->control);
        clock_watch_close(&h->clock_watch);
        host_status_close(&h->status_doc);
        hour_report_close(&h->hour);
        backlog_close(&h->backlog);
        traces_close(&h->traces);
        file_schedules_close(&h->file_schedules);
        pools_close(&h->pools);
        strays_close(&h->strays);
        uv_close((uv_handle_t *)&h->prepare, NULL);
        uv_close((uv_handle_t *)&h->check, NULL);
        uv_close((uv_handle_t *)&h->timer, NULL);
        uv_close((uv_handle_t *)&h->terminate, NULL);
        uv_close((uv_handle_t *)&h->interrupt, NULL);
        uv_close((uv_handle_t *)&h->hang_up, NULL);
        uv_close((uv_handle_t *)&h->rotate, NULL);
}

/* Each step continues with close_next(), at once if it has nothing to close.  The guard is dismissed after the session
 * has ended, so that it can clean up if the host dies on the way. */
static void (*const close_steps[])(
        struct host *h) = { give_slot_back, leave_tree, dismiss_guard, close_store, close_handles };

static void close_next(void *self)
{
        struct host *h = self;
        close_steps[h->close_steps++](h);
}

void host_close(struct host *h)
{
        if (h->phase == HOST_CLOSING)
                return;
        h->phase = HOST_CLOSING;
        /* After a failed start, a reload may have been asked for, and some handlers may be open. */
        reload_end(&h->reload);
        handlers_cut(&h->handlers);
        close_next(h);
}

void host_free(struct host *h)
{
        lend_free(&h->lend);
        handlers_free(&h->handlers);
        notify_close(&h->notify);
        services_free(&h->services);
        membership_free(&h->membership);
        guard_client_free(&h->guard);
        explicit_bzero(&h->secrets, sizeof(h->secrets));
        if (*h->copies)
                plugin_copies_close(h->copies, h->copies_fd);
        strays_free(&h->strays);
        cgroups_close(&h->cgroups);
        shards_free(&h->shards);
        dispatch_free(&h->dispatch);
        limits_io_free(&h->fleet_limits);
        host_status_free(&h->status_doc);
        done_tasks_free(&h->done);
        hour_report_free(&h->hour);
        backlog_free(&h->backlog);
        traces_free(&h->traces);
        file_schedules_free(&h->file_schedules);
        survey_free(&h->survey);
        leases_free(&h->leases);
        explicit_bzero(&h->run, sizeof(h->run));
        explicit_bzero(&h->last, sizeof(h->last));
        state_locks_close(&h->locks);
        shared_config_free(h->shared);
}
