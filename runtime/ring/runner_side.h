/* runner_side.h: the ring as a runner's seats use it.  The other end is host_side.h; the memory is layout.h.
 *
 * Every function may be called from any seat's thread; each seat passes its own number. */
#ifndef QUIVER_RING_RUNNER_SIDE_H
#define QUIVER_RING_RUNNER_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/layout.h"
#include "ring/pack.h"

struct ring_runner {
        struct ring_map map;
        int bell_fd;               /* eventfd of the host */
        _Atomic bool bell_is_lost; /* it could not be rung: somebody closed it, and the host would sleep on */
};

/* A task that this seat has started. */
struct ring_taken {
        uint32_t entry;
        uint64_t ticket;
        struct ring_task task; /* points into shared memory; the host does not touch it before the answer */
};

/* Maps the ring that the host made.  0, -EINVAL (not a ring, another version), or -errno. */
int ring_attach(struct ring_runner *r, int ring_fd, int bell_fd);
void ring_detach(struct ring_runner *r);

/* Waits for work and starts it: the seat is written first, then the entry is won by compare-and-swap.  Fills up to
 * `max` tasks (more than one only if the host sent them as a batch) and returns how many; 0 once the runner is retiring
 * and nothing is left. */
uint32_t ring_take(struct ring_runner *r, uint32_t seat, struct ring_taken *ret, uint32_t max);

/* Answers one started task and rings the host if it sleeps.  0, or -EMSGSIZE if the packed answer is over the limit
 * (nothing was sent: answer again with less). */
int ring_answer(struct ring_runner *r, const struct ring_taken *taken, const struct ring_reply *reply);

/* All that the seat had taken is answered: it is idle. */
void ring_seat_idle(struct ring_runner *r, uint32_t seat);

/* Writes the eventfd if the host sleeps. */
void ring_wake_host(struct ring_runner *r);

/* Makes the checkpoint visible to the host, whatever becomes of this process afterwards. */
void ring_checkpoint(struct ring_runner *r, uint32_t seat, uint64_t ticket, const void *data, size_t size);

/* Asks the host and waits for its answer, at most `timeout_ms`.  0 or the host's -errno with *number updated;
 * -ETIMEDOUT. */
int ring_ask(struct ring_runner *r, uint32_t seat, enum ring_service service, const char *name, uint64_t *number,
        uint32_t timeout_ms);

#endif
