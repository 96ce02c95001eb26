/* assigner.h: decides, on the leader of an app, which member should own which shard.
 *
 * A machine without I/O.  Every host has one; it decides only while its host leads.  assigner_io.c passes it what the
 * coordination tree shows and writes its decisions to the tree:
 *
 *         leads → reads the document → plans → writes → plans again when something changes
 *
 * Shards whose owner is gone move at once.  Joins are collected for a moment, and planned moves go in rounds, so that a
 * deployment of fifty hosts takes a few documents and not fifty. */
#ifndef QUIVER_HOST_MEMBERSHIP_ASSIGNER_H
#define QUIVER_HOST_MEMBERSHIP_ASSIGNER_H

#include <uthash.h>

#include "host/membership/assign_doc.h"
#include "host/membership/member_doc.h"

#define ASSIGNER_GATHER_MS 200 /* pause after a join, to collect more of them */
#define ASSIGNER_ROUND_MS  500 /* between two rounds of planned moves */
/* Every member reads every document.  The next document waits for as long as reading takes at this rate, and collects
 * the changes of that time: 20 ms for 100 hosts and 500 shards, under 2 s for 1000 hosts and 4096 shards. */
#define ASSIGNER_BYTES_PER_MS UINT64_C(100000)
/* Load: at most one exchange of two shards per EVEN_ROUND_MS, and none of a shard that was exchanged within
 * EVEN_REST_MS.  The times are in the history of moves in the tree, so they hold across leaders. */
#define ASSIGNER_EVEN_ROUND_MS  20000
#define ASSIGNER_EVEN_REST_MS   600000
#define ASSIGNER_EVEN_GATHER_MS 1000  /* after a change of load, to collect more of them */
#define ASSIGNER_EVEN_AGAIN_MS  60000 /* when to look again at uneven load that could not be evened out */

/* A member, from its node's document. */
struct assigner_member {
        UT_hash_handle hh;
        struct assign_member member;
        struct assign_stale *stale;
        uint32_t stale_count;
        bool is_foreign; /* a newer Quiver wrote its document: the member is left out of the plan */
        char node[];
};

struct assigner {
        uint32_t shards_count;
        uint32_t members_max;
        struct assigner_member *members;

        bool is_leading;
        bool has_read; /* `current` is the document in the tree */
        bool is_known; /* `members` is complete */
        bool is_writing;
        bool exists; /* the tree has a document */
        uint64_t version;
        struct assignment current;
        struct moves moves;
        struct assign_plan plan; /* valid while is_writing */
        struct moves next_moves;
        struct error failure; /* why the last plan could not be made; "" if it could */

        uint64_t urgent_ms;  /* when to plan moves that cannot wait; UINT64_MAX: none */
        uint64_t planned_ms; /* when to plan all other moves; UINT64_MAX: none */
        uint64_t even_ms;    /* when to look at the load; UINT64_MAX: when it changes */
        bool evens_load;
        uint64_t wait_until_ms;
        uint64_t spread_until_ms; /* until then the members read the last document */
        uint64_t document_bytes;  /* is_writing: its size */
};

void assigner_init(struct assigner *c, uint32_t shards_count, uint32_t members_max);
void assigner_free(struct assigner *c);
/* Changes how many members may own shards. */
void assigner_limit(struct assigner *c, uint32_t members_max, uint64_t now_ms);

/* Whether to exchange shards to even out load. */
void assigner_even_load(struct assigner *c, bool evens_load, uint64_t now_ms);

/* The host gained or lost the leadership. */
void assigner_lead(struct assigner *c, bool is_leading, uint64_t now_ms);
/* The members passed so far are all members; false after a lost session, when some may be missing. */
void assigner_know(struct assigner *c, bool is_known, uint64_t now_ms);

/* This host's own session was lost.  Sessions of others may have been lost too and need as long to come back, so
 * nothing is decided before `until_ms`. */
void assigner_wait(struct assigner *c, uint64_t until_ms);

/* Whether the nodes `assign` and `moves` must be read and passed to assigner_read(). */
bool assigner_wants_read(const struct assigner *c);
/* Takes the two nodes; `has_assign` is false if there is no assignment.  A `moves` that cannot be read is dropped.  0;
 * -EPROTO: a newer Quiver wrote it; -EBADMSG: it is damaged and will be replaced, the epochs in the store decide. */
int assigner_read(struct assigner *c, bool has_assign, struct span assign, uint64_t version, struct span moves,
        uint64_t now_ms, struct error *error);

/* The document in the tree was seen to have that generation (0: it is gone or cannot be read).  If it is not the one
 * that was written last, another host has written it, and it is read again. */
void assigner_saw(struct assigner *c, uint64_t generation, uint64_t now_ms);

/* A member joined or changed: its node's name, creation id and data.  0; -EPROTO: a newer Quiver wrote the document;
 * -EBADMSG: it is not a member's. */
int assigner_member(
        struct assigner *c, const char *node, uint64_t created, struct span data, uint64_t now_ms, struct error *error);
void assigner_left(struct assigner *c, const char *node, uint64_t now_ms);

/* When to call assigner_plan() next; UINT64_MAX: not before another event. */
uint64_t assigner_due_ms(const struct assigner *c);
/* True: the caller writes the two documents, the first with a check of its version; the plan is c->plan until
 * assigner_wrote().  False: there is nothing to write, or c->failure has the reason why no plan could be made. */
bool assigner_plan(
        struct assigner *c, uint64_t now_ms, uint64_t unix_ms, struct buffer *ret_assign, struct buffer *ret_moves);
/* The write has ended: status 0 with the new version; after an error the document is read again. */
void assigner_wrote(struct assigner *c, int status, uint64_t version, uint64_t now_ms);

#endif
