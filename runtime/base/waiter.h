/* waiter.h: somebody who waits for something, in a list of such. */
#ifndef QUIVER_BASE_WAITER_H
#define QUIVER_BASE_WAITER_H

/* Zeroed but for done.  It stays where it is until done() is called: once, on the loop.  Then it may be freed. */
struct waiter {
        void (*done)(struct waiter *waiter);
        struct waiter *prev, *next; /* of whoever calls it */
};

#endif
