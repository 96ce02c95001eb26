/* handler.h: a handler of a host: its generations, and its tasks from the windows to the pool and back.
 *
 * dispatch.c decides which task is next, rollout.c which generation serves; here and in rollout_io.c that is done. */
#ifndef QUIVER_HOST_HANDLER_HANDLER_H
#define QUIVER_HOST_HANDLER_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include "config/names.h"
#include "host/handler/generation.h"
#include "host/handler/outage.h"
#include "host/handler/rollout.h"
#include "host/membership/member_doc.h"
#include "host/status.h"

struct host;

/* Events of a rollout that arose while an earlier one's actions were performed. */
struct rollout_queue {
        struct rollout_event *events;
        size_t count, room;
        bool is_stepping;
};

/* A handler and the generations that run it.  Its slot is what windows call its pool; it stays as long as one of them
 * is alive, so also a while after the handler was removed. */
struct handler {
        struct host *host;
        uint32_t slot;
        char name[NAME_HANDLER_MAX + 1];
        struct rollout rollout; /* of generations */
        struct rollout_queue rollout_queue;
        const struct generation *routed; /* what the windows were sorted for */
        uint64_t routes;                 /* the hash of the task names that it serves; 0: none */
        struct outcome_counts counts;
        struct outage outage;
};

/* The generation that serves; NULL: none. */
static inline struct generation *handler_current(const struct handler *handler)
{
        return (struct generation *)handler->rollout.current;
}

/* --- handler.c --- */

extern const struct pool_io_events handler_pool_events;
/* Tasks from the shards' windows to the pool, while it has room. */
void handler_feed(struct handler *handler, uint64_t now_ms);
/* What the host's node in the tree says about the handler. */
void handler_describe(const struct handler *handler, struct member_doc *doc);
/* Reads the desired state again and does what it says. */
void host_ask_desired(struct host *h);

/* --- rollout_io.c --- */

/* A handler of the configuration that the host starts with: its private copy of the plugin and its pool.  0, or -errno
 * with the text set. */
int handler_open(struct host *h, const struct handler_config *settings, struct error *error);
/* The handler of that name; NULL: none. */
struct handler *handler_find(const struct host *h, const char *name);
/* The handler of that name, a new one if there is none. */
struct handler *handler_ensure(struct host *h, const char *name);
/* Something happened to one of its generations. */
void handler_rollout_event(struct handler *handler, enum rollout_event_kind kind, struct generation *generation);
void handler_task_ended(struct handler *handler, struct generation *generation, enum outcome outcome);
/* What serves has changed: sorts the windows anew if other tasks come here now. */
void handler_route(struct handler *handler);
/* How its generations succeed each other, as `target` was configured. */
void handler_set_policy(struct handler *handler, const struct generation *target);
/* What fell due. */
void handlers_tick(struct host *h, uint64_t now_ms);
uint64_t handlers_due_ms(const struct host *h);
/* Leaving: ends every generation.  True once no process is left; ask again. */
bool handlers_stop(struct host *h);
/* Ends every generation at once: what runs is interrupted. */
void handlers_cut(struct host *h);
/* After the loop. */
void handlers_free(struct host *h);

#endif
