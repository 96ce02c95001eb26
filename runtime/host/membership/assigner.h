/* assigner.h: what the leader of an app does: hears who comes and goes, and decides who should own which shard.
 *
 * A machine without I/O.  Every host has one; it only decides while its host leads.  membership.c feeds it from the
 * coordination tree and writes down what it decides:
 *
 *         leads → reads the document → plans → is written → plans again when something changes
 *
 * Shards whose owner is gone move at once.  Joins are gathered for a moment, and planned moves go in rounds, so that a
 * deploy of fifty hosts is a few documents and not fifty. */
#ifndef QUIVER_HOST_MEMBERSHIP_ASSIGNER_H
#define QUIVER_HOST_MEMBERSHIP_ASSIGNER_H

#include <uthash.h>

#include "host/membership/assign_doc.h"
#include "host/membership/member_doc.h"

#define ASSIGNER_GATHER_MS 200 /* after a join, for more of them */
#define ASSIGNER_ROUND_MS  500 /* between two rounds of planned moves */

/* A member as its node tells. */
struct assigner_member {
        UT_hash_handle hh;
        struct assign_member member;
        struct assign_stale *stale;
        uint32_t stale_count;
        bool is_foreign; /* a newer Quiver wrote it: it is left alone */
        char node[];
};

struct assigner {
        uint32_t shards_count;
        uint32_t members_max;
        struct assigner_member *members;

        bool is_leading;
        bool has_read; /* `current` is what stands in the tree */
        bool is_known; /* the members are all of them, not just those heard of so far */
        bool is_writing;
        bool exists; /* there is a document */
        uint64_t version;
        struct assignment current;
        struct moves moves;
        struct assign_plan plan; /* while writing */
        struct moves next_moves;
        struct error failure; /* why the last plan could not be made; "": it could */

        uint64_t urgent_ms;  /* when to plan what cannot wait; UINT64_MAX: nothing */
        uint64_t planned_ms; /* when to plan what can wait; UINT64_MAX: nothing */
        uint64_t wait_until_ms;
};

void assigner_init(struct assigner *c, uint32_t shards_count, uint32_t members_max);
void assigner_free(struct assigner *c);

/* Leadership gained or lost. */
void assigner_lead(struct assigner *c, bool is_leading, uint64_t now_ms);
/* The members told of are all there are (or, after a lost session, may not be). */
void assigner_know(struct assigner *c, bool is_known, uint64_t now_ms);

/* This host's own session was lost.  Those of others may be too, and they need as long to come back: before `until_ms`
 * nothing is decided. */
void assigner_wait(struct assigner *c, uint64_t until_ms);

/* It leads and does not know the document: read `assign` and `moves`, then tell. */
bool assigner_wants_read(const struct assigner *c);
/* `has_assign` false: there is none.  A `moves` that cannot be read is forgotten.  0; -EPROTO: from a newer Quiver;
 * -EBADMSG: damaged, and to be replaced: the epochs in the store decide. */
int assigner_read(struct assigner *c, bool has_assign, struct span assign, uint64_t version, struct span moves,
        uint64_t now_ms, struct error *error);

/* What stands in the tree was seen to be of that generation (0: it cannot be read, or is gone).  If that is not what
 * was written last, somebody else has: it is read again. */
void assigner_saw(struct assigner *c, uint64_t generation, uint64_t now_ms);

/* Joined or changed; its node's name, creation id and data.  0; -EPROTO: a newer Quiver's; -EBADMSG: nobody's. */
int assigner_member(
        struct assigner *c, const char *node, uint64_t created, struct span data, uint64_t now_ms, struct error *error);
void assigner_left(struct assigner *c, const char *node, uint64_t now_ms);

/* When assigner_plan() may have something; UINT64_MAX. */
uint64_t assigner_due_ms(const struct assigner *c);
/* True: write these two, version checked.  The plan is c->plan until assigner_wrote().  False: nothing is to be done,
 * or c->failure says why it cannot be. */
bool assigner_plan(
        struct assigner *c, uint64_t now_ms, uint64_t unix_ms, struct buffer *ret_assign, struct buffer *ret_moves);
/* 0 with the new version; else it is read again. */
void assigner_wrote(struct assigner *c, int status, uint64_t version, uint64_t now_ms);

#endif
