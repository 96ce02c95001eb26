/* pool_call.h: a seat calls a service of the host, and waits for its answer, which may come later.
 *
 *         seat asks (ring_ask) → pool_io_events.call(call) → … the host asks a tree or a store … → pool_call_answer()
 *
 * Whoever was given a call answers it exactly once, in call() or at any later time on the loop's thread, also if the
 * runner has died meanwhile or the seat has given up waiting: pool_call_answer() says so.  What was got for a seat that
 * does not wait any more has to be given back. */
#ifndef QUIVER_HOST_POOL_POOL_CALL_H
#define QUIVER_HOST_POOL_POOL_CALL_H

#include <stdbool.h>
#include <sys/types.h>

#include "ring/host_side.h"

struct process;
struct pool_io;

struct pool_call {
        enum ring_service service;
        pid_t pid;       /* of the runner, with `ticket`: who asks.  No two runners that are not reaped have the same */
        uint64_t ticket; /* the seat's task; 0: none.  From the runner: it may be any of its own */
        uint64_t number; /* what it is depends on the service; so for the name and the bytes.  Nothing is checked */
        char name[RING_CALL_NAME_MAX + 1];
        uint8_t *bytes;
        uint32_t size;

        /* private */
        struct process *process; /* NULL: it is gone */
        uint32_t seat, word;
        struct pool_call *prev, *next; /* of the process */
};

/* Answers the call and frees it.  What the numbers mean depends on the service.  False: nobody waits for it any more.
 */
bool pool_call_answer(struct pool_call *call, int status, uint64_t number, uint64_t second_number);

/* Passes on the calls that the runner's seats have made. */
void pool_calls_take(struct pool_io *io, struct process *p);
/* The process is gone: its calls are answered to nobody. */
void pool_calls_forget(struct process *p);

#endif
