/* services.h: what a host does for its runners' seats when they ask: locks of the app.
 *
 * A call comes from a pool (pool_call.h) and is answered when a tree or a store has answered; the loop goes on
 * meanwhile. */
#ifndef QUIVER_HOST_SERVICE_SERVICES_H
#define QUIVER_HOST_SERVICE_SERVICES_H

#include "host/service/task_locks.h"

/* For runner_start.can_call. */
#define SERVICES_PROVIDED (1u << SERVICE_TRYLOCK | 1u << SERVICE_UNLOCK)

struct services {
        const char *host; /* set by the caller: its name */
        struct task_locks locks;
};

/* The tree is open: `session` is that of the host, 0 if there is none yet; `nonce` is the host's. */
void services_open(struct services *s, struct coord *coord, const char *nonce, uint64_t session);
/* After the tree was closed.  What was not answered is answered, to nobody. */
void services_free(struct services *s);

/* A seat of that handler asks, while it runs the task `task_id` ("": none). */
void services_call(struct services *s, struct pool_call *call, const char *handler, const char *task_id);
/* A task that a seat had answered has ended; a runner is gone. */
void services_task_ended(struct services *s, pid_t pid, uint64_t ticket);
void services_runner_gone(struct services *s, pid_t pid);

/* The tree's events, for a `self` that is a struct services. */
extern const struct coord_events services_tree_events;

/* When services_tick() is wanted; UINT64_MAX: not. */
uint64_t services_due_ms(const struct services *s);
void services_tick(struct services *s, uint64_t now_ms);

#endif
