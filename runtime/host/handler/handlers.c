#include "host/handler/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "host/handler/desired.h"

/* --- slots --- */

struct handler *handlers_find(const struct handlers *all, const char *name)
{
        for (uint32_t i = 0; i < all->count; i++)
                if (!strcmp(all->list[i]->name, name))
                        return all->list[i];
        return NULL;
}

/* A slot without a generation that is not reserved for a refused handler. */
static struct handler *find_unused(const struct handlers *all)
{
        for (uint32_t i = 0; i < all->count; i++)
                if (!handler_is_there(all->list[i]) && !all->list[i]->remote.lent && !all->list[i]->remote.polls)
                        return all->list[i];
        return NULL;
}

static struct handler *add(struct handlers *all)
{
        struct handler *handler = memory_zero(1, sizeof(*handler));
        all->list = array_grow(all->list, all->count, sizeof(struct handler *));
        all->list[all->count++] = handler;
        handler->slot = dispatch_add_pool(all->dispatch);
        return handler;
}

struct handler *handlers_ensure(struct handlers *all, const char *name)
{
        struct handler *handler = handlers_find(all, name);
        if (handler)
                return handler;
        handler = find_unused(all);
        if (!handler)
                handler = add(all);
        free(handler->rollout_queue.events);
        *handler = (struct handler){ .all = all, .slot = handler->slot };
        dispatch_clear_pool(all->dispatch, handler->slot);
        (void)snprintf(handler->name, sizeof(handler->name), "%s", name);
        return handler;
}

int handlers_open(
        struct handlers *all, const struct config *config, const struct handler_config *settings, struct error *error)
{
        struct plugin_copy copy = { 0 };
        int r = handler_is_remote(settings) ? 0
                                            : plugin_copy_make(settings->plugin_path, plugin_copy_source_of(config),
                                                      all->copies, &copy, error);
        if (r < 0)
                return error_prefix(error, r, "handler %s", settings->name);
        struct handler *handler = handlers_ensure(all, settings->name);
        struct generation *generation = generation_new(handler, NULL, config, settings, &copy);
        if (!handler_is_remote(settings))
                r = generation_open(generation, all->pools, all->leases, &handler_pool_events, error);
        if (r < 0) {
                generation_free(generation);
                return r;
        }
        handler_set_policy(handler, generation);
        rollout_found(&handler->rollout, &generation->version, clock_boot_ms());
        handler_route(handler);
        struct history_entry *entry = history_add(&all->history, settings->name);
        entry->generation = generation->version.number;
        entry->file_hash = copy.hash;
        (void)snprintf(entry->by, sizeof(entry->by), "start");
        history_set(&all->history, entry, "good", "");
        return 0;
}

void handlers_refuse(struct handlers *all, const char *name, const char *why)
{
        struct handler *handler = handlers_ensure(all, name);
        (void)snprintf(handler->refused, sizeof(handler->refused), "%s", why);
}

uint32_t handlers_count_refused(const struct handlers *all)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < all->count; i++)
                count += *all->list[i]->refused != 0;
        return count;
}

/* --- for the loop --- */

void handlers_feed(struct handlers *all, uint64_t now_ms)
{
        all->wall_ahead_ms = clock_wall_ms() - now_ms;
        for (uint32_t i = 0; i < all->count; i++)
                handler_set_limits(all->list[i], now_ms);
        dispatch_look_at_limits(all->dispatch, now_ms);
        for (uint32_t i = 0; i < all->count; i++)
                handler_feed(all->list[i], now_ms);
}

void handlers_tick(struct handlers *all, uint64_t now_ms)
{
        remotes_tick(all, now_ms);
        for (uint32_t i = 0; i < all->count; i++) {
                task_log_flush(&all->list[i]->task_log, all->list[i]->name, now_ms);
                if (now_ms >= rollout_due_ms(&all->list[i]->rollout))
                        handler_rollout_event(all->list[i], ROLLOUT_TICK, NULL);
        }
}

uint64_t handlers_due_ms(const struct handlers *all)
{
        uint64_t due_ms = UINT64_MAX;
        for (uint32_t i = 0; i < all->count; i++) {
                uint64_t at_ms =
                        min_u64(rollout_due_ms(&all->list[i]->rollout), task_log_due_ms(&all->list[i]->task_log));
                due_ms = min_u64(at_ms, due_ms);
        }
        return due_ms;
}

/* --- desired state and member document --- */

static void set_paused(struct handler *handler, bool is_paused, struct span reason)
{
        struct dispatch *dispatch = handler->all->dispatch;
        if (dispatch->pools[handler->slot].is_paused == is_paused)
                return;
        char text[256];
        (void)snprintf(text, sizeof(text), "%.*s", (int)reason.size, reason.data ? reason.data : "");
        log_event(LEVEL_INFO, is_paused ? "paused" : "resumed", "handler=%s reason=%s", handler->name, LOG_QUOTE(text));
        dispatch_pause(dispatch, handler->slot, is_paused, clock_boot_ms());
}

void handlers_desired(struct handlers *all, const struct store_desired *items, size_t count)
{
        for (uint32_t i = 0; i < all->count; i++) {
                struct span reason = { "", 0 };
                const struct generation *target = handler_target(all->list[i]);
                if (target)
                        set_paused(all->list[i], desired_is_paused(items, count, target->settings, &reason), reason);
        }
}

void handlers_describe(const struct handlers *all, struct member_doc *doc)
{
        for (uint32_t i = 0; i < all->count; i++) {
                const struct generation *current = handler_current(all->list[i]);
                if (current)
                        member_doc_add_handler(doc, all->list[i]->name, current->plugin_version);
        }
}

/* --- end --- */

bool handlers_stop(struct handlers *all)
{
        bool is_over = true;
        for (uint32_t i = 0; i < all->count; i++) {
                struct handler *handler = all->list[i];
                if (handler->rollout.current || handler->rollout.candidate)
                        handler_rollout_event(handler, ROLLOUT_WITHDRAWN, NULL);
                is_over &= !handler->rollout.newest;
        }
        return is_over;
}

void handlers_cut(struct handlers *all)
{
        for (uint32_t i = 0; i < all->count; i++)
                if (all->list[i]->rollout.newest)
                        handler_rollout_event(all->list[i], ROLLOUT_CUT, NULL);
}

void handlers_free(struct handlers *all)
{
        remotes_free(all);
        for (uint32_t i = 0; i < all->count; i++) {
                free(all->list[i]->rollout_queue.events);
                free(all->list[i]);
        }
        free(all->list);
}
