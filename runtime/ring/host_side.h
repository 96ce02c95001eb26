/* host_side.h: the ring as the host uses it.  The other end is runner_side.h; the memory is layout.h.
 *
 * The host's own records decide: which ticket an entry carries, whether it was answered, which spill it uses.  What
 * is read from shared memory is copied, then checked; anything impossible is -EBADMSG, and the runner has to go.
 * One thread: the host's loop. */
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
        void *owner;     /* whatever the caller handed in */
        uint32_t spill;
        uint32_t spilled; /* bytes written there */
        uint32_t next_free;
};

struct ring_host {
        struct ring_map map;
        int fd;                      /* to hand to the runner; closed by ring_host_free() */
        struct ring_flight *flights; /* one per entry */
        uint32_t free_entry;         /* list through next_free; UINT32_MAX: none */
        uint32_t in_flight;
        uint32_t free_spills;  /* bit per task spill */
        uint64_t tail;         /* next submit cell */
        uint64_t next_ticket;  /* grows by one per task */
        uint64_t answer_head;  /* next answer cell to read */
        struct buffer scratch; /* the answer being looked at */
        uint32_t attention;    /* the header's, as last seen */
        bool needs_bell;       /* something was submitted since the last ring_host_ring() */
};

/* Creates the memfd, maps and seals it.  0 or -errno. */
int ring_host_init(struct ring_host *r, const struct ring_shape *shape);
void ring_host_free(struct ring_host *r);

/* Whether `tasks` more of `size` packed bytes each (ring_task_size()) can be handed over now.  Also true if the
 * runner's side is broken: ring_host_submit() then says so. */
bool ring_host_has_room(const struct ring_host *r, uint32_t tasks, size_t size);

/* Hands over `count` tasks as one batch (1: a plain task) and returns the first one's ticket; the others follow it.
 * owners[i] comes back with the answer.  The runner is not woken yet: ring_host_ring() after the last one.
 * 0; or nothing was handed over: -EAGAIN (no room), -EMSGSIZE (over the shape's limit), -EBADMSG. */
int ring_host_submit(
        struct ring_host *r, const struct ring_task *tasks, void *const *owners, uint32_t count, uint64_t *ret_ticket);

/* Wakes a sleeping seat if something was submitted since the last call. */
void ring_host_ring(struct ring_host *r);

/* The next answer: 1 with *ret (valid until the next call) and the task's owner; 0 if there is none; -EBADMSG. */
int ring_host_next(struct ring_host *r, struct ring_reply *ret, void **ret_owner);

/* About to sleep: from now on the runner writes the eventfd.  False if an answer is there already (do not sleep). */
bool ring_host_sleep(struct ring_host *r);
/* Awake: no more eventfd writes needed. */
void ring_host_awake(struct ring_host *r);

/* Takes back a task that no seat has started.  True: it is the caller's again, and will never be answered. */
bool ring_host_take_back(struct ring_host *r, uint64_t ticket);

/* Forgets a task (the runner is gone); its owner, or NULL if the ticket is not in flight. */
void *ring_host_forget(struct ring_host *r, uint64_t ticket);

/* One in flight, as the shared memory has it; the ticket, owner and `is_started` are checked against our own record. */
struct ring_view {
        uint64_t ticket;
        void *owner;
        bool is_started;
        bool is_broken; /* neither queued nor started: somebody wrote over it */
        uint32_t seat;  /* of a started one; below shape.seats */
};

/* Walks what is in flight: *cursor starts at 0.  False at the end. */
bool ring_host_each(const struct ring_host *r, uint32_t *cursor, struct ring_view *ret);

/* A seat, as the runner shows it. */
struct ring_seat_view {
        uint64_t ticket; /* 0: idle */
        uint64_t started_ns;
        uint64_t progressed_ns;
        uint64_t progress_done, progress_total;
};
void ring_host_seat(const struct ring_host *r, uint32_t seat, struct ring_seat_view *ret);

/* Raises the stop flag of the seat for that ticket, and only for that one.  A batch is stopped by the ticket that its
 * seat shows. */
void ring_host_stop(struct ring_host *r, uint32_t seat, uint64_t ticket);

/* Submit nothing more.  Seats start what is still queued (take it back before, if it should not start), finish, close
 * and leave. */
void ring_host_retire(struct ring_host *r);

/* The seat's fault record, checked and copied; kind FAULT_NONE if there is none. */
struct ring_fault_view {
        enum ring_fault_kind kind;
        int signal;
        int code;
        uint64_t address;
        char text[RING_FAULT_TEXT];
};
void ring_host_fault(const struct ring_host *r, uint32_t seat, struct ring_fault_view *ret);

/* The seat's checkpoint if it belongs to `ticket` and is whole: its size, or -ENOENT.  `version` tells a new one from
 * the one seen before. */
int ring_host_checkpoint(const struct ring_host *r, uint32_t seat, uint64_t ticket, uint8_t ret[QV_CHECKPOINT_MAX],
        uint32_t *ret_version);

/* Whether a seat made a checkpoint or a service call, or there is room where tasks were taken back, since the last time
 * this was asked.  Ask before submitting, and sleep after. */
bool ring_host_has_attention(struct ring_host *r);

/* A service call that waits for an answer: true and a copy.  The service's number is the runner's word: check it.
 * A reply that comes after the seat gave up is dropped. */
struct ring_call_view {
        uint32_t word;
        uint32_t service;
        uint64_t number;
        char name[QV_LOCK_NAME_MAX + 1];
};
bool ring_host_call(const struct ring_host *r, uint32_t seat, struct ring_call_view *ret);
void ring_host_reply(
        struct ring_host *r, uint32_t seat, const struct ring_call_view *call, int status, uint64_t number);

#endif
