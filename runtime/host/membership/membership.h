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

/* What membership needs its host for. */
struct membership_events {
        /* The tree is open, so membership_start() may follow (0), or cannot be opened: -errno, and why. */
        void (*opened)(void *self, int status, const char *text);
        /* There is a session, whose token a guard needs to end it. */
        void (*session)(void *self, const char *token);
        /* The assignment was read: it says which shards to seek. */
        void (*assigned)(void *self);
        /* Adds handlers and stale shards to what our node says. */
        void (*describe)(void *self, struct member_doc *doc);
};

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
        /* Who we are, and whom to tell; set by the caller. */
        const char *name;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint32_t weight;
        uint32_t members_max;
        const struct membership_events *events;
        void *self; /* theirs */

        uint32_t shards_count; /* 0: not started */
        struct coord_events coord_events;
        struct coord_open open;
        struct coord *coord; /* NULL: not open */
        struct member member;
        struct leader leader;
        struct assigner assigner;
        struct assigner_work work;
        bool is_started; /* the three above are there */
        uv_timer_t timer;
        uint64_t session;
        bool was_lost; /* the last one expired, and no other followed yet */
        /* After a lost session no member is declared gone before this: it may have lost its own, too. */
        uint64_t calm_ms;

        struct coord_get get; /* of the assignment, watched: this host reads it here only */
        bool is_getting, must_get;
        struct assign_node node;      /* for the assigner */
        struct assignment assignment; /* as last read */
        bool is_standing_by;          /* it is from a newer Quiver */

        struct buffer doc;   /* what our node says */
        bool is_drained;     /* a person wants this host to have no shards */
        bool is_leaving;     /* the host stops */
        bool has_lost_store; /* it does not answer */

        void (*closed)(void *self); /* not NULL: it is closing */
};

#define NONCE_TEXT_SIZE (2 * STORE_NONCE_SIZE + 1)
void membership_nonce_text(const struct membership *m, char ret_text[NONCE_TEXT_SIZE]);

/* Before all else. */
void membership_init(struct membership *m, uv_loop_t *loop);
/* Opens the tree. */
void membership_open(struct membership *m, uv_loop_t *loop, const struct coord_options *options);
/* The store is open, so the number of shards is known: joins, stands for election, reads what is assigned. */
void membership_start(struct membership *m, uint32_t shards_count);

/* Something that our node tells of may have changed. */
void membership_report(struct membership *m);
/* The store answered, or did not. */
void membership_store_seen(struct membership *m, bool is_seen);
/* The desired state was read. */
void membership_desired(struct membership *m, const struct store_desired *items, size_t count);

/* Stopping: resigns and says so, for others to take over. */
void membership_leave(struct membership *m);
/* Ends the session; `closed` is called with `self` of the events when that is done.  Also if nothing was opened. */
void membership_close(struct membership *m, void (*closed)(void *self));
void membership_free(struct membership *m);

#endif
