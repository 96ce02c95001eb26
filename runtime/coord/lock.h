/* lock.h: a lock that processes of an app share, given in order of arrival: to one at a time, to n at a time (a
 * semaphore), or to all those that share it.
 *
 * It is held until it is released or lost: with the session, or because somebody removed our node.  Each access to what
 * the lock protects should carry the token, and a token older than one already seen should be refused. (Concurrent
 * holders have tokens in the order in which they asked.) There is no timeout: the caller ends waiting with
 * lock_release(). */
#ifndef QUIVER_COORD_LOCK_H
#define QUIVER_COORD_LOCK_H

#include "coord/queue.h"

/* The bytes allowed in a lock's name; 1 to 200 of them, the first not a dot. */
#define LOCK_NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@%+-"

struct lock_events {
        void (*acquired)(void *self, uint64_t token); /* each holder gets a larger token */
        void (*busy)(void *self); /* after lock_try(): another process holds it, and we do not wait for it */
        void (*lost)(void *self); /* we no longer hold it and do not wait for it; it can be acquired again */
        void (*released)(void *self);
        void (*failed)(void *self, int status, const char *text);
        void *self;
};

struct lock {
        struct queue queue;
        struct lock_events events;
        bool is_try;
};

/* The lock NAME of the app; `nonce` must be different for each struct lock of that name. */
void lock_init(
        struct lock *lock, struct coord *coord, const char *name, const char *nonce, const struct lock_events *events);
/* How many may hold the lock together with us: 1 (the default), LOCK_SHARED: any number that also share it, or 2 to
 * QUEUE_LIMIT_MAX: a semaphore.  The smallest limit of all counts, see queue.h.  Not allowed while we hold or wait for
 * the lock. */
#define LOCK_SHARED QUEUE_NO_LIMIT
void lock_set_limit(struct lock *lock, uint32_t limit);
/* Waits in the queue until the lock is acquired. */
void lock_acquire(struct lock *lock);
/* Acquires the lock if it is free; otherwise busy() is called. */
void lock_try(struct lock *lock);
/* Releases the lock, or stops waiting for it.  True: released() follows; false: we neither held it nor waited. */
bool lock_release(struct lock *lock);
bool lock_is_held(const struct lock *lock);
/* No request is under way or will follow: the memory may be freed while the tree is open, but not from one of its
 * events. */
bool lock_is_idle(const struct lock *lock);

/* The owner of the tree passes the tree's events on to these. */
void lock_session(struct lock *lock, enum coord_state state, uint64_t session);
void lock_changed(struct lock *lock, const char *path);
void lock_look(struct lock *lock);

#endif
