/* membership.h: a host as one of several: its membership, what it was assigned, and, while it leads, what it decides.
 *
 * Joins the coordination tree (coord.h) with the recipes (member.h, leader.h) and the leader's machine (assigner.h).
 * Two authorities, no third: what is read here says which shards to seek; only the lease in the store says which may be
 * worked on.  So nothing that happens to coordination stops the work: owners go on while it is away.
 *
 * In the tree, under the app's root:
 *
 *         members/NAME.NONCE        ephemeral; member_doc.h
 *         election/NONCE-SEQUENCE   ephemeral; the lowest sequence leads
 *         assign                    who should own what, and under which epoch; assign_doc.h
 *         moves                     the latest changes to it, and why */
#ifndef QUIVER_HOST_MEMBERSHIP_MEMBERSHIP_H
#define QUIVER_HOST_MEMBERSHIP_MEMBERSHIP_H

#include <stdbool.h>
#include <uv.h>

#include "base/buffer.h"
#include "coord/coord.h"
#include "coord/leader.h"
#include "coord/member.h"
#include "host/membership/assigner.h"
#include "store/admin.h"

struct host;

/* The node `assign` as last read. */
struct assign_node {
        bool is_current; /* the tree has told of no change since */
        bool exists;
        uint64_t version; /* COORD_ANY_VERSION: the node cannot be read, and may be replaced */
        struct buffer text;
};

/* What the assigner asks of the tree; one thing at a time. */
struct assigner_work {
        bool is_busy;
        bool has_moves;              /* the node is there */
        uint64_t again_ms;           /* not before: the last try failed */
        struct buffer assign, moves; /* to be written */
        struct coord_get get;        /* of the moves */
        struct coord_multi multi;
        struct coord_multi_op ops[3];
};

struct membership {
        struct coord_events events;
        struct coord_open open;
        struct coord *coord; /* NULL: not open */
        struct member member;
        struct leader leader;
        struct assigner assigner;
        struct assigner_work work;
        bool is_started; /* the three above are there */
        uv_timer_t timer;
        uint64_t session;
        bool was_lost;    /* the last one expired, and no other followed yet */
        uint64_t calm_ms; /* until then no member is declared gone: its session may have been lost with ours */

        struct coord_get get; /* of the assignment, watched: this host reads it here only */
        bool is_getting, must_get;
        struct assign_node node;      /* for the assigner */
        struct assignment assignment; /* as last read */
        bool is_standing_by;          /* it is from a newer Quiver */

        struct buffer doc;   /* what our node says */
        bool is_drained;     /* a person wants this host to have no shards */
        bool is_leaving;     /* the host stops */
        bool has_lost_store; /* it does not answer */

        void (*closed)(void *self);
};

/* Opens the tree; host_open_store() follows, or the host ends. */
void membership_open(struct host *h);
/* The store is open, so the number of shards is known: joins, stands for election, reads what is assigned. */
void membership_start(struct host *h);

/* Something that our node tells of may have changed. */
void membership_report(struct host *h);
/* The store answered, or did not. */
void membership_store_seen(struct host *h, bool is_seen);
/* The desired state was read. */
void membership_desired(struct host *h, const struct store_desired *items, size_t count);
/* A shard that should be ours and is not, though nothing is known to stand in the way, is sought again. */
void membership_reconcile(struct host *h);

/* Stopping: resigns and says so, for others to take over. */
void membership_leave(struct host *h);
/* Ends the session; `closed` is called with the host when that is done. */
void membership_close(struct host *h, void (*closed)(void *self));
void membership_free(struct host *h);

#endif
