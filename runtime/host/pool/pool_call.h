/* pool_call.h: a seat's call of a service of the host, until it is answered.
 *
 *         seat asks (ring_ask) → pool_io_events.call(call) → … the host asks a tree or a store … → pool_call_answer()
 *
 * The receiver answers a call exactly once, within call() or later on the loop's thread, even if the runner has died or
 * the seat has given up waiting.  pool_call_answer() then returns false, and the receiver gives back what it got for
 * the seat (a lock, say). */
#ifndef QUIVER_HOST_POOL_POOL_CALL_H
#define QUIVER_HOST_POOL_POOL_CALL_H

#include <stdbool.h>
#include <sys/types.h>

#include "ring/host_side.h"

struct process;
struct pool_io;

struct pool_call {
        enum ring_service service;
        pid_t pid; /* the runner; with `ticket` it identifies the caller.  Unique among runners that are not reaped */
        uint64_t ticket; /* the seat's task; 0: none.  Unverified: a runner may send any of its tickets */
        uint64_t number; /* meaning of number, name and bytes depends on the service; unchecked input */
        char name[RING_CALL_NAME_MAX + 1];
        uint8_t *bytes;
        uint32_t size;

        /* private */
        struct process *process; /* NULL: the runner is gone */
        uint32_t seat, word;
        struct pool_call *prev, *next; /* the process's list of calls */
};

/* Answers the call and frees it.  The meaning of the numbers depends on the service.  False: nobody waits for it any
 * more. */
bool pool_call_answer(struct pool_call *call, int status, uint64_t number, uint64_t second_number);

/* Takes new calls from the runner's seats and passes them to pool_io_events.call(). */
void pool_calls_take(struct pool_io *io, struct process *p);
/* The process is gone: detaches its calls, whose answers then go nowhere. */
void pool_calls_forget(struct process *p);

#endif
