/* member.h: being a member of a group in the tree, and following who the others are.
 *
 * A recipe above coord.h, a machine of its own: no loop and no clock, only the tree's answers.  A member is an
 * ephemeral node GROUP/NAME with data; its name holds a nonce, so that no two members ever share one.  After a lost
 * session it joins again by itself.
 *
 * Following, it tells of the others, itself included: joined, changed, left, each exactly once and in order of what it
 * saw.  A node that was deleted and made again between two looks has left and joined: creation ids tell them apart. */
#ifndef QUIVER_COORD_MEMBER_H
#define QUIVER_COORD_MEMBER_H

#include <uthash.h>

#include "base/buffer.h"
#include "coord/coord.h"

struct member_events {
        void (*joined)(void *self, const char *name, uint64_t created, struct span data);
        void (*changed)(void *self, const char *name, uint64_t created, struct span data);
        void (*left)(void *self, const char *name);
        /* All that there are have been told of; false: that may no longer be so, a new look is under way. */
        void (*known)(void *self, bool is_known);
};

/* One of the others, as far as it is known. */
struct member_mate {
        UT_hash_handle hh;
        struct member *of;
        struct coord_get get;
        bool is_getting;
        bool is_told;    /* joined() was called for `created` */
        bool is_stale;   /* its data has to be read (again) */
        bool is_listed;  /* in the latest list */
        bool is_ignored; /* it cannot be read, or no session holds it */
        uint64_t created, version;
        char path[COORD_PATH_MAX];
};

struct member {
        struct coord *coord;
        const struct member_events *events;
        void *self;
        char group[COORD_PATH_MAX];
        char path[COORD_PATH_MAX]; /* our own node; "": only follows */
        uint64_t session;          /* 0: none that lives */

        struct buffer data;    /* wanted in the node */
        struct buffer sending; /* what the request under way points to */
        uint64_t data_edition; /* grows with each member_set() */
        uint64_t told_edition; /* … that the node has */
        bool is_wanted;        /* there should be a node */
        bool is_there;         /* there is, and it is this session's */
        bool is_watched;       /* … and we hear of it when somebody takes it away */
        bool is_busy;          /* a request about it is under way */
        uint64_t sent_edition;
        union {
                struct coord_request request;
                struct coord_get get;
                struct coord_create create;
                struct coord_set set;
                struct coord_delete delete;
        };

        bool is_following;
        bool is_listing;
        bool is_looking; /* watches may have been lost: read every one of them again */
        bool must_list;  /* the list may have changed since it was asked for */
        bool is_known;
        struct coord_children children;
        struct member_mate *mates;
        uint32_t getting;
};

/* `name` NULL: only follows.  Names and the group's path are copied. */
void member_init(struct member *m, struct coord *coord, const char *group, const char *name,
        const struct member_events *events, void *self);
/* After the tree was closed. */
void member_free(struct member *m);

/* Joins with this data, or changes it. */
void member_set(struct member *m, struct span data);
/* Leaves: the node goes. */
void member_leave(struct member *m);
/* The node is there, with the data last set. */
bool member_is_settled(const struct member *m);

/* Whether to tell of the others.  Stopping forgets them all, without a word. */
void member_follow(struct member *m, bool is_following);

/* To be handed on from the tree's events. */
void member_session(struct member *m, enum coord_state state, uint64_t session);
void member_changed(struct member *m, const char *path);
void member_look(struct member *m);
/* Tries again what failed; for a timer, while there is something unsettled. */
void member_retry(struct member *m);

#endif
