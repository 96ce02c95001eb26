/* lock.h: a lock that processes of an app share, given in order of arrival.
 *
 * It is held until it is released or lost: with the session, or because somebody removed our node.  Whoever protects
 * something with it that others can reach too hands the token on and refuses older ones.  Time is the caller's:
 * lock_release() also ends waiting. */
#ifndef QUIVER_COORD_LOCK_H
#define QUIVER_COORD_LOCK_H

#include "coord/queue.h"

struct lock_events {
        void (*acquired)(void *self, uint64_t token); /* the token grows with every holder */
        void (*busy)(void *self); /* after lock_try(): somebody has it, and we are not in the queue */
        void (*lost)(void *self); /* we had it.  Out of the queue; acquire it again if you like */
        void (*released)(void *self);
        void (*failed)(void *self, int status, const char *text);
        void *self;
};

struct lock {
        struct queue queue;
        struct lock_events events;
        bool is_try;
};

/* The lock NAME of the app; `nonce`: ours, another one for each struct lock of that name. */
void lock_init(
        struct lock *lock, struct coord *coord, const char *name, const char *nonce, const struct lock_events *events);
/* Waits in the queue until it is acquired. */
void lock_acquire(struct lock *lock);
/* Acquires it if it is free, or says busy. */
void lock_try(struct lock *lock);
/* Gives it up, or stops waiting for it.  True: released() follows; false: there was nothing to give up. */
bool lock_release(struct lock *lock);
bool lock_is_held(const struct lock *lock);

/* The tree's events. */
void lock_session(struct lock *lock, enum coord_state state, uint64_t session);
void lock_changed(struct lock *lock, const char *path);
void lock_look(struct lock *lock);

#endif
