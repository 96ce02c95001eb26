/* assign.h: decides which member should own which shard.  A pure function: no I/O, no clock, no state.
 *
 * The leader passes the previous assignment and the members, and writes the result to the tree (assign_doc.h).  Rules:
 *
 *   Quotas.  Shards are divided by weight, by largest remainder.  Where remainders are equal, the current owner keeps
 * the shard, then the lower nonce gets it.  A member of weight 0 gets nothing while a member with a weight can take
 *     shards; if there is none, the members of weight 0 share the shards equally.
 *   Fewest moves.  Only shards above a quota move, those that their owner has had longest first: a shard that was
 *     assigned last may still be in handover and is not moved again.
 *   Draining members give all shards away and get none.
 *   Members that do not see the store keep their shards and get none.  If no member sees it, nothing moves.
 *   members_max.  Present owners stay, then the oldest members take part; the others stand by.  A draining owner does
 *     not count, so its successor takes part before the owner has gone.  If no participant sees the store, one more
 *     member takes part, for the shards without an owner.
 *   Orphans (shards whose owner is no member any more) and shards that never had an owner move at once.  All others are
 *     planned moves and go in rounds, those of draining owners first.
 *   Firm or patient.  The new owner of an orphan may force the handover: firm.  A planned move is patient.  Only a host
 *     that is gone may be forced, never a member.  While a planned move is pending, a former owner may still hold the
 *     shard.  So the document also lists members that have given all shards away (givers): a host in neither list is
 *     gone.
 *   Load.  Once nothing else is to move, one busy shard may be exchanged for a quiet one of another member
 *     (assign_load.h).  No quota changes: counts are as even as without it.
 *   Epochs.  A shard's epoch is the generation in which its owner changed; a generation is never lower than the time at
 *     which it was made.  If the store has a higher epoch (it answered STALE), the shard gets one above it.
 *
 * The order of the members does not matter.  A plan that is applied gives no further change. */
#ifndef QUIVER_HOST_MEMBERSHIP_ASSIGN_H
#define QUIVER_HOST_MEMBERSHIP_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/membership/load.h"
#include "store/store.h"

#define ASSIGN_NOBODY      UINT16_MAX
#define ASSIGN_NAME_MAX    64u
#define ASSIGN_WEIGHT_MAX  1000u
#define ASSIGN_MEMBERS_MAX 4096u
/* Half of the largest generation.  A STALE report above it is damaged data: following it would leave no higher
 * epochs. */
#define ASSIGN_STALE_MAX (TASK_NUMBER_MAX / 2)
/* A document with a higher generation is damaged data too: a lease at its epochs could never be taken over. */
#define ASSIGN_GENERATION_MAX (TASK_NUMBER_MAX / 4 * 3)

struct assign_member {
        uint8_t nonce[STORE_NONCE_SIZE];
        char name[ASSIGN_NAME_MAX + 1];
        uint32_t weight; /* ≤ ASSIGN_WEIGHT_MAX */
        bool is_draining;
        bool sees_store;
        uint64_t created; /* creation id of its node; lower means an older member */
        struct load_summary load;
};

struct assign_owner {
        uint8_t nonce[STORE_NONCE_SIZE];
        char name[ASSIGN_NAME_MAX + 1];
        bool is_draining; /* when last seen; if it is gone now, it has left and not crashed */
};

/* A member that has given all its shards away, but may still hold leases of them. */
struct assign_giver {
        uint8_t nonce[STORE_NONCE_SIZE];
};

struct assign_slot {
        uint16_t owner; /* index into owners, or ASSIGN_NOBODY */
        bool is_firm;
        uint64_t epoch; /* ≤ generation */
};

/* Zero-initialised is empty.  Owns its arrays. */
struct assignment {
        uint64_t generation;
        struct assign_slot *slots; /* one per shard */
        uint32_t shards_count;
        struct assign_owner *owners; /* members that have shards or may get some; sorted by nonce, unique */
        uint32_t owners_count;
        struct assign_giver *givers; /* members that owned shards and own none now; sorted by nonce, unique */
        uint32_t givers_count;
};

void assignment_free(struct assignment *a);
/* Allocates the arrays; all slots without an owner. */
void assignment_init(struct assignment *a, uint32_t shards_count, uint32_t owners_count, uint32_t givers_count);
/* The owner of a shard; NULL if it has none.  Borrowed. */
const struct assign_owner *assignment_owner(const struct assignment *a, uint32_t shard);
/* Whether the nonce is an owner's or a giver's: its shards must not be taken by force. */
bool assignment_lists(const struct assignment *a, const uint8_t nonce[STORE_NONCE_SIZE]);

/* An epoch that the store already has, as its STALE answer to an acquire reported. */
struct assign_stale {
        uint32_t shard;
        uint64_t epoch;
};

struct assign_input {
        const struct assign_member *members; /* in any order; of two with the same nonce the newer one counts */
        uint32_t members_count;
        uint32_t shards_count;
        uint32_t members_max;             /* 0: no limit */
        uint64_t unix_s;                  /* the current time */
        const struct assign_stale *stale; /* reports of members; outdated ones are ignored */
        uint32_t stale_count;
        bool may_plan;           /* false: the last round of planned moves is too recent; orphans still move */
        uint32_t round_max;      /* planned moves per round; 0: no limit */
        bool may_even;           /* two shards may be exchanged to even out load */
        const uint32_t *resting; /* shards that are not exchanged, because they were exchanged a short time ago */
        uint32_t resting_count;
};

/* Why a shard moves.  Join: to a member that had none, or to its first owner.  Leave, crash: its owner is gone, after
 * or without draining.  Rebalance: weights or members_max changed, or a member with shards gets more.  Drain: its owner
 * is draining.  Load: exchanged with another shard to even out the load of members. */
enum assign_reason {
        ASSIGN_JOIN,
        ASSIGN_LEAVE,
        ASSIGN_CRASH,
        ASSIGN_REBALANCE,
        ASSIGN_DRAIN,
        ASSIGN_LOAD,
        ASSIGN_RESTART, /* the owner is gone and a host of its name has come; nobody saw whether the owner left or
                         * crashed */
        ASSIGN_REASONS
};

/* "join", "leave", … */
const char *assign_reason_name(enum assign_reason reason);

struct assign_move {
        uint32_t shard;
        struct assign_owner from; /* name "": there was no owner */
        struct assign_owner to;
        uint64_t epoch;
        enum assign_reason reason;
};

struct assign_plan {
        struct assignment next;
        bool is_changed;           /* false: there is nothing to write */
        struct assign_move *moves; /* sorted by shard, at most one each */
        uint32_t moves_count;
        uint32_t moves_left; /* planned moves for later rounds */
        bool is_uneven;      /* may_even: a member's load is far above the mean */
};

void assign_plan_free(struct assign_plan *plan);

/* `previous` is NULL if there is no document yet.  0; -EINVAL: an argument is wrong, or the number of shards differs;
 * -E2BIG: too many members; -EOVERFLOW: no generation is left. */
int assign_plan(const struct assignment *previous, const struct assign_input *input, struct assign_plan *ret_plan,
        struct error *error);

#endif
