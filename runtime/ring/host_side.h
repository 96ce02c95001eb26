/* host_side.h: the ring as the host uses it.  The other end is runner_side.h; the memory is layout.h.
 *
 * The host relies on its own records only: which ticket an entry carries, whether it was answered, which spill it uses.
 * What it reads from shared memory is copied, then checked.  An impossible value is -EBADMSG, and the caller must kill
 * the runner.  All functions run on the host's loop thread. */
#ifndef QUIVER_RING_HOST_SIDE_H
#define QUIVER_RING_HOST_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "ring/layout.h"
#include "ring/pack.h"

/* The host's record of one entry. */
struct ring_flight {
        uint64_t ticket; /* 0: the entry is free */
        void *owner;     /* the caller's pointer, returned with the answer */
        uint32_t spill;
        uint32_t spilled; /* bytes written to the spill */
        uint32_t next_free;
};

struct ring_host {
        struct ring_map map;
        int fd;                      /* the memfd, passed to the runner; closed by ring_host_free() */
        struct ring_flight *flights; /* one per entry */
        uint32_t free_entry;         /* head of the free list, linked by next_free; UINT32_MAX: none */
        uint32_t in_flight;
        uint32_t free_spills;  /* one bit per task spill */
        uint64_t tail;         /* the next submit cell to write */
        uint64_t next_ticket;  /* grows by one per task */
        uint64_t answer_head;  /* the next answer cell to read */
        struct buffer scratch; /* copy of the answer that is being read */
        struct buffer asked;   /* copy of the bytes of the service call that is being read */
        uint32_t attention;    /* the header's value when last read */
        bool needs_bell;       /* a task was submitted since the last ring_host_ring() */
};

/* Creates the memfd, maps and seals it.  0 or -errno. */
int ring_host_init(struct ring_host *r, const struct ring_shape *shape);
void ring_host_free(struct ring_host *r);

/* Whether `tasks` more tasks of `size` packed bytes each (ring_task_size()) can be submitted now.  Also true if the
 * runner has corrupted its side: ring_host_submit() then returns -EBADMSG. */
bool ring_host_has_room(const struct ring_host *r, uint32_t tasks, size_t size);

/* Whether a task needs no spill, of which there are RING_SPILLS: more large ones never fit at once. */
bool ring_task_is_small(const struct ring_task *task);

/* Submits `count` tasks as one batch (1: a single task) and returns the first one's ticket; the others follow it.
 * owners[i] is returned with the answer.  The runner is not woken: call ring_host_ring() after the last submit.
 * 0; or nothing was submitted: -EAGAIN (no room), -EMSGSIZE (over the shape's limit), -EBADMSG. */
int ring_host_submit(
        struct ring_host *r, const struct ring_task *tasks, void *const *owners, uint32_t count, uint64_t *ret_ticket);

/* Wakes sleeping seats if a task was submitted since the last call. */
void ring_host_ring(struct ring_host *r);
/* A task will probably be submitted within a fraction of a millisecond: wakes a sleeping seat, which polls for it.  So
 * the task does not have to wait for the wake-up. */
void ring_host_expect(struct ring_host *r);

/* The next answer: 1 with *ret (valid until the next call) and the task's owner; 0 if there is none; -EBADMSG. */
int ring_host_next(struct ring_host *r, struct ring_reply *ret, void **ret_owner);

/* Call before the loop sleeps: from now on the runner writes the eventfd.  False if an answer is already there, in
 * which case the loop must not sleep. */
bool ring_host_sleep(struct ring_host *r);
/* Call after the loop woke up: the runner need not write the eventfd any more. */
void ring_host_awake(struct ring_host *r);

/* Takes back a task that no seat has started.  True: the task was not and will not be started, and is never
 * answered. */
bool ring_host_take_back(struct ring_host *r, uint64_t ticket);

/* Drops the record of a task whose runner is gone.  Returns its owner, or NULL if the ticket is not in flight. */
void *ring_host_forget(struct ring_host *r, uint64_t ticket);

/* A task in flight.  Ticket and owner come from our own record; the rest is read from shared memory and checked. */
struct ring_view {
        uint64_t ticket;
        void *owner;
        bool is_started;
        bool is_broken; /* its state word is impossible: the runner overwrote it */
        uint32_t seat;  /* the seat of a started task; below shape.seats */
};

/* Iterates over the tasks in flight: *cursor starts at 0.  False at the end. */
bool ring_host_each(const struct ring_host *r, uint32_t *cursor, struct ring_view *ret);

/* A seat's state as the runner writes it; not trusted. */
struct ring_seat_view {
        uint64_t ticket; /* 0: idle */
        uint64_t started_ns;
        uint64_t progressed_ns;
        uint64_t progress_done, progress_total;
};
void ring_host_seat(const struct ring_host *r, uint32_t seat, struct ring_seat_view *ret);

/* Raises the seat's stop flag for that ticket only.  A batch is stopped with the ticket that its seat shows. */
void ring_host_stop(struct ring_host *r, uint32_t seat, uint64_t ticket);

/* Asks the runner to end.  Submit nothing afterwards.  Seats still start what is queued (take it back first if it
 * should not start), finish it, call close() and end. */
void ring_host_retire(struct ring_host *r);

/* A checked copy of a fault record; kind is FAULT_NONE if there is none. */
struct ring_fault_view {
        enum ring_fault_kind kind;
        int signal;
        int code;
        uint64_t address;
        char text[RING_FAULT_TEXT];
        size_t cause_size; /* the backtrace begins at text + cause_size */
        uint64_t places[RING_FAULT_LINES];
};
/* The seat's record; RING_NO_SEAT: the record of threads that do not belong to a seat. */
#define RING_NO_SEAT UINT32_MAX
void ring_host_fault(const struct ring_host *r, uint32_t seat, struct ring_fault_view *ret);

/* Copies the seat's checkpoint if it belongs to `ticket` and is not being overwritten.  Returns its size, or -ENOENT.
 * *ret_version differs between two checkpoints. */
int ring_host_checkpoint(const struct ring_host *r, uint32_t seat, uint64_t ticket, uint8_t ret[QV_CHECKPOINT_MAX],
        uint32_t *ret_version);

/* Whether, since the last call, a seat made a checkpoint or a service call, or passed the cells of tasks that were
 * taken back.  Call it before submitting, and sleep only afterwards. */
bool ring_host_has_attention(struct ring_host *r);

/* A copy of the service call that the seat waits for; false if there is none, or if its word is `known_word`, that of a
 * call that the caller already has (0: it has none).  `service`, `ticket` and the name come from the runner: the caller
 * must check them. */
struct ring_call_view {
        uint32_t word;
        uint32_t service;
        uint64_t ticket;
        uint64_t number;
        char name[RING_CALL_NAME_MAX + 1];
        const uint8_t *bytes; /* valid until the next ring_host_call() */
        uint32_t size;
};
bool ring_host_call(struct ring_host *r, uint32_t seat, uint32_t known_word, struct ring_call_view *ret);
/* Answers the call with that word.  False: the seat does not wait for it any more. */
bool ring_host_reply(struct ring_host *r, uint32_t seat, uint32_t word, int status, const uint64_t numbers[2]);

#endif
