/* advance_private.h: what the files of an advance share.
 *
 *         advance.c         sends an advance, and finishes it when all answers are there
 *         advance_many.c    sends the advances of several shards in one script, in the common case
 *         advance_answer.c  reads the answer of advance.lua
 *         advance_lists.c   reads tasks that stay in their lane's list, with an LRANGE behind the script */
#ifndef QUIVER_STORE_REDIS_ADVANCE_PRIVATE_H
#define QUIVER_STORE_REDIS_ADVANCE_PRIVATE_H

#include "store/redis/redis_store.h"

/* The LRANGE of one lane.  In the common case claimed tasks stay in their lane's list, and an LRANGE behind the script
 * fetches them. */
struct advance_list {
        const struct redis_call *call; /* the LRANGE under way; NULL: none */
        uint32_t from, reads;          /* the range that it asks for */
        bool has_last;  /* it also asks for the element before the range, to check that it is the last one that was
                           claimed */
        uint64_t first; /* number of the first task that this call claims */
        uint32_t count; /* how many of the elements are claimed */
        bool is_exact;  /* it was sent after the script was answered */
        bool is_read;
};

struct advance_op {
        struct redis_claim claim;
        struct advance_list lists[LANES];
        uint32_t gone, dead;
        bool is_anew;      /* the call was sent again because the store's `claimed` differs from our view */
        bool is_answered;  /* the script has answered, and not FENCED */
        bool is_sent_once; /* the script was sent once, so commands sent after it were also executed after it */
        bool rings;        /* the LRANGE asks for one element more: if it comes, there is more to claim */
        bool is_listed;    /* our view of the lists agrees with the store */
        bool is_changed;   /* somebody changed a list between the script and the LRANGE */
        bool is_ended;
};

/* Sends the advance as a call of its own. */
void advance_send(struct redis_op *op);
/* Whether all outcomes are plain DONE: no result, reply, follow-ups or refill. */
bool advance_is_plain(const struct store_advance *advance, bool has_no_keys);
/* Marks the done tasks that are in a list and returns their number.  `rest` gets the seqs of the others. */
uint32_t advance_mark_done(struct redis_op *op, struct redis_shard *shard, uint64_t *rest, uint32_t *ret_rest);
/* How many elements of a lane to read with this call: those known to be small, and some of unknown size unless the
 * elements are large.  0: none, or the list is too long for the common case. */
uint32_t advance_reads(const struct redis_op *op, const struct redis_lane *lane, unsigned number);
/* How many of these need no size check because they are known to be small. */
uint32_t advance_small(const struct redis_op *op, const struct redis_lane *lane);
/* How many nodes of a list MEMORY USAGE samples to estimate the size of its next elements. */
uint64_t advance_samples(const struct redis_shard *shard);
/* The shard's field `claimed` according to our view. */
struct span advance_view(struct redis_op *op, const struct redis_shard *shard);
/* The part of that field that follows a lane's number of claimed elements. */
struct span advance_marks(struct redis_op *op, const struct redis_lane *lane);

/* Reads the answer of advance.lua. */
void advance_answer(struct redis_call *call, const redisReply *reply);
/* Notes that the script claimed `count` elements of a lane's list.  False if the LRANGE did not ask for those. */
bool advance_note_list(struct redis_op *op, struct redis_lane *lane, uint64_t seq, uint32_t count);
/* Sends the call again because the store's lists differ from our view: names done tasks by seq, and has in-flight tasks
 * moved out of the lists. */
void advance_send_anew(struct redis_op *op);
/* Treats the shard as lost, because somebody else has changed one of its lists. */
void advance_list_changed(struct redis_op *op, uint32_t shard);

/* Sends the LRANGE of a lane, as self->lists says. */
void advance_list_send(struct redis_op *op, uint32_t shard, unsigned lane);
/* Reads lists again that were read before the script, or not at all: claimed tasks stay in place while we own the
 * shard.  False: all lists are read. */
bool advance_read_again(struct redis_op *op, uint32_t shard);

/* Adds a common advance to the others of this turn; false: it has to be sent alone. */
bool advance_join(struct redis_op *op);

#endif
