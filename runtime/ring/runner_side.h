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
        int bell_fd;               /* the host's eventfd */
        _Atomic bool bell_is_lost; /* a write to bell_fd failed: the plugin closed it, and the host would not wake up */
};

/* A task that this seat has started. */
struct ring_taken {
        uint32_t entry;
        uint64_t ticket;
        struct ring_task task; /* points into shared memory, which the host does not change before the answer */
};

/* Maps the ring that the host created.  0, -EINVAL (not a ring, or another version), or another -errno. */
int ring_attach(struct ring_runner *r, int ring_fd, int bell_fd);
void ring_detach(struct ring_runner *r);

/* Waits for tasks and starts them: the seat is written first, then the entry is taken by compare-and-swap.  Fills in up
 * to `max` tasks (more than one only if the host submitted them as a batch) and returns how many; 0 once the runner is
 * retiring and no task is left. */
uint32_t ring_take(struct ring_runner *r, uint32_t seat, struct ring_taken *ret, uint32_t max);

/* Answers one started task and wakes the host if it sleeps.  0, or -EMSGSIZE if the packed answer is over the limit;
 * then nothing was sent, and the caller answers again with less. */
int ring_answer(struct ring_runner *r, const struct ring_taken *taken, const struct ring_reply *reply);

/* Marks the seat as idle, after every task that it had taken was answered. */
void ring_seat_idle(struct ring_runner *r, uint32_t seat);

/* Writes the eventfd if the host sleeps. */
void ring_wake_host(struct ring_runner *r);

/* Stores the checkpoint in shared memory, where the host finds it even if this process dies. */
void ring_checkpoint(struct ring_runner *r, uint32_t seat, uint64_t ticket, const void *data, size_t size);

/* A service call of a seat. */
struct ring_question {
        enum ring_service service;
        uint64_t ticket;  /* of the task that the seat runs; 0: none */
        const char *name; /* cut to RING_CALL_NAME_MAX bytes */
        uint64_t number;
        const void *data; /* at most QV_ROOM_ENTRY_MAX bytes */
        size_t size;
};

/* Calls a service of the host and waits at most `timeout_ms` for its answer.  Returns the host's status, 0 or -errno,
 * with the numbers set; or -ETIMEDOUT. */
int ring_ask(struct ring_runner *r, uint32_t seat, const struct ring_question *question, uint32_t timeout_ms,
        uint64_t ret_numbers[2]);

#endif
