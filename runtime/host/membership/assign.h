/* assign.h: which member should own which shard.  A pure function: no I/O, no clock, no memory of its own.
 *
 * The leader feeds it the last assignment and the members, and writes down what comes out (assign_doc.h).  The rules:
 *
 *   Quotas.  Shards are shared out by weight, by largest remainder.  Where remainders are equal, whoever has the shard
 *     keeps it, then the lower nonce gets it.  A member of weight 0 gets nothing while a member with a weight can take
 *     shards; if there is none, those of weight 0 take over and share equally: that is what they stand by for.
 *   Fewest moves.  Only what is above a quota moves, the shards that were longest with their owner first: one that came
 *     last may still be on its way, and is not sent on.
 *   Draining members give everything away and get nothing.
 *   Members that do not see the store keep what they have and get nothing.  If nobody sees it, nothing moves.
 *   members_max.  Present owners stay, then the ones that were members first come in; the others stand by.  A draining
 *     owner does not count: its successor comes in before it has gone.  If all that are in cannot see the store, one
 *     more comes in for the shards that nobody has.
 *   Orphans (their owner is no member any more) and shards that never had an owner move at once.  All others are
 *     planned moves and go in rounds, draining owners' first.
 *   Firm or patient.  An orphan's new owner may force the handover: firm.  A planned move is patient.  Firm is meant
 * for its last owner, which is gone, and never for a member: if a planned move was pending, one may still hold the
 * shard. So members that have given all away are listed (givers) beside the owners; whoever is in neither list is gone.
 *   Epochs.  A shard's epoch is the generation in which its owner changed; a generation is never lower than the time at
 *     which it was made.  If the store knows a higher epoch (it said STALE), the shard gets one above it.
 *
 * The members' order does not matter, and what comes out is left as it is when it goes in again. */
#ifndef QUIVER_HOST_MEMBERSHIP_ASSIGN_H
#define QUIVER_HOST_MEMBERSHIP_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

#define ASSIGN_NOBODY      UINT16_MAX
#define ASSIGN_NAME_MAX    64u
#define ASSIGN_WEIGHT_MAX  1000u
#define ASSIGN_MEMBERS_MAX 4096u
/* Half of what a generation may be at most.  A report from above it is damage: following it would leave no room. */
#define ASSIGN_STALE_MAX (TASK_NUMBER_MAX / 2)
/* A document from above this is damage, too.  Whoever took a lease at its epochs could never be succeeded. */
#define ASSIGN_GENERATION_MAX (TASK_NUMBER_MAX / 4 * 3)

struct assign_member {
        uint8_t nonce[STORE_NONCE_SIZE];
        char name[ASSIGN_NAME_MAX + 1];
        uint32_t weight; /* ≤ ASSIGN_WEIGHT_MAX */
        bool is_draining;
        bool sees_store;
        uint64_t created; /* of its node: who was a member first */
};

struct assign_owner {
        uint8_t nonce[STORE_NONCE_SIZE];
        char name[ASSIGN_NAME_MAX + 1];
        bool is_draining; /* when last seen: if it is gone now, it has left and not crashed */
};

/* It may still hold what it was to give away. */
struct assign_giver {
        uint8_t nonce[STORE_NONCE_SIZE];
};

struct assign_slot {
        uint16_t owner; /* index into owners, or ASSIGN_NOBODY */
        bool is_firm;
        uint64_t epoch; /* ≤ generation */
};

/* Zero-initialised is an empty one; owns its arrays. */
struct assignment {
        uint64_t generation;
        struct assign_slot *slots; /* one per shard */
        uint32_t shards_count;
        struct assign_owner *owners; /* who has shards, or may have; by nonce, each once */
        uint32_t owners_count;
        struct assign_giver
                *givers; /* members that owned shards and own none now; by nonce, each once, none an owner */
        uint32_t givers_count;
};

void assignment_free(struct assignment *a);
/* Room for so many, all slots with nobody; -ENOMEM. */
int assignment_init(struct assignment *a, uint32_t shards_count, uint32_t owners_count, uint32_t givers_count);
/* The owner of a shard; NULL if it has none.  Borrowed. */
const struct assign_owner *assignment_owner(const struct assignment *a, uint32_t shard);
/* Whether it is an owner or a giver: what it holds is not to be wanted firmly. */
bool assignment_lists(const struct assignment *a, const uint8_t nonce[STORE_NONCE_SIZE]);

/* "The store already has this epoch", as acquire said. */
struct assign_stale {
        uint32_t shard;
        uint64_t epoch;
};

struct assign_input {
        const struct assign_member *members; /* in any order; of two with one nonce the newer counts */
        uint32_t members_count;
        uint32_t shards_count;
        uint32_t members_max;             /* 0: no limit */
        uint64_t unix_s;                  /* now */
        const struct assign_stale *stale; /* what members reported; outdated reports are ignored */
        uint32_t stale_count;
        bool may_plan;      /* false: the last round is still under way; orphans move all the same */
        uint32_t round_max; /* planned moves of one round; 0: no limit */
};

/* Join: to a member that had none, or a shard's first owner.  Leave, crash: its owner is gone, drained or not.
 * Rebalance: weights, members_max, or a member with shards gets more.  Drain: its owner is draining. */
enum assign_reason { ASSIGN_JOIN, ASSIGN_LEAVE, ASSIGN_CRASH, ASSIGN_REBALANCE, ASSIGN_DRAIN, ASSIGN_REASONS };

/* "join", "leave", … */
const char *assign_reason_name(enum assign_reason reason);

struct assign_move {
        uint32_t shard;
        struct assign_owner from; /* name "": nobody */
        struct assign_owner to;
        uint64_t epoch;
        enum assign_reason reason;
};

struct assign_plan {
        struct assignment next;
        bool is_changed;           /* else there is nothing to write */
        struct assign_move *moves; /* by shard, at most one each */
        uint32_t moves_count;
        uint32_t moves_left; /* planned moves for later rounds */
};

void assign_plan_free(struct assign_plan *plan);

/* `previous` NULL: there is no document yet.  0; -EINVAL: called wrongly, or another number of shards; -E2BIG: too many
 * members; -EOVERFLOW: no generation is left; -ENOMEM. */
int assign_plan(const struct assignment *previous, const struct assign_input *input, struct assign_plan *ret_plan,
        struct error *error);

#endif
