/* rollout_io.c: performs the actions of the rollouts: starts, serves, drains and ends generations. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/handler/handlers.h"

static struct generation *generation_of(struct rollout_version *g)
{
        return (struct generation *)g;
}

void handler_set_policy(struct handler *handler, const struct generation *target)
{
        const struct reload_config *reload = &target->config->reload;
        handler->rollout.policy = (struct rollout_policy){
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
                *generation->handler->refused = 0;
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
        case NEWS_UNPROVEN:
                log_event(LEVEL_INFO, "unproven", "handler=%s generation=%" PRIu32 " text=%s", name, number,
                        LOG_QUOTE("its probation is over, and it got no task meanwhile"));
                return "unproven";
        case NEWS_WITHDRAWN:
                log_event(LEVEL_INFO, "removed", "handler=%s generation=%" PRIu32, name, number);
                return "removed";
        }
        return "";
}

static void tell(struct handlers *all, const struct rollout_action *action)
{
        struct generation *generation = generation_of(action->version);
        const struct generation *other = (const struct generation *)action->other;
        const char *outcome = tell_log(generation, action->news, other);
        struct history_entry *entry =
                history_find(&all->history, generation->settings->name, generation->version.number);
        char text[256] = "";
        if (!entry || (all->is_leaving && action->news == NEWS_WITHDRAWN))
                return;
        if (action->news == NEWS_REFUSED)
                (void)snprintf(text, sizeof(text), "%.255s", generation->words);
        else if (action->news == NEWS_ROLLED_BACK)
                (void)snprintf(text, sizeof(text), "%u failed, %u of them crashed, %u done; generation %u serves again",
                        action->version->failed, action->version->crashed, action->version->done,
                        other->version.number);
        (void)snprintf(entry->version, sizeof(entry->version), "%s", generation->plugin_version);
        history_set(&all->history, entry, outcome, text);
        /* Without a fallback there is no probation, so the version is reported as good at once. */
        if (action->news == NEWS_PROMOTED && !generation->handler->rollout.fallback)
                history_set(&all->history, entry, "good", "");
}

/* --- actions --- */

void handler_route(struct handler *handler)
{
        struct handlers *all = handler->all;
        const struct generation *current = handler_current(handler);
        uint64_t routes = 0;
        handler->routed = current;
        for (size_t i = 0; current && i < current->settings->tasks.count; i++) {
                const char *name = current->settings->tasks.items[i];
                routes = hash_bytes(routes ? routes : HASH_START, (const uint8_t *)name, strlen(name) + 1);
        }
        dispatch_set_per_key(all->dispatch, handler->slot, current ? handler_per_key(current->settings) : 0);
        if (routes == handler->routes || all->is_leaving)
                return;
        handler->routes = routes;
        dispatch_serve(all->dispatch, handler->slot, current ? &current->settings->tasks : NULL, clock_boot_ms());
}

static void start(struct handler *handler, struct generation *generation)
{
        struct handlers *all = handler->all;
        struct error error = { "" };
        const struct generation *current = handler_current(handler);
        struct history_entry *entry = history_find(&all->history, handler->name, generation->version.number);
        if (entry)
                history_set(&all->history, entry, "starting", "");
        /* As many runners as the current generation has, so that throughput stays the same. */
        uint32_t size = current ? pool_io_size(&current->pool_io) : 1;
        size = min_u64(size, generation->settings->processes);
        generation->version.runners_wanted = size ? size : 1;
        if (generation_open(generation, all->pools, all->leases, &handler_pool_events, &error) == 0) {
                pool_io_warm(&generation->pool_io, generation->version.runners_wanted);
                return;
        }
        (void)snprintf(generation->words, sizeof(generation->words), "%s", error.text);
        handler_rollout_event(handler, ROLLOUT_FAILED, generation);
}

static void end(struct handler *handler, struct generation *generation)
{
        if (generation->is_open)
                pool_io_cut(&generation->pool_io);
        else
                handler_rollout_event(handler, ROLLOUT_EMPTY, generation);
}

