/* host_start.c: what a host does before its loop runs for real, and after. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "config/connect.h"
#include "host/host_parts.h"

static int open_guard(struct host *h, struct error *error)
{
        const struct config *c = h->config;
        struct guard_start start = {
                .ttl_ms = c->lease.ttl_ms,
                .leases = h->leases.count,
                .app = c->app,
                .store_url = c->store.url.text,
                .store_user = c->store.user,
                .store_password = h->secrets.store,
                .store_sentinel_user = c->store.sentinel.user,
                .store_sentinel_password = h->secrets.store_sentinel,
                .coord_url = c->coordination.url.text,
                .coord_user = c->coordination.user,
                .coord_password = h->secrets.coordination,
                .coord_sentinel_user = c->coordination.sentinel.user,
                .coord_sentinel_password = h->secrets.coordination_sentinel,
        };
        memcpy(start.nonce, h->nonce, sizeof(start.nonce));
        int r = guard_client_open(&h->guard, &h->loop, &h->leases, &start, error);
        h->has_guard = r == 0;
        return r;
}

#define SEATS_MAX 128 /* what one call tells the store, and time for outcomes besides */

uint32_t host_count_seats(const struct config *config)
{
        uint64_t seats = 0;
        for (size_t i = 0; i < config->handlers_count; i++) {
                const struct handler_config *handler = &config->handlers[i];
                seats += (uint64_t)handler->processes * handler->threads * handler->batch.max;
        }
        return seats < SEATS_MAX ? (uint32_t)seats : SEATS_MAX;
}

/* --- what the shards need the host for --- */

static uint64_t on_now_ms(void *self)
{
        (void)self;
        return clock_boot_ms();
}

static void on_stop(void *self, struct claimed *claimed)
{
        (void)self;
        pool_io_cancel(claimed->pool_task.pool_io, &claimed->pool_task);
}

static void on_failed(void *self, const struct shard *shard, const char *text)
{
        (void)self;
        log_event(LEVEL_ERROR, "store", "shard=%" PRIu32 " text=%s", shard->number, LOG_QUOTE(text));
}

static void on_stale(void *self)
{
        membership_report(self);
}

static void on_renewed(void *self, bool is_answered, uint64_t desired_version)
{
        struct host *h = self;
        membership_store_seen(h, is_answered);
        if (!is_answered)
                return;
        membership_reconcile(h);
        if (desired_version != h->desired_version)
                host_ask_desired(h);
}

static const struct shards_events shards_events = {
        .now_ms = on_now_ms, .stop = on_stop, .failed = on_failed, .stale = on_stale, .renewed = on_renewed
};

static int open_shards(struct host *h, const struct store_info *info, struct error *error)
{
        h->limits.seats = host_count_seats(h->config);
        h->shards = (struct shards){ .store = h->store,
                .dispatch = &h->dispatch,
                .leases = &h->leases,
                .assignment = &h->membership.assignment,
                .limits = &h->limits,
                .events = &shards_events,
                .self = h };
        if (dispatch_init(&h->dispatch, info->shards, &h->limits) < 0 ||
                shards_init(&h->shards, info->calls_max, h->config->window.per_key) < 0)
                return error_set(error, -ENOMEM, "out of memory");
        int r = leases_create(&h->leases, info->shards);
        if (r < 0)
                return error_set(error, r, "cannot make the lease page: %s", strerror(-r));
        r = open_guard(h, error);
        for (size_t i = 0; r == 0 && i < h->config->handlers_count; i++)
                r = handler_open(h, &h->config->handlers[i], error);
        return r;
}

void host_nonce_text(const struct host *h, char ret_text[2 * STORE_NONCE_SIZE + 1])
{
        (void)units_hex(ret_text, h->nonce, sizeof(h->nonce));
}

void host_warn_of_root(struct host *h)
{
        const struct config *config = h->config;
        struct buffer names = { 0 };
        for (size_t i = 0; i < config->handlers_count && geteuid() == 0 && !h->is_root_told; i++)
                if (!config->handlers[i].limits.user)
                        buffer_printf(&names, "%s%s", names.size ? "," : "", config->handlers[i].name);
        h->is_root_told |= names.size > 0;
        if (names.size)
                log_event(LEVEL_WARN, "runs-as-root", "handlers=%s text=%s", buffer_text(&names),
                        LOG_QUOTE("their plugins run as root; set limits.user of each to a user of its own, or start "
                                  "the host as another user"));
        buffer_free(&names);
}

