/* leader.h: elects one leader among several candidates.
 *
 * The leader is first in a queue (queue.h); every other candidate waits for the one before it.
 *
 * A leader may have lost its leadership without knowing it, because a session ends at the authority first.  So a leader
 * writes with coord_multi() and puts leader_check() first: the write fails if its node is gone. */
#ifndef QUIVER_COORD_LEADER_H
#define QUIVER_COORD_LEADER_H

#include "coord/queue.h"

struct leader_events {
        void (*gained)(void *self);
        void (*lost)(void *self); /* once after gained(): it resigned, or its session or node is gone */
};

struct leader {
        struct queue queue;
        const struct leader_events *events;
        void *self;
        struct error failure; /* the last error that was logged */
};

/* `path` is the election's; `nonce` must be unique to the candidate.  Both are copied. */
void leader_init(struct leader *l, struct coord *coord, const char *path, const char *nonce,
        const struct leader_events *events, void *self);

/* True: becomes a candidate, and remains one when a session is lost.  False: resigns. */
void leader_stand(struct leader *l, bool is_standing);
bool leader_is_leading(const struct leader *l);
/* No failed request waits for leader_retry(). */
bool leader_is_settled(const struct leader *l);

/* While leading: the check that goes first into a multi.  Borrows the path until the multi is done. */
struct coord_multi_op leader_check(const struct leader *l);

/* The owner of the tree passes the tree's events on to these. */
void leader_session(struct leader *l, enum coord_state state, uint64_t session);
void leader_changed(struct leader *l, const char *path);
void leader_look(struct leader *l);
/* Repeats failed requests; call it from a timer. */
void leader_retry(struct leader *l);

#endif
