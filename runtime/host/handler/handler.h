/* handler.h: a handler of a host: its generations, and its tasks from the windows to the pool and back.
 *
 * dispatch.c decides which task is next, rollout.c which generation serves; here and in rollout_io.c that is done. */
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

/* Events of a rollout that arose while an earlier one's actions were performed. */
struct rollout_queue {
        struct rollout_event *events;
        size_t count, room;
        bool is_stepping;
};

/* How a handler's tasks ended here, since this host started: the handler's answers, and what ended it without one. */
struct outcome_counts {
        uint64_t done, retried, later, rejected, crashed, timed_out;
        uint64_t merged;                   /* tasks that ended in another one */
        uint64_t lent;                     /* tasks that other hosts got */
        uint64_t borrowed;                 /* tasks of other hosts that started here */
        uint64_t unavailable, interrupted; /* They run again, as if this had not been. */
};

/* How long a handler's tasks took here, since this host started. */
struct task_times {
        struct histogram wait; /* from their submission to their first start */
        struct histogram run;
};

struct handler {
        struct handlers *all;
        uint32_t slot; /* among them */
        char name[NAME_HANDLER_MAX + 1];
        struct rollout rollout; /* of generations */
        struct rollout_queue rollout_queue;
        const struct generation *routed; /* what the windows were sorted for */
        uint64_t routes;                 /* the hash of the task names that it serves; 0: none */
        struct outcome_counts counts;
        struct task_times times;
        uint64_t exits[RUNNER_EXITS]; /* of its runners, by enum runner_exit */
        struct outage outage;
        struct task_log task_log;
        const struct handler_config *limited; /* the settings whose limits its tasks are under; NULL: none */
        struct remote_handler remote;         /* its workers, and who else runs its tasks */
        struct lender lender;                 /* whether it wants seats of other hosts */
        uint64_t free_ms;                     /* since when it has seats to lend; 0: it has none, or nobody asks */
        char refused[256]; /* why none of its generations could be made, while it has none; "": that is not so */
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

/* It has a generation, or is refused; else its slot may become another's. */
static inline bool handler_is_there(const struct handler *handler)
{
        return handler->rollout.newest || *handler->refused;
}

/* --- handler.c --- */

/* One word for what it does: "open", "paused", "unavailable", … */
const char *handler_state_name(const struct handler *handler);
/* Tasks that its current generation may run at once. */
uint64_t handler_seats(const struct handler *handler);

extern const struct pool_io_events handler_pool_events;
/* Tells the limits that its tasks are under how many could start, before those that wait for them are looked at. */
void handler_set_limits(struct handler *handler, uint64_t now_ms);
/* Tasks from the shards' windows to the pool, while it has room. */
void handler_feed(struct handler *handler, uint64_t now_ms);

/* Headers of an envelope as a runner gets them. */
void handler_pack_headers(struct span lines, struct buffer *to);
/* A suspect with which a host died while it ran alone waits for long. */
void handler_end_died_alone(struct handler *handler, struct shard *shard, struct claimed *c, uint64_t now_ms);
/* A worker's task has ended so; as a runner's. */
void handler_settle_lent(struct handler *handler, struct lent *lent, struct settled *settled);

/* --- rollout_io.c --- */

/* Something happened to one of its generations. */
void handler_rollout_event(struct handler *handler, enum rollout_event_kind kind, struct generation *generation);
void handler_task_ended(struct handler *handler, struct generation *generation, enum outcome outcome);
/* What serves has changed: sorts the windows anew if other tasks come here now. */
void handler_route(struct handler *handler);
/* How its generations succeed each other, as `target` was configured. */
void handler_set_policy(struct handler *handler, const struct generation *target);

#endif