static void on_store_open(struct store_request *request)
{
        struct host *h = (struct host *)((char *)request - offsetof(struct host, open.request));
        struct store_info info;
        if (request->status < 0) {
                h->status = error_set(&h->error, request->status, "%s", request->error.text);
                host_close(h);
                return;
        }
        h->store = h->open.store;
        if (h->is_stopping) {
                host_close(h);
                return;
        }
        store_info(h->open.store, &info);
        log_event(LEVEL_INFO, "store", "driver=%s app=%s shards=%" PRIu32 " durability=%s", info.driver, info.app,
                info.shards, LOG_QUOTE(info.durability));
        h->status = open_shards(h, &info, &h->error);
        if (h->status < 0) {
                handlers_cut(h);
                host_close(h);
                return;
        }
        h->renew_at_ms = clock_boot_ms() + h->limits.ttl_ms / 3;
        membership_start(h);
        host_ask_desired(h);
        char nonce[2 * STORE_NONCE_SIZE + 1];
        host_nonce_text(h, nonce);
        log_event(LEVEL_INFO, "running", "host=%s handlers=%" PRIu32 " pid=%d nonce=%s", h->config->host.name,
                h->handlers_count, (int)getpid(), nonce);
        host_warn_of_root(h);
        notify_say(&h->notify, "READY=1\nSTATUS=%s", "Running");
        reload_begin(h);
}

static void on_bell(void *self, uint32_t shard)
{
        struct host *h = self;
        if (shard < h->shards.count)
                shard_rang(&h->shards.list[shard].shard);
}

static void on_bell_desired(void *self)
{
        host_ask_desired(self);
}

static void on_bell_look(void *self)
{
        struct host *h = self;
        for (uint32_t i = 0; i < h->shards.count; i++)
                shard_rang(&h->shards.list[i].shard);
}

void host_open_store(struct host *h)
{
        struct store_options *options = &h->open.options;
        struct coord_info coordination;
        coord_info(h->membership.coord, &coordination);
        h->bell = (struct store_bell){ .shard = on_bell, .desired = on_bell_desired, .look = on_bell_look, .self = h };
        h->open.request.done = on_store_open;
        *options = store_options_of(h->config, &h->secrets);
        options->coordination = coordination.url;
        options->may_create = true;
        options->is_host = true;
        options->bell = &h->bell;
        memcpy(options->nonce, h->nonce, sizeof(h->nonce));
        store_open(&h->loop, &h->open);
}

int host_open_folders(struct host *h, struct error *error)
{
        int r = config_secrets_read(h->config, true, &h->secrets, error);
        if (r < 0)
                return r;
        if (mkdir(h->config->state, 0700) < 0 && errno != EEXIST)
                return error_set(error, -errno, "state folder %s: %s", h->config->state, strerror(errno));
        h->copies_fd = plugin_copies_open(h->config->state, h->copies, error);
        return h->copies_fd < 0 ? h->copies_fd : 0;
}

/* --- the end: coordination, guard, store, and then the loop's own handles --- */

static void on_guard_gone(void *self)
{
        struct host *h = self;
        struct store *store = h->store;
        h->store = NULL;
        if (store)
                store_close(store, host_close_handles, h);
        else
                host_close_handles(h);
}

static void on_membership_closed(void *self)
{
        struct host *h = self;
        if (h->has_guard)
                guard_client_close(&h->guard, on_guard_gone, h);
        else
                on_guard_gone(h);
}

void host_close(struct host *h)
{
        if (h->is_closing)
                return;
        h->is_closing = true;
        membership_close(h, on_membership_closed);
}

void host_free(struct host *h)
{
        handlers_free(h);
        notify_close(&h->notify);
        membership_free(h);
        guard_client_free(&h->guard);
        explicit_bzero(&h->secrets, sizeof(h->secrets));
        if (*h->copies)
                plugin_copies_close(h->copies, h->copies_fd);
        shards_free(&h->shards);
        dispatch_free(&h->dispatch);
        host_status_free(h);
        leases_free(&h->leases);
        shared_config_free(h->shared);
}
