#include "host/limit/limit_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"

/* A runner that must end gets SIGABRT first, for its backtrace, and is gone after this. */
#define KILL_MS UINT64_C(3000)

/* Bytes of a person's setting that go to the log. */
#define LIMIT_SETTING_SHOWN UINT64_C(200)

struct limit_call {
        struct limits_io *io;
        struct limit *limit;
        struct store_limit_take take;
        struct store_limit_item items[STORE_LIMIT_ITEMS];
};

/* --- definitions --- */

/* A worker learns at its next heartbeat that it must stop, and stops by itself when its time is over. */
static uint64_t grace_of_handler(const struct handler_config *handler)
{
        return handler_is_remote(handler) ? max_u64(handler->grace_ms, handler->remote.ttl_ms) : handler->grace_ms;
}

/* How long a task under the limit may still run after its host has lost the lease or the share. */
static uint64_t grace_of(const struct config *config, const char *limit)
{
        uint64_t grace_ms = 0;
        for (size_t i = 0; i < config->handlers_count; i++)
                if (strings_has(&config->handlers[i].limited_by, limit))
                        grace_ms = max_u64(grace_ms, grace_of_handler(&config->handlers[i]));
        return grace_ms + KILL_MS;
}

static const struct limit_override *override_of(const struct limits_io *io, const char *name)
{
        for (uint32_t i = 0; i < io->settings_count; i++)
                if (!strcmp(io->settings[i].name, name))
                        return &io->settings[i].override;
        return NULL;
}

static struct limit_amount amount_of(const struct limit_config *c, const struct limit_override *o, uint64_t wall_ms)
{
        struct limit_amount amount = { .version = c->version,
                .rate = c->rate,
                .per_ms = c->per_ms,
                .burst = c->burst,
                .concurrency = c->concurrency };
        if (!o)
                return amount;
        amount.version = max_u64(amount.version, limit_override_version(o, wall_ms));
        if (!limit_override_is_on(o, wall_ms))
                return amount;
        if (c->rate) {
                amount.rate = o->rate ? o->rate : amount.rate;
                amount.per_ms = o->per_ms ? o->per_ms : amount.per_ms;
                amount.burst = o->burst ? o->burst : amount.burst;
        } else if (o->concurrency) {
                amount.concurrency = o->concurrency;
        }
        return amount;
}

static void define_all(struct limits_io *io, uint64_t wall_ms)
{
        const struct config *config = io->config;
        struct limits *l = &io->limits;
        io->change_ms = UINT64_MAX;
        for (uint32_t i = 0; i < l->count; i++)
                l->list[i]->is_defined = false;
        for (size_t i = 0; config && i < config->fleet_limits_count; i++) {
                const struct limit_config *c = &config->fleet_limits[i];
                const struct limit_override *o = override_of(io, c->named.name);
                struct limit_amount amount = amount_of(c, o, wall_ms);
                limit_define(limits_ensure(l, c->named.name), &amount, c->by, grace_of(config, c->named.name),
                        c->values_max);
                if (o && limit_override_is_on(o, wall_ms) && o->until_ms)
                        io->change_ms = min_u64(io->change_ms, o->until_ms);
        }
        l->is_stirred = true;
}

void limits_io_define(struct limits_io *io, const struct config *config, uint64_t wall_ms)
{
        io->config = config;
        io->limits.ttl_ms = config->lease.ttl_ms;
        define_all(io, wall_ms);
}

/* One line per setting that a person made, however often it is read. */
static void tell_setting(const struct limits_io *io, const char *name, const struct limit_override *o, struct span text,
        uint64_t wall_ms)
{
        const struct limit_override *before = override_of(io, name);
        char shown[LIMIT_SETTING_SHOWN + 1];
        if (before && before->version == o->version)
                return;
        (void)snprintf(shown, sizeof(shown), "%.*s", (int)min_u64(text.size, LIMIT_SETTING_SHOWN), text.data);
        log_event(LEVEL_INFO, limit_override_is_on(o, wall_ms) ? "limit-set" : "limit-cleared", "limit=%s text=%s",
                name, LOG_QUOTE(shown));
}

