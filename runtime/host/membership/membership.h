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

/* What membership tells its host. */
struct membership_events {
        /* The tree is open, so membership_start() may follow (0), or cannot be opened: -errno, and why. */
        void (*opened)(void *self, int status, const char *text);
        /* There is a new session; the guard needs its token to end it. */
        void (*session)(void *self, const char *token);
        /* The assignment was read: the host seeks the shards assigned to it. */
        void (*assigned)(void *self);
        /* Adds handlers and stale shards to the document of our node. */
        void (*describe)(void *self, struct member_doc *doc);
};

/* The node `assign` as last read. */
struct assign_node {
        bool is_current; /* no change was seen since */
        bool exists;
        uint64_t version; /* COORD_ANY_VERSION: the node cannot be read, and may be replaced */
        struct buffer text;
};

/* The leader's requests to the tree, one at a time. */
struct assigner_work {
        bool is_busy;
        bool has_moves;              /* the node exists */
        uint64_t again_ms;           /* no request before this time, because the last one failed */
        struct buffer assign, moves; /* the documents to write */
        struct coord_get get;        /* reads `moves` */
        struct coord_multi multi;
        struct coord_multi_op ops[3];
};

struct membership {
        /* Our identity and our callbacks; set by the caller. */
        const char *name;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint32_t weight;
        uint32_t members_max;
        bool evens_load; /* reports its load, and evens out load when it leads */
        const struct membership_events *events;
        void *self; /* passed to `events` */
        /* Another user of the tree, from membership_start() on, which gets the tree's events after the membership. */
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
        uint64_t retry_ms; /* when to repeat failed requests; 0: nothing failed */
        uint64_t session;
        bool was_lost;    /* the session expired, and no new one has begun */
        uint64_t calm_ms; /* until then no member is declared gone: it may be reconnecting as we did */

        struct coord_get get; /* reads the assignment */
        bool is_getting, must_get;
        struct assign_node node;      /* as the assigner needs it */
        struct assignment assignment; /* as last read */
        bool is_standing_by;          /* a newer Quiver wrote the assignment, so this host gives up its shards */

        struct load_summary load;            /* reported, or about to be */
        uint64_t load_ms;                    /* when it was last reported */
        uint64_t moves_made[ASSIGN_REASONS]; /* moves that we made as the leader, since this host started */

        struct buffer doc;   /* the document in our own node */
        bool is_drained;     /* a person has drained this host: it gets no shards */
        bool is_leaving;     /* the host stops */
        bool has_lost_store; /* the store does not answer */

        void (*closed)(void *self); /* not NULL: closing */
};

#define NONCE_TEXT_SIZE (2 * STORE_NONCE_SIZE + 1)
void membership_nonce_text(const struct membership *m, char ret_text[NONCE_TEXT_SIZE]);

/* Must be called first. */
void membership_init(struct membership *m, uv_loop_t *loop);
/* Opens the tree. */
void membership_open(struct membership *m, uv_loop_t *loop, const struct coord_options *options);
/* The store is open, so the number of shards is known: joins, stands for election, reads the assignment. */
void membership_start(struct membership *m, uint32_t shards_count);

/* Whether other hosts can see us as a member, as far as we know. */
static inline bool membership_is_in(const struct membership *m)
{
        return m->is_started && !m->was_lost;
}

/* The content of our node may have changed. */
void membership_report(struct membership *m);
/* The current load of this host's shards.  Reported if it differs much from the last report, and not too often. */
void membership_load(struct membership *m, const struct load_summary *load, uint64_t now_ms);
/* Whether to report load, and to even it out when leading. */
void membership_even_load(struct membership *m, bool evens_load);
/* The store answered, or did not. */
void membership_store_seen(struct membership *m, bool is_seen);
/* Changes how many members may own shards; 0: all. */
void membership_limit(struct membership *m, uint32_t members_max);
/* The desired state was read. */
void membership_desired(struct membership *m, const struct store_desired *items, size_t count);

/* The host stops: resigns and announces it, so that others take over. */
void membership_leave(struct membership *m);
/* Ends the session, even if nothing was opened; `closed` is then called with `self` of the events. */
void membership_close(struct membership *m, void (*closed)(void *self));
void membership_free(struct membership *m);

#endif
