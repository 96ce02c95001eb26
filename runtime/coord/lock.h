/* lock.h: a lock that processes of an app share, given in order of arrival: to one at a time, to n at a time (a
 * semaphore), or to all those that share it.
 *
 * It is held until it is released or lost: lost with the session, or because somebody removed our node.  Whatever it
 * protects should be given the token with each access, and refuse a token that is older than one it has seen.  (Several
 * that hold it at once have tokens in the order in which they asked.)  There is no timeout: the caller ends waiting
 * with lock_release(). */
#ifndef QUIVER_COORD_LOCK_H
#define QUIVER_COORD_LOCK_H

#include "coord/queue.h"

/* What a lock's name may have; 1 to 200 of them, the first not a dot. */
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
/* How many may hold it together with us: 1 (the default), LOCK_SHARED: any number of others that share it, or 2 to
 * QUEUE_LIMIT_MAX: a semaphore.  Of several limits the smallest counts, as queue.h says.  Not while it is held or
 * waited for. */
#define LOCK_SHARED QUEUE_NO_LIMIT
void lock_set_limit(struct lock *lock, uint32_t limit);
/* Waits in the queue until it is acquired. */
void lock_acquire(struct lock *lock);
/* Acquires it if it is free; else busy() is called. */
void lock_try(struct lock *lock);
/* Releases it, or stops waiting for it.  True: released() follows; false: we neither held it nor waited. */
bool lock_release(struct lock *lock);
bool lock_is_held(const struct lock *lock);
/* No request of it is under way and none is to follow: its memory may be freed while the tree is open, but not from one
 * of its events. */
bool lock_is_idle(const struct lock *lock);

/* The owner of the tree passes the tree's events on to these. */
void lock_session(struct lock *lock, enum coord_state state, uint64_t session);
void lock_changed(struct lock *lock, const char *path);
void lock_look(struct lock *lock);

#endif
