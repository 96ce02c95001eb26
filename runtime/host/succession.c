/* succession.c: does what the rollouts decide: which pool serves a handler, which one makes way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "host/host_parts.h"

static struct generation *generation_of(struct rollout_version *g)
{
        return (struct generation *)g;
}

/* --- stations --- */

struct station *station_find(const struct host *h, const char *name)
{
        for (uint32_t i = 0; i < h->stations_count; i++)
                if (!strcmp(h->stations[i]->name, name))
                        return h->stations[i];
        return NULL;
}

/* A place whose last generation is gone. */
static struct station *find_deserted(const struct host *h)
{
        for (uint32_t i = 0; i < h->stations_count; i++)
                if (!h->stations[i]->rollout.newest)
                        return h->stations[i];
        return NULL;
}

static struct station *add_station(struct host *h)
{
        struct station **stations = realloc(h->stations, (h->stations_count + 1) * sizeof(struct station *));
        struct station *st = calloc(1, sizeof(*st));
        if (!stations || !st)
                abort();
        h->stations = stations;
        stations[h->stations_count] = st;
        st->slot = h->stations_count++;
        /* At the start of the host there are no windows yet; they are made for as many as there are by then. */
        for (uint32_t i = 0; i < h->berths_count && h->berths[i].host; i++)
                if (window_set_pools(&h->berths[i].shard.window, h->stations_count) < 0)
                        abort();
        return st;
}

struct station *station_get(struct host *h, const char *name)
{
        struct station *st = station_find(h, name);
        if (st)
                return st;
        st = find_deserted(h);
        if (!st)
                st = add_station(h);
        *st = (struct station){ .host = h, .slot = st->slot };
        (void)snprintf(st->name, sizeof(st->name), "%s", name);
        return st;
}

void station_set_policy(struct station *st, const struct generation *target)
{
        const struct reload_config *reload = &target->config->reload;
        st->rollout.policy = (struct rollout_policy){
                .drain_ms = target->config->lease.drain_ms,
                .grace_ms = target->settings->grace_ms,
                .probation_ms = reload->probation_ms,
                .probation_tasks = reload->tasks,
                .crashes_max = reload->crashes,
                .failures_max = reload->failures,
                .live_max = reload->generations,
        };
}

/* --- news --- */

static void tell_rolled_back(const struct generation *bad, const struct generation *good)
{
        const struct rollout_version *g = &bad->version;
        log_event(LEVEL_ERROR, "rolled-back",
                "handler=%s generation=%" PRIu32 " to=%" PRIu32 " done=%" PRIu32 " failed=%" PRIu32 " crashed=%" PRIu32
                " file=%016" PRIx64 " hint=%s",
                bad->settings->name, g->number, good->version.number, g->done, g->failed, g->crashed, g->id.file_hash,
                LOG_QUOTE("the new version only failed, and is not tried again; change the file or its settings, and "
                          "reload"));
}

static void tell_refused(const struct generation *generation, const struct generation *current)
{
        log_event(LEVEL_ERROR, "refused",
                "handler=%s generation=%" PRIu32 " file=%016" PRIx64 " serving=%" PRIu32 " text=%s",
                generation->settings->name, generation->version.number, generation->version.id.file_hash,
                current ? current->version.number : 0, LOG_QUOTE(generation->words));
}

static const char *tell_log(const struct generation *generation, enum rollout_news news, const struct generation *other)
{
        const char *name = generation->settings->name;
        uint32_t number = generation->version.number;
        switch (news) {
        case NEWS_PROMOTED:
                log_event(LEVEL_INFO, "promoted",
                        "handler=%s generation=%" PRIu32 " replaces=%" PRIu32 " file=%016" PRIx64
                        " version=%s at_ns=%" PRIu64,
                        name, number, other ? other->version.number : 0, generation->version.id.file_hash,
                        LOG_QUOTE(generation->plugin_version), clock_boot_ns());
                return "serving";
        case NEWS_REFUSED:
                tell_refused(generation, other);
                return "refused";
        case NEWS_SUPERSEDED:
                log_event(LEVEL_INFO, "superseded", "handler=%s generation=%" PRIu32, name, number);
                return "superseded";
        case NEWS_ROLLED_BACK:
                tell_rolled_back(generation, other);
                return "rolled back";
        case NEWS_GOOD:
                log_event(LEVEL_INFO, "proven", "handler=%s generation=%" PRIu32, name, number);
                return "good";
        case NEWS_WITHDRAWN:
                log_event(LEVEL_INFO, "removed", "handler=%s generation=%" PRIu32, name, number);
                return "removed";
        }
        return "";
}

