/* membership.h: a host as a member of its app: its own node, the shards assigned to it, and the leader's work.
 *
 * Connects the coordination tree (coord.h) with the recipes (member.h, leader.h) and the leader's machine (assigner.h).
 * The assignment in the tree decides which shards a host tries to acquire; only the lease in the store decides which
 * shards it may work on.  So owners continue to work while the coordination service is away.
 *
 * In the tree, under the app's root:
 *
 *         members/NAME.NONCE        ephemeral; member_doc.h
 *         election/NONCE-SEQUENCE   ephemeral; the lowest sequence leads
 *         assign                    which member should own which shard, and under which epoch; assign_doc.h
 *         moves                     the latest changes of the assignment, with reasons */
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

/* The leader's requests to the tree, one at a time. */
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
        bool evens_load; /* tells its load, and as the leader evens it out */
        const struct membership_events *events;
        void *self; /* theirs */
        /* Who else uses the tree, from membership_start() on, and is told of its events after the membership. */
        struct coord_events others;

        uint32_t shards_count; /* 0: not started */
        struct coord_events coord_events;
        struct coord_open open;
        struct coord *coord; /* NULL: not open */
        struct member member;
        struct leader leader;
        struct assigner assigner;
        struct assigner_work work;
        bool is_started; /* member, leader and assigner are initialised */
        uv_timer_t timer;
        uint64_t retry_ms; /* when to try again what failed; 0: all is settled */
        uint64_t session;
        bool was_lost;    /* the session expired, and no new one has begun */
        uint64_t calm_ms; /* until then no member is declared gone: it may be reconnecting as we did */

        struct coord_get get; /* reads the assignment */
        bool is_getting, must_get;
        struct assign_node node;      /* for the assigner */
        struct assignment assignment; /* as last read */
        bool is_standing_by;          /* a newer Quiver wrote the assignment, so this host gives up its shards */

        struct load_summary load;            /* as told, or to be told */
        uint64_t load_ms;                    /* when it was told */
        uint64_t moves_made[ASSIGN_REASONS]; /* as the leader, since this host started */

        struct buffer doc;   /* the document in our own node */
        bool is_drained;     /* a person has drained this host: it gets no shards */
        bool is_leaving;     /* the host stops */
        bool has_lost_store; /* the store does not answer */

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

/* Others know of this host, as far as it knows itself. */
static inline bool membership_is_in(const struct membership *m)
{
        return m->is_started && !m->was_lost;
}

/* Something that our node tells of may have changed. */
void membership_report(struct membership *m);
/* How busy the shards of this host are now.  Told if it differs much from what was told, and not too often. */
void membership_load(struct membership *m, const struct load_summary *load, uint64_t now_ms);
/* Whether to tell the load, and to even it out. */
void membership_even_load(struct membership *m, bool evens_load);
/* The store answered, or did not. */
void membership_store_seen(struct membership *m, bool is_seen);
/* Another number of members may own shards from now on; 0: all. */
void membership_limit(struct membership *m, uint32_t members_max);
/* The desired state was read. */
void membership_desired(struct membership *m, const struct store_desired *items, size_t count);

/* Stopping: resigns and says so, for others to take over. */
void membership_leave(struct membership *m);
/* Ends the session; `closed` is called with `self` of the events when that is done.  Also if nothing was opened. */
void membership_close(struct membership *m, void (*closed)(void *self));
void membership_free(struct membership *m);

#endif
