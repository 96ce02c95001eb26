/* task_locks.h: the locks that tasks of this host take with the service trylock.
 *
 * Each is a lock of the app (coord/lock.h), held by the host's session for one task: until the task unlocks it or ends,
 * its runner is gone, its time is over, or the session is lost.  There is one struct task_lock per name that a task of
 * this host holds or wants: between tasks of one host it decides, between hosts the tree does.
 *
 * A machine without I/O of its own and without a clock: the tree answers through the recipe, a seat is answered by
 * pool_call_answer(), and the host passes on the tree's events and the time. */
#ifndef QUIVER_HOST_SERVICE_TASK_LOCKS_H
#define QUIVER_HOST_SERVICE_TASK_LOCKS_H

#include <uthash.h>

#include "coord/lock.h"
#include "host/pool/pool_call.h"

#define TASK_LOCKS_MAX 4096u /* per host */

enum task_lock_state {
        TASK_LOCK_REST,      /* no task here holds or wants it */
        TASK_LOCK_TRYING,    /* the tree is being asked; `call` waits */
        TASK_LOCK_HELD,      /* a task of this host holds it */
        TASK_LOCK_RELEASING, /* being released; an unlock may wait as `call` */
};

struct task_lock {
        UT_hash_handle hh;
        struct task_locks *all;
        char name[QV_LOCK_NAME_MAX + 1];
        struct lock lock;
        enum task_lock_state state;
        pid_t pid; /* the holder's runner, and below the ticket of its task (0: none) */
        uint64_t ticket;
        uint64_t token;
        uint64_t until_ms;   /* released at this time unless renewed */
        uint64_t give_up_ms; /* when the call is answered at the latest */
        struct pool_call *call;
        struct pool_call *next; /* a trylock that waits for the release */
        uint64_t next_ms;       /* when `next` came */
        char next_who[QUEUE_SAYS_MAX];
        bool has_failed; /* a request failed and is repeated at the next tick */
};

struct task_locks {
        struct coord *coord; /* NULL: not open */
        char nonce[QUEUE_ID_MAX + 1];
        uint64_t session;
        struct task_lock *by_name;
        uint64_t now_ms; /* as last told */
        uint64_t due_ms; /* when task_locks_tick() is due; UINT64_MAX: never */
};

/* The tree is open; `nonce` is unique to the host. */
void task_locks_open(struct task_locks *all, struct coord *coord, const char *nonce, uint64_t session);
/* Call after the tree was closed. */
void task_locks_free(struct task_locks *all);

/* Both answer the call, now or later.  `who` is the text about the holder in the lock's node. */
void task_locks_try(struct task_locks *all, struct pool_call *call, const char *who, uint64_t now_ms);
void task_locks_unlock(struct task_locks *all, struct pool_call *call, uint64_t now_ms);

/* The task has ended, or its runner is gone: its locks are released. */
void task_locks_task_ended(struct task_locks *all, pid_t pid, uint64_t ticket);
void task_locks_runner_gone(struct task_locks *all, pid_t pid);

/* The tree's events. */
void task_locks_session(struct task_locks *all, enum coord_state state, uint64_t session);
void task_locks_changed(struct task_locks *all, const char *path);
void task_locks_look(struct task_locks *all);

/* Call at all->due_ms or later. */
void task_locks_tick(struct task_locks *all, uint64_t now_ms);

#endif