static void tell(struct host *h, const struct rollout_action *action)
{
        struct generation *generation = generation_of(action->version);
        const struct generation *other = (const struct generation *)action->other;
        const char *outcome = tell_log(generation, action->news, other);
        struct history_entry *entry =
                history_find(&h->reload.history, generation->settings->name, generation->version.number);
        char text[256] = "";
        if (!entry || (h->is_stopping && action->news == NEWS_WITHDRAWN))
                return;
        if (action->news == NEWS_REFUSED)
                (void)snprintf(text, sizeof(text), "%.255s", generation->words);
        else if (action->news == NEWS_ROLLED_BACK)
                (void)snprintf(text, sizeof(text), "%u failed, %u of them crashed, %u done; generation %u serves again",
                        action->version->failed, action->version->crashed, action->version->done,
                        other->version.number);
        (void)snprintf(entry->version, sizeof(entry->version), "%s", generation->plugin_version);
        history_set(entry, outcome, text);
        /* Nothing to compare it with: it is as good as it gets. */
        if (action->news == NEWS_PROMOTED && !generation->station->rollout.fallback)
                history_set(entry, "good", "");
}

/* --- actions --- */

void station_route(struct station *st)
{
        struct host *h = st->host;
        const struct generation *current = station_current(st);
        uint64_t routes = 0;
        st->routed = current;
        for (size_t i = 0; current && i < current->settings->tasks.count; i++) {
                const char *name = current->settings->tasks.items[i];
                routes = hash_bytes(routes ? routes : HASH_START, (const uint8_t *)name, strlen(name) + 1);
        }
        if (routes == st->routes || h->is_stopping)
                return;
        st->routes = routes;
        h->unserved_count = 0;
        uint64_t now_ms = clock_boot_ms();
        for (uint32_t i = 0; i < h->berths_count; i++)
                shard_reroute(&h->berths[i].shard, berth_pool_of, &h->berths[i], now_ms);
}

static void start(struct station *st, struct generation *generation)
{
        struct host *h = st->host;
        struct error error = { "" };
        const struct generation *current = station_current(st);
        struct history_entry *entry = history_find(&h->reload.history, st->name, generation->version.number);
        if (entry)
                history_set(entry, "starting", "");
        /* As many as do the work now, so that the change is not felt. */
        uint32_t size = current ? pool_io_size(&current->pool_io) : 1;
        size = size < generation->settings->processes ? size : generation->settings->processes;
        generation->version.runners_wanted = size ? size : 1;
        if (generation_open(generation, &h->loop, &h->leases, h->berths_count, &station_pool_events, &error) == 0) {
                pool_io_warm(&generation->pool_io, generation->version.runners_wanted);
                return;
        }
        (void)snprintf(generation->words, sizeof(generation->words), "%s", error.text);
        station_event(st, ROLLOUT_FAILED, generation);
}

static void end(struct station *st, struct generation *generation)
{
        if (generation->is_open)
                pool_io_cut(&generation->pool_io);
        else
                station_event(st, ROLLOUT_EMPTY, generation);
}

