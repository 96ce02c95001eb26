/* handler.h: a handler of a host: its generations, and the way of its tasks from the windows to the pool and back.
 *
 * dispatch.c decides which task is next, and rollout.c which generation serves; this file and rollout_io.c carry it
 * out. */
#ifndef QUIVER_HOST_HANDLER_HANDLER_H
#define QUIVER_HOST_HANDLER_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "config/names.h"
#include "host/handler/generation.h"
#include "host/handler/outage.h"
#include "host/handler/rollout.h"
#include "host/handler/task_log.h"
#include "host/lend/lender.h"
#include "host/remote/remote.h"

struct handlers;

/* Events of a rollout that occurred while the actions of an earlier event were performed. */
struct rollout_queue {
        struct rollout_event *events;
        size_t count, room;
        bool is_stepping;
};

/* How starts of the handler's tasks ended here since this host started. */
struct outcome_counts {
        uint64_t done, retried, later, rejected, crashed, timed_out;
        uint64_t merged;                   /* tasks that were merged into another one */
        uint64_t lent;                     /* tasks that ran on other hosts */
        uint64_t borrowed;                 /* tasks of other hosts that started here */
        uint64_t unavailable, interrupted; /* these tasks run again, at no cost */
};

/* How long the handler's tasks took here since this host started. */
struct task_times {
        struct histogram wait; /* from submission to the first start */
        struct histogram run;
};

struct handler {
        struct handlers *all;
        uint32_t slot; /* index in handlers.list, and the number of its pool */
        char name[NAME_HANDLER_MAX + 1];
        struct rollout rollout; /* of generations */
        struct rollout_queue rollout_queue;
        const struct generation *routed; /* the generation that the windows were routed for */
        uint64_t routes;                 /* hash of the task names that it serves; 0: none */
        struct outcome_counts counts;
        struct task_times times;
        uint64_t exits[RUNNER_EXITS]; /* counts of ended runners, by enum runner_exit */
        struct outage outage;
        struct task_log task_log;
        const struct handler_config *limited; /* the settings that its limits came from; NULL: none */
        struct remote_handler remote;         /* its workers, and its tasks that run elsewhere */
        struct lender lender;                 /* decides when the handler wants seats of other hosts */
        uint64_t free_ms;                     /* since when it has free seats to lend; 0: none, or not wanted */
        char refused[256]; /* why no generation could be made; "": it has one, or was never refused */
};

/* The generation that serves; NULL: none. */
static inline struct generation *handler_current(const struct handler *handler)
{
        return (struct generation *)handler->rollout.current;
}

/* The generation that serves or is about to; NULL: the handler was removed. */
static inline struct generation *handler_target(const struct handler *handler)
{
        return (struct generation *)rollout_target(&handler->rollout);
}

/* Whether the slot is in use: the handler has a generation, or is refused. */
static inline bool handler_is_there(const struct handler *handler)
{
        return handler->rollout.newest || *handler->refused;
}

/* --- handler.c --- */

/* The handler's state as one word: "open", "paused", "unavailable", … */
const char *handler_state_name(const struct handler *handler);
/* How many tasks its current generation may run at once. */
uint64_t handler_seats(const struct handler *handler);

extern const struct pool_io_events handler_pool_events;
/* Tells the handler's limits how many tasks could start.  Call it before the tasks that wait for limits are looked
 * at. */
void handler_set_limits(struct handler *handler, uint64_t now_ms);
/* Moves tasks from the shards' windows to the pool, while it has room. */
void handler_feed(struct handler *handler, uint64_t now_ms);

/* Packs an envelope's headers in the form that a runner gets. */
void handler_pack_headers(struct span lines, struct buffer *to);
/* Parks a suspect for long: a host died while the suspect ran alone. */
void handler_end_died_alone(struct handler *handler, struct shard *shard, struct claimed *c, uint64_t now_ms);
/* A worker or another host's seat has ended a task.  Judged like a runner's answer. */
void handler_settle_lent(struct handler *handler, struct lent *lent, struct settled *settled);

/* --- rollout_io.c --- */

/* Something happened to one of the handler's generations. */
void handler_rollout_event(struct handler *handler, enum rollout_event_kind kind, struct generation *generation);
void handler_task_ended(struct handler *handler, struct generation *generation, enum outcome outcome);
/* Another generation may serve now: routes the windows again if the served task names differ. */
void handler_route(struct handler *handler);
/* Sets the rollout's policy from the settings of `target`. */
void handler_set_policy(struct handler *handler, const struct generation *target);

#endif
