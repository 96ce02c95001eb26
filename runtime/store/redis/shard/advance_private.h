/* advance_private.h: what the files of an advance share.
 *
 *         advance.c         what goes out, and what is left to do when all has come back
 *         advance_many.c    the same for several shards in one script, in the common case
 *         advance_answer.c  what the script advance.lua said
 *         advance_lists.c   tasks that stay in their lane's list, and come with an LRANGE behind the script */
#ifndef QUIVER_STORE_REDIS_ADVANCE_PRIVATE_H
#define QUIVER_STORE_REDIS_ADVANCE_PRIVATE_H

#include "store/redis/redis_store.h"

/* What is claimed in the common case stays in its lane's list, and comes with an LRANGE that follows the script. */
struct advance_list {
        const struct redis_call *call; /* the LRANGE that is waited for; NULL: none */
        uint32_t from, reads;          /* what it asks for */
        bool has_last;  /* and before that for the last one that was claimed before: is it still there? */
        uint64_t first; /* the number of the first claimed task */
        uint32_t count; /* how many of what it reads are claimed */
        bool is_exact;  /* it was sent when the script had been answered */
        bool is_read;
};

struct advance_op {
        struct redis_claim claim;
        struct advance_list lists[LANES];
        uint32_t gone, dead;
        bool is_anew;      /* the store knew more than we did, so all was said once more */
        bool is_answered;  /* by the script, and it was not fenced */
        bool is_sent_once; /* the script was: what was sent behind it was also executed behind it */
        bool rings;        /* the LRANGE asks for one element more: whatever it brings beyond the claim is news */
        bool is_listed;    /* what we know of the lists is what the store says */
        bool is_changed;   /* others have changed a list between the script and its LRANGE */
        bool is_ended;
};

/* Sends it as a call of its own. */
void advance_send(struct redis_op *op);
/* Done, and nothing else to say about any of them. */
bool advance_is_plain(const struct store_advance *advance, bool has_no_keys);
/* Marks what is done and stands in a list, and returns how many these are.  The seqs of the others are `rest`. */
uint32_t advance_mark_done(struct redis_op *op, struct redis_shard *shard, uint64_t *rest, uint32_t *ret_rest);
/* How many elements of a lane are read with this call: those that are known to be small, and some more, of which
 * nothing is known, unless the others are large.  0: none, or the list is too long for the common case. */
uint32_t advance_reads(const struct redis_op *op, const struct redis_lane *lane, unsigned number);
/* How many of them need not be looked at, since they fit. */
uint32_t advance_small(const struct redis_op *op, const struct redis_lane *lane);
/* How many nodes of a lane's list tell how large its next elements are. */
uint64_t advance_samples(const struct redis_shard *shard);
/* The shard's field `claimed`, as it should be. */
struct span advance_view(struct redis_op *op, const struct redis_shard *shard);
/* What the field says of a lane behind the number of its claimed elements. */
struct span advance_marks(struct redis_op *op, const struct redis_lane *lane);

/* What advance.lua said. */
void advance_answer(struct redis_call *call, const redisReply *reply);
/* The next elements of a lane's list were claimed.  False if they cannot be those that the LRANGE asked for. */
bool advance_note_list(struct redis_op *op, struct redis_lane *lane, uint64_t seq, uint32_t count);
/* What the store has of the lists is not what we thought: it is told by seq what is done, and moves what is in flight
 * out of them. */
void advance_send_anew(struct redis_op *op);
/* Somebody else has changed a list of the shard: it counts as lost. */
void advance_list_changed(struct redis_op *op, uint32_t shard);

/* The LRANGE of a lane, as `lists` says. */
void advance_list_send(struct redis_op *op, uint32_t shard, unsigned lane);
/* Where a list was read too early, or not at all, it is read now.  What we have claimed stays where it is for as long
 * as we own the shard.  False: all of them were read. */
bool advance_read_again(struct redis_op *op, uint32_t shard);

/* The advance goes with others of this turn, if it is a common one; false: it has to be sent alone. */
bool advance_join(struct redis_op *op);

#endif
