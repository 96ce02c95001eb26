/* waiter.h: an entry in a list of callers that wait for one event. */
#ifndef QUIVER_BASE_WAITER_H
#define QUIVER_BASE_WAITER_H

/* Zero it and set done().  It must stay in place until done() is called, once, on the loop; then it may be freed. */
struct waiter {
        void (*done)(struct waiter *waiter);
        struct waiter *prev, *next; /* in the list of the one that calls done() */
};

#endif
