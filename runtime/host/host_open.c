/* host_open.c: what a host does before its loop runs for real, and after. */
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
#include "host/host_parts.h"

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
                r = station_open(h, &h->stations[i], &h->config->handlers[i], error);
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
                host_close_handles(h);
                return;
        }
        if (h->is_stopping) {
                store_close(h->open.store, host_close_handles, h);
                return;
        }
        store_info(h->open.store, &info);
        log_event(LEVEL_INFO, "store", "driver=%s app=%s shards=%" PRIu32 " durability=%s", info.driver, info.app,
                info.shards, LOG_QUOTE(info.durability));
        h->status = open_berths(h, info.shards, &h->error);
        if (h->status < 0) {
                store_close(h->open.store, host_close_handles, h);
                return;
        }
        h->store = h->open.store;
        h->renew_at_ms = clock_boot_ms() + h->limits.ttl_ms / 3;
        host_ask_desired(h);
        log_event(LEVEL_INFO, "running", "host=%s handlers=%" PRIu32 " pid=%d", h->config->host.name, h->stations_count,
                (int)getpid());
}

static void on_bell(void *self, uint32_t shard)
{
        struct host *h = self;
        if (shard < h->berths_count)
                h->berths[shard].shard.has_work = true;
}

static void on_bell_desired(void *self)
{
        host_ask_desired(self);
}

static void on_bell_look(void *self)
{
        struct host *h = self;
        for (uint32_t i = 0; i < h->berths_count; i++)
                h->berths[i].shard.has_work = true;
}

void host_open_store(struct host *h)
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

int host_open_folders(struct host *h, struct error *error)
{
        if (mkdir(h->config->state, 0700) < 0 && errno != EEXIST)
                return error_set(error, -errno, "state folder %s: %s", h->config->state, strerror(errno));
        (void)snprintf(h->staging, sizeof(h->staging), "%s/staging-XXXXXX", h->config->state);
        if (!mkdtemp(h->staging))
                return error_set(error, -errno, "state folder %s: %s", h->config->state, strerror(errno));
        return 0;
}

void host_free(struct host *h)
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
