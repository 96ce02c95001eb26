#include "host/handler/generation.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "host/handler/handlers.h"
#include "host/pool/runner_settings.h"

#define RING_ENTRIES 256

struct generation *generation_new(struct handler *handler, struct shared_config *shared, const struct config *config,
        const struct handler_config *settings, const struct plugin_copy *copy)
{
        struct generation *s = memory_zero(1, sizeof(*s));
        s->handler = handler;
        s->shared = shared_config_get(shared);
        s->config = config;
        s->settings = settings;
        s->copy = *copy;
        s->version.id =
                (struct generation_id){ .file_hash = copy->hash, .settings_hash = config_handler_hash(settings) };
        s->version.runners_wanted = 1;
        return s;
}

static void make_policy(const struct handler_config *settings, struct pool_policy *ret)
{
        *ret = (struct pool_policy){
                .processes = settings->processes,
                .threads = settings->threads,
                .batch_max = settings->batch.max,
                .is_same_key = settings->batch.same_key,
                .batch_wait_ms = settings->batch.wait_ms,
                .grace_ms = settings->grace_ms,
                .abort_ms = 1000,
                .stall_ms = settings->stall_ms,
                .init_ms = settings->init_timeout_ms,
                .idle_ms = settings->idle_timeout_ms,
                .max_tasks = settings->max_tasks,
                .backoff_ms = 100,
                .backoff_max_ms = 30000,
                .quarantine_after = 8,
                .ring_entries = RING_ENTRIES,
        };
}

static void make_start(const struct generation *s, struct runner_start *ret)
{
        runner_settings_fill(ret, s->config, s->settings, &s->copy);
        ret->leases = s->leases;
        ret->can_call = s->handler->all->can_call;
}

int generation_open(struct generation *s, struct pools *pools, const struct leases *leases,
        const struct pool_io_events *events, struct error *error)
{
        struct pool_policy policy;
        struct runner_start start;
        s->leases = leases->count;
        make_policy(s->settings, &policy);
        make_start(s, &start);
        int r = pool_io_init(&s->pool_io, pools, &policy, &start, leases, events, s);
        if (r < 0)
                return error_set(error, r, "handler %s: %s", s->settings->name, strerror(-r));
        s->is_open = true;
        return 0;
}

void generation_adjust(struct generation *s, struct shared_config *shared, const struct config *config,
        const struct handler_config *settings)
{
        struct shared_config *before = s->shared;
        struct pool_policy policy;
        struct runner_start start;
        s->shared = shared_config_get(shared);
        s->config = config;
        s->settings = settings;
        if (s->is_open) {
                make_policy(settings, &policy);
                pool_io_set_policy(&s->pool_io, &policy);
                make_start(s, &start);
                pool_io_set_start(&s->pool_io, &start);
        }
        shared_config_free(before);
}

void generation_closed(void *owner)
{
        struct generation *s = owner;
        shared_config_free(s->shared);
        free(s);
}

void generation_free(struct generation *s)
{
        plugin_copy_remove(&s->copy);
        if (s->is_open)
                pool_io_close(&s->pool_io);
        else
                generation_closed(s);
}
