/* assign_doc.h: the document in which the leader publishes the assignment, and the history of moves beside it.
 *
 *         quiver-assign 1
 *         generation 1763256123
 *         shards 20
 *         owner 0 3f2a94c07b1de85f6a0c2d4e8b917f35 host-a
 *         owner 1 9b0171c2d3e4f5a68796a5b4c3d2e1f0 host-b draining
 *         giver c4d1e0ff2a3b4c5d6e7f8091a2b3c4d5
 *         slots
 *         0-9 0 1763256000 patient
 *         10-18 1 1763256123 firm
 *         19 - 0 patient
 *
 * Owners and givers are sorted by nonce.  After `slots` follow all shards in order, equal neighbours in one line: the
 * owner's index or - for none; the epoch; whether the owner may force the handover.  A line before `slots` whose first
 * word is unknown is skipped: a newer host wrote it in the same format.
 *
 *         quiver-moves 1
 *         1763256123456 7 3f2a94c07b1de85f6a0c2d4e8b917f35:host-a 9b0171c2d3e4f5a68796a5b4c3d2e1f0:host-b 1763256123
 * join
 *
 * Time (unix milliseconds), shard, from (- for none), to, epoch, reason; the latest move is last. */
#ifndef QUIVER_HOST_MEMBERSHIP_ASSIGN_DOC_H
#define QUIVER_HOST_MEMBERSHIP_ASSIGN_DOC_H

#include "host/membership/assign.h"

#define ASSIGN_DOC_VERSION 1u
#define ASSIGN_DOC_MAX     (512u * 1024u) /* the limit of a tree's node; 4096 shards on 200 hosts take up to 160 KB */

/* Appends the document.  0; -E2BIG: it would be larger than ASSIGN_DOC_MAX. */
int assign_doc_put(struct buffer *to, const struct assignment *a, struct error *error);

/* 0; -EPROTO: a newer Quiver wrote it, so this host stands by; -EBADMSG: not an assignment.  The caller frees
 * *ret_assignment. */
int assign_doc_parse(struct span text, struct assignment *ret_assignment, struct error *error);

#define MOVES_DOC_VERSION 1u
#define MOVES_MAX         100u
#define MOVES_DOC_MAX     (64u * 1024u)

/* The latest moves.  Zero-initialised is empty. */
struct moves {
        struct moved {
                uint64_t at_ms; /* unix time */
                struct assign_move move;
        } items[MOVES_MAX];
        uint32_t count;
};

/* Adds moves that were made at `at_ms`; drops the oldest beyond the limit. */
void moves_add(struct moves *moves, uint64_t at_ms, const struct assign_move *made, uint32_t count);

void moves_doc_put(struct buffer *to, const struct moves *moves);
/* 0; -EPROTO; -EBADMSG.  An owner's is_draining is not kept. */
int moves_doc_parse(struct span text, struct moves *ret_moves, struct error *error);

#endif
