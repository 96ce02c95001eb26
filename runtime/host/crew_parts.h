/* crew_parts.h: what crew.c (the loop), crew_perform.c (actions) and crew_hear.c (events) share.  Nobody else includes
 * it. */
#ifndef QUIVER_HOST_CREW_PARTS_H
#define QUIVER_HOST_CREW_PARTS_H

#include "host/crew.h"

/* One event and all that follow from it.  Actions may cause events; those wait until the list is done. */
void crew_post(struct crew *crew, const struct pool_event *event);

/* Everything the runner holds, in the order it was handed over; *ret_is_broken if that memory was written over.
 * Caller frees. */
struct pool_sight *crew_look(struct process *p, uint64_t now_ms, size_t *ret_count, bool *ret_is_broken);

/* Posts the answers that are there; false if there may be more. */
bool crew_drain(struct crew *crew, struct process *p);

extern const struct process_events crew_process_events;

#endif