/* A forgotten version gets no more events: those still in the queue are dropped. */
static void drop_events(struct handler *handler, const struct rollout_version *version)
{
        struct rollout_queue *queue = &handler->rollout_queue;
        size_t kept = 0;
        for (size_t i = 0; i < queue->count; i++)
                if (queue->events[i].version != version)
                        queue->events[kept++] = queue->events[i];
        queue->count = kept;
}

/* A generation without processes is ready at once and empty at once.  Tasks that workers have stay the handler's. */
static void perform_remote(struct handler *handler, struct generation *generation, enum rollout_action_kind kind)
{
        if (kind == ROLLOUT_START)
                handler_rollout_event(handler, ROLLOUT_READY, generation);
        else if (kind == ROLLOUT_RETREAT || kind == ROLLOUT_KILL)
                handler_rollout_event(handler, ROLLOUT_EMPTY, generation);
}

static void perform(struct handler *handler, const struct rollout_action *action)
{
        struct generation *generation = generation_of(action->version);
        if (handler_is_remote(generation->settings) && action->kind <= ROLLOUT_KILL) {
                perform_remote(handler, generation, action->kind);
                return;
        }
        switch (action->kind) {
        case ROLLOUT_START:
                start(handler, generation);
                break;
        case ROLLOUT_SERVE:
                pool_io_resume(&generation->pool_io);
                break;
        case ROLLOUT_RETREAT:
                pool_io_retreat(&generation->pool_io);
                break;
        case ROLLOUT_INTERRUPT:
                log_event(LEVEL_WARN, "drain-over", "handler=%s generation=%" PRIu32 " text=%s", handler->name,
                        generation->version.number, LOG_QUOTE("what still runs there is interrupted at no cost"));
                pool_io_interrupt(&generation->pool_io);
                break;
        case ROLLOUT_KILL:
                end(handler, generation);
                break;
        case ROLLOUT_FORGET:
                drop_events(handler, action->version);
                generation_free(generation);
                break;
        case ROLLOUT_TELL:
                tell(handler->all, action);
                break;
        }
}

static void step(struct handler *handler, const struct rollout_event *event)
{
        struct rollout_actions actions;
        rollout_step(&handler->rollout, event, clock_boot_ms(), &actions);
        for (size_t i = 0; i < actions.count; i++)
                perform(handler, &actions.list[i]);
        if (handler->routed != handler_current(handler)) {
                handler_route(handler);
                handler->all->events->changed(handler->all->self);
        }
}

/* Performing actions may cause further events (a start that fails, a pool that is empty at once).  They wait until the
 * list of actions is done, so that no step runs inside another. */
static void post(struct handler *handler, const struct rollout_event *event)
{
        struct rollout_queue *queue = &handler->rollout_queue;
        if (queue->count == queue->room) {
                queue->room = queue->room ? 2 * queue->room : 8;
                queue->events = memory_resize(queue->events, queue->room * sizeof(*queue->events));
        }
        queue->events[queue->count++] = *event;
        if (queue->is_stepping)
                return;
        queue->is_stepping = true;
        while (queue->count) {
                struct rollout_event next = queue->events[0];
                memmove(queue->events, queue->events + 1, --queue->count * sizeof(*queue->events));
                step(handler, &next);
        }
        queue->is_stepping = false;
}

void handler_rollout_event(struct handler *handler, enum rollout_event_kind kind, struct generation *generation)
{
        if (generation && kind == ROLLOUT_PROPOSED)
                handler_set_policy(handler, generation);
        post(handler, &(struct rollout_event){ .kind = kind, .version = generation ? &generation->version : NULL });
}

void handler_task_ended(struct handler *handler, struct generation *generation, enum outcome outcome)
{
        if (rollout_is_on_probation(&generation->version))
                post(handler, &(struct rollout_event){
                                      .kind = ROLLOUT_ENDED, .version = &generation->version, .outcome = outcome });
}