static void perform(struct station *st, const struct rollout_action *action)
{
        struct generation *generation = generation_of(action->version);
        switch (action->kind) {
        case ROLLOUT_START:
                start(st, generation);
                break;
        case ROLLOUT_SERVE:
                pool_io_resume(&generation->pool_io);
                break;
        case ROLLOUT_RETREAT:
                pool_io_retreat(&generation->pool_io);
                break;
        case ROLLOUT_INTERRUPT:
                log_event(LEVEL_WARN, "drain-over", "handler=%s generation=%" PRIu32 " text=%s", st->name,
                        generation->version.number, LOG_QUOTE("what still runs there is interrupted at no cost"));
                pool_io_interrupt(&generation->pool_io);
                break;
        case ROLLOUT_KILL:
                end(st, generation);
                break;
        case ROLLOUT_FORGET:
                generation_free(generation);
                break;
        case ROLLOUT_TELL:
                tell(st->host, action);
                break;
        }
}

static void step(struct station *st, const struct rollout_event *event)
{
        struct rollout_actions actions;
        rollout_step(&st->rollout, event, clock_boot_ms(), &actions);
        for (size_t i = 0; i < actions.count; i++)
                perform(st, &actions.list[i]);
        if (st->routed != station_current(st)) {
                station_route(st);
                fleet_report(st->host);
        }
        reload_look(st->host);
}

void station_event(struct station *st, enum rollout_event_kind kind, struct generation *generation)
{
        if (generation && kind == ROLLOUT_PROPOSED)
                station_set_policy(st, generation);
        step(st, &(struct rollout_event){ .kind = kind, .version = generation ? &generation->version : NULL });
}

void station_ended(struct station *st, struct generation *generation, enum outcome outcome)
{
        step(st, &(struct rollout_event){ .kind = ROLLOUT_ENDED, .version = &generation->version, .outcome = outcome });
}

/* --- for the loop --- */

void stations_tick(struct host *h, uint64_t now_ms)
{
        for (uint32_t i = 0; i < h->stations_count; i++)
                if (now_ms >= rollout_due_ms(&h->stations[i]->rollout))
                        station_event(h->stations[i], ROLLOUT_TICK, NULL);
}

uint64_t stations_due_ms(const struct host *h)
{
        uint64_t due_ms = UINT64_MAX;
        for (uint32_t i = 0; i < h->stations_count; i++) {
                uint64_t at_ms = rollout_due_ms(&h->stations[i]->rollout);
                due_ms = at_ms < due_ms ? at_ms : due_ms;
        }
        return due_ms;
}

/* --- start and end --- */

int station_open(struct host *h, const struct handler_config *handler, struct error *error)
{
        struct staged staged = { 0 };
        int r = stage_copy(handler->plugin_path, stage_source_of(h->config), h->staging, &staged, error);
        if (r < 0)
                return error_prefix(error, r, "handler %s", handler->name);
        struct station *st = station_get(h, handler->name);
        struct generation *generation = generation_new(st, NULL, h->config, handler, &staged);
        r = generation_open(generation, &h->loop, &h->leases, h->berths_count, &station_pool_events, error);
        if (r < 0) {
                generation_free(generation);
                return r;
        }
        station_set_policy(st, generation);
        rollout_found(&st->rollout, &generation->version, clock_boot_ms());
        station_route(st);
        struct history_entry *entry = history_add(&h->reload.history, handler->name);
        entry->generation = generation->version.number;
        entry->file_hash = staged.hash;
        (void)snprintf(entry->by, sizeof(entry->by), "start");
        history_set(entry, "good", "");
        return 0;
}

bool stations_stop(struct host *h)
{
        bool is_over = true;
        for (uint32_t i = 0; i < h->stations_count; i++) {
                struct station *st = h->stations[i];
                if (st->rollout.current || st->rollout.candidate)
                        station_event(st, ROLLOUT_WITHDRAWN, NULL);
                is_over &= !st->rollout.newest;
        }
        return is_over;
}

void stations_cut(struct host *h)
{
        for (uint32_t i = 0; i < h->stations_count; i++)
                if (h->stations[i]->rollout.newest)
                        station_event(h->stations[i], ROLLOUT_CUT, NULL);
}

void stations_free(struct host *h)
{
        for (uint32_t i = 0; i < h->stations_count; i++)
                free(h->stations[i]);
        free(h->stations);
}
