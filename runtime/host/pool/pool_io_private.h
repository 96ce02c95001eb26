/* pool_io_private.h: what pool_io.c (the loop), pool_actions.c (actions) and pool_events.c (events) share.  Nobody else
 * includes it. */
#ifndef QUIVER_HOST_POOL_POOL_IO_PRIVATE_H
#define QUIVER_HOST_POOL_POOL_IO_PRIVATE_H

#include "host/pool/pool_io.h"

/* Steps the pool with an event and performs its actions.  Events that arise from actions wait until the list is done,
 * so no step runs inside another. */
void pool_io_post(struct pool_io *io, const struct pool_event *event);
/* The same for one of many events: the caller has read the clock once for all of them. */
void pool_io_post_at(struct pool_io *io, const struct pool_event *event, uint64_t now_ns);

/* All tasks of the runner's ring in the order of submission; sets *ret_is_broken if the memory was overwritten.  The
 * caller frees the array. */
struct pool_view *pool_io_look(struct process *p, uint64_t now_ms, size_t *ret_count, bool *ret_is_broken);

/* Finds the task in the runner's ring by a ticket that the runner sent; NULL. */
struct pool_task *pool_io_task(struct process *p, uint64_t ticket);

/* Posts the answers that have arrived; false if there may be more. */
bool pool_io_drain(struct pool_io *io, struct process *p);

extern const struct process_events pool_process_events;

/* Settles the tasks of all waiting endings at once, without explanations (pool_endings.c). */
void pool_io_tell_endings(struct pool_io *io);
/* Handles a process that was reaped: its tasks are settled, at once or when explained, and the process is closed. */
void pool_io_end(struct pool_io *io, struct pool_runner *runner, struct process *p);
/* Keeps a task with its outcome in io->ending until that is explained. */
void pool_io_keep_settled(struct pool_io *io, const struct pool_action *action);
/* Calls stopped() if the pool is stopping and nothing is left. */
void pool_io_check_stopped(struct pool_io *io);

#endif
