/* services.h: what seats of runners may ask their host for: locks of the app, unique ids, entries of rooms.
 *
 * A call comes from a pool (pool_call.h) and is answered when the tree or the store has answered; the loop does not
 * wait. */
#ifndef QUIVER_HOST_SERVICE_SERVICES_H
#define QUIVER_HOST_SERVICE_SERVICES_H

#include "host/service/room_appends.h"
#include "host/service/runner_ids.h"
#include "host/service/task_locks.h"

/* For runner_start.can_call. */
#define SERVICES_PROVIDED                                                                                              \
        (1u << SERVICE_TRYLOCK | 1u << SERVICE_UNLOCK | 1u << SERVICE_NEXT_ID | 1u << SERVICE_ROOM_APPEND)

struct services {
        const char *host; /* set by the caller: its name */
        struct task_locks locks;
        struct runner_ids ids;
        struct store *store; /* NULL: not open yet, or closed */
};

/* The tree is open.  `session` is the host's session, 0 if there is none yet; `nonce` is the host's. */
void services_open(struct services *s, struct coord *coord, struct store *store, const struct runner_ids_options *ids,
        const char *nonce, uint64_t session);
/* Gives the slot of the host's ids back, then calls released().  Call it before the tree is closed. */
void services_release(struct services *s, void (*released)(void *self), void *self);
/* Call after the tree was closed.  Ends calls that were not answered. */
void services_free(struct services *s);

/* A seat of `handler` calls a service while it runs the task `task_id` ("": none). */
void services_call(struct services *s, struct pool_call *call, const char *handler, const char *task_id);
/* A seat has answered a task; a runner is gone. */
void services_task_ended(struct services *s, pid_t pid, uint64_t ticket);
void services_runner_gone(struct services *s, pid_t pid);

/* The tree's events, for a `self` that is a struct services. */
extern const struct coord_events services_tree_events;

/* When services_tick() is due; UINT64_MAX: never. */
uint64_t services_due_ms(const struct services *s);
void services_tick(struct services *s, uint64_t now_ms);

#endif
