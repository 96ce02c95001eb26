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

/* Posts the answers that have arrived; false if there may be more. */
bool pool_io_drain(struct pool_io *io, struct process *p);

extern const struct process_events pool_process_events;

#endif
