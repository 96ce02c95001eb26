/* member.h: membership in a group of the tree, and following the other members.
 *
 * A recipe above coord.h: a machine without a loop and without a clock, driven by the tree's answers.  A member is an
 * ephemeral node GROUP/NAME with data; the name contains a nonce, so that no two members ever share one.  After a lost
 * session it joins again by itself.
 *
 * While following, it reports every member, itself included: joined, changed, left, each exactly once and in the order
 * in which it saw them.  A node that was deleted and made again between two looks is reported as left and joined; its
 * creation id differs. */
#ifndef QUIVER_COORD_MEMBER_H
#define QUIVER_COORD_MEMBER_H

#include <uthash.h>

#include "base/buffer.h"
#include "coord/coord.h"

struct member_events {
        void (*joined)(void *self, const char *name, uint64_t created, struct span data);
        void (*changed)(void *self, const char *name, uint64_t created, struct span data);
        void (*left)(void *self, const char *name);
        /* True: every member has been reported.  False: some may be missing, and a new look is under way. */
        void (*known)(void *self, bool is_known);
};

/* Another member, or ourselves. */
struct member_mate {
        UT_hash_handle hh;
        struct member *of;
        struct coord_get get;
        bool is_getting;
        bool is_told;    /* joined() was called for `created` */
        bool is_stale;   /* its data must be read (again) */
        bool is_listed;  /* in the latest list of children */
        bool is_ignored; /* not a member: its node cannot be read, or no session holds it */
        uint64_t created, version;
        char path[COORD_PATH_MAX];
};

struct member {
        struct coord *coord;
        const struct member_events *events;
        void *self;
        char group[COORD_PATH_MAX];
        char path[COORD_PATH_MAX]; /* our own node; "": we only follow the others */
        uint64_t session;          /* 0: none is alive */

        struct buffer data;    /* the data that the node should have */
        struct buffer sending; /* the data of the request under way */
        uint64_t data_edition; /* grows with each member_set() */
        uint64_t told_edition; /* the edition of the data in the node */
        bool is_wanted;        /* we want to be a member */
        bool is_there;         /* the node exists and belongs to this session */
        bool is_watched;       /* a watch reports when somebody removes our node */
        bool is_busy;          /* a request about our node is under way */
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
        bool is_looking; /* watches may have been lost: reads every member again */
        bool must_list;  /* the list may have changed since it was requested */
        bool is_known;
        struct coord_children children;
        struct member_mate *mates;
        uint32_t getting;
};

/* `name` NULL: only follows the others.  Copies the name and the group's path. */
void member_init(struct member *m, struct coord *coord, const char *group, const char *name,
        const struct member_events *events, void *self);
/* Call after the tree was closed. */
void member_free(struct member *m);

/* Joins with this data, or changes the data. */
void member_set(struct member *m, struct span data);
/* Leaves the group: the node is deleted. */
void member_leave(struct member *m);
/* Whether the node exists with the data that was set last, or is gone if we left. */
bool member_is_settled(const struct member *m);

/* Starts or stops following the members.  Stopping forgets them all, and reports nothing. */
void member_follow(struct member *m, bool is_following);

/* The owner of the tree passes the tree's events on to these. */
void member_session(struct member *m, enum coord_state state, uint64_t session);
void member_changed(struct member *m, const char *path);
void member_look(struct member *m);
/* Repeats failed requests; call it from a timer while member_is_settled() is false. */
void member_retry(struct member *m);

#endif