void limits_io_desired(struct limits_io *io, const struct store_desired *items, size_t count, uint64_t wall_ms)
{
        size_t prefix = sizeof(LIMIT_OVERRIDE_PREFIX) - 1;
        struct limit_setting *settings = NULL;
        uint32_t settings_count = 0;
        for (size_t i = 0; i < count; i++) {
                struct span name = items[i].name;
                struct limit_override override;
                if (name.size <= prefix || name.size > prefix + NAME_HANDLER_MAX ||
                        memcmp(name.data, LIMIT_OVERRIDE_PREFIX, prefix) != 0 ||
                        !limit_override_read(items[i].value, &override))
                        continue;
                settings = array_grow(settings, settings_count, sizeof(*settings));
                struct limit_setting *setting = &settings[settings_count++];
                (void)snprintf(
                        setting->name, sizeof(setting->name), "%.*s", (int)(name.size - prefix), name.data + prefix);
                setting->override = override;
                tell_setting(io, setting->name, &override, items[i].value, wall_ms);
        }
        free(io->settings);
        io->settings = settings;
        io->settings_count = settings_count;
        define_all(io, wall_ms);
}

/* --- calls --- */

static void tell_failure(struct limits_io *io, const struct limit_call *call)
{
        const struct store_request *request = &call->take.request;
        if (request->status == -ENOTSUP && !io->is_failing)
                log_event(LEVEL_ERROR, "limits-off", "limit=%s text=%s", call->limit->name,
                        LOG_QUOTE("the app has limits not switched on, so tasks under one wait; when every host knows "
                                  "them: quiver app upgrade limits"));
        else if (!io->is_failing)
                log_event(LEVEL_WARN, "limit-failed", "limit=%s text=%s hint=%s", call->limit->name,
                        LOG_QUOTE(request->error.text),
                        LOG_QUOTE("tasks under it wait; it is asked again until the store answers"));
        io->is_failing = true;
}

static void on_taken(struct store_request *request)
{
        struct limit_call *call = container_of(request, struct limit_call, take.request);
        struct limits_io *io = call->io;
        uint64_t version = call->limit->store.version;
        io->calls--;
        if (request->status < 0) {
                limits_failed(&io->limits, call->limit, &call->take, clock_boot_ms());
                tell_failure(io, call);
        } else {
                limits_answered(&io->limits, call->limit, &call->take, clock_boot_ms());
                io->is_failing = false;
        }
        if (call->limit->store.version > version)
                log_event(LEVEL_WARN, "limit-newer", "limit=%s ours=%" PRIu64 " newest=%" PRIu64 " text=%s",
                        call->limit->name, version, call->limit->store.version,
                        LOG_QUOTE("another host has a newer definition of this limit, which is used by all; bring "
                                  "this host's file up to date, and reload"));
        free(call);
}

void limits_io_call(struct limits_io *io, uint64_t now_ms, uint64_t wall_ms)
{
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        uint32_t count = 0;
        struct limit *limit;
        if (wall_ms >= io->change_ms)
                define_all(io, wall_ms);
        while ((limit = limits_next_call(&io->limits, now_ms, items, &count))) {
                struct limit_call *call = memory_zero(1, sizeof(*call));
                call->io = io;
                call->limit = limit;
                memcpy(call->items, items, count * sizeof(items[0]));
                call->take = (struct store_limit_take){ .request.done = on_taken,
                        .limit = limit->store,
                        .lease_ms = limit_lease_ms(&io->limits, limit),
                        .call = limit->counts.calls,
                        .items = call->items,
                        .items_count = count };
                memcpy(call->take.holder, io->nonce, sizeof(call->take.holder));
                io->calls++;
                store_limit_take(io->store, &call->take);
        }
}

uint64_t limits_io_due_ms(const struct limits_io *io, uint64_t now_ms, uint64_t wall_ms)
{
        uint64_t due_ms = limits_due_ms(&io->limits);
        if (io->change_ms == UINT64_MAX)
                return due_ms;
        return min_u64(due_ms, now_ms + (io->change_ms > wall_ms ? io->change_ms - wall_ms : 0));
}

void limits_io_free(struct limits_io *io)
{
        limits_free(&io->limits);
        free(io->settings);
        *io = (struct limits_io){ 0 };
}
