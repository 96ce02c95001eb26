/* leader.h: one of several is the leader.
 *
 * The front of a line (queue.h): whoever came first leads, each other waits for the one before it.
 *
 * Whoever leads may not know that it no longer does (a session ends at the authority first).  So what a leader writes
 * is written by coord_multi() together with leader_check(): it fails if the node is gone. */
#ifndef QUIVER_COORD_LEADER_H
#define QUIVER_COORD_LEADER_H

#include "coord/queue.h"

struct leader_events {
        void (*gained)(void *self);
        void (*lost)(void *self); /* after gained(), once: resigned, the session ended, or somebody took the node away
                                   */
};

struct leader {
        struct queue queue;
        const struct leader_events *events;
        void *self;
        struct error failure; /* the last that was said */
};

/* `path`: of the election; `nonce` tells the candidates apart.  Both are copied. */
void leader_init(struct leader *l, struct coord *coord, const char *path, const char *nonce,
        const struct leader_events *events, void *self);

/* Stands for election, and stays a candidate through lost sessions; or resigns. */
void leader_stand(struct leader *l, bool is_standing);
bool leader_is_leading(const struct leader *l);
/* Nothing is left to try again. */
bool leader_is_settled(const struct leader *l);

/* While leading: the check that goes first into a multi.  Borrows the path until the multi is done. */
struct coord_multi_op leader_check(const struct leader *l);

/* To be handed on from the tree's events. */
void leader_session(struct leader *l, enum coord_state state, uint64_t session);
void leader_changed(struct leader *l, const char *path);
void leader_look(struct leader *l);
/* Tries again what failed; for a timer. */
void leader_retry(struct leader *l);

#endif
