/* pool_io_private.h: what pool_io.c (the loop), pool_actions.c (actions) and pool_events.c (events) share.  Nobody else
 * includes it. */
#ifndef QUIVER_HOST_POOL_POOL_IO_PRIVATE_H
#define QUIVER_HOST_POOL_POOL_IO_PRIVATE_H

#include "host/pool/pool_io.h"

/* Steps the pool with an event and performs its actions.  Events that arise from actions wait until the list is done,
 * so no step runs inside another. */
void pool_io_post(struct pool_io *io, const struct pool_event *event);

/* All tasks of the runner's ring in the order of submission; sets *ret_is_broken if the memory was overwritten.  The
 * caller frees the array. */
struct pool_view *pool_io_look(struct process *p, uint64_t now_ms, size_t *ret_count, bool *ret_is_broken);

/* The task in the runner's ring with that ticket, which came from the runner; NULL: there is none. */
struct pool_task *pool_io_task(struct process *p, uint64_t ticket);

/* Posts the answers that have arrived; false if there may be more. */
bool pool_io_drain(struct pool_io *io, struct process *p);

extern const struct process_events pool_process_events;

/* Tells every ending as it is, without an explanation (pool_endings.c). */
void pool_io_tell_endings(struct pool_io *io);
/* Begins with the ending of a process that was reaped: its tasks are settled, and the process is closed. */
void pool_io_end(struct pool_io *io, struct pool_runner *runner, struct process *p);
/* Keeps the task until the ending is told, with what is known now. */
void pool_io_keep_settled(struct pool_io *io, const struct pool_action *action);
/* Calls stopped() if it is time. */
void pool_io_check_stopped(struct pool_io *io);

#endif
