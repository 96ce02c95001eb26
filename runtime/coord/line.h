/* line.h: a line of processes, in order of arrival: whoever is at the front leads, or holds the lock.
 *
 * The recipe under lock.h and `quiver elect`: an ephemeral sequential node each; who has the lowest number is at the
 * front; everybody else watches the one before, so that an end wakes one process and not all.
 *
 * A machine without I/O of its own and without a clock: it starts requests on the tree, and whoever owns the tree
 * passes the tree's events on to it.  One request is under way at most.  Free it after the tree is closed. */
#ifndef QUIVER_COORD_LINE_H
#define QUIVER_COORD_LINE_H

#include "coord/coord.h"

/* On the loop, never inside a call of ours other than line_session/changed/look. */
struct line_events {
        /* We are at the front.  `token` grows with every holder: others can refuse what comes with an older one. */
        void (*front)(void *self, uint64_t token);
        /* We are no longer, and did not leave: the session is gone, or the node was removed.  A new place follows. */
        void (*lost)(void *self);
        /* Somebody is before us. */
        void (*behind)(void *self);
        /* line_leave() is done: our node is gone. */
        void (*left)(void *self);
        /* It cannot go on; tried again after the next look(). */
        void (*failed)(void *self, int status, const char *text);
        void *self;
};

enum line_step {
        LINE_REST,   /* nothing to do until something happens */
        LINE_CREATE, /* take a place */
        LINE_FIND,   /* have we got one?  Nothing is assumed: an answer may be lost, or late */
        LINE_VERIFY, /* is it this session's? */
        LINE_LOOK,   /* who is before us? */
        LINE_WATCH,  /* be told when that one goes, or our own */
        LINE_CLEAR,  /* remove a place before us that no session holds: it would never go */
        LINE_REMOVE, /* give the place up */
        LINE_TIDY,   /* remove the line's own node, if nobody else is in it */
};

#define LINE_ID_MAX 64u

struct line {
        struct line_events events;
        struct coord *coord;
        char path[COORD_PATH_MAX];    /* of the line */
        char ticket[COORD_PATH_MAX];  /* path/ID-: what our nodes' names begin with */
        char own[COORD_PATH_MAX];     /* our node; "": none */
        char watched[COORD_PATH_MAX]; /* what we are told about */
        uint64_t token;               /* creation id of our node */
        uint64_t session;             /* 0: none */
        enum line_step step;
        bool wants;      /* to be in the line */
        bool is_leaving; /* left() is to be told */
        bool is_front;
        bool is_busy;       /* a request is under way … */
        bool is_stale;      /* … of a session that is over */
        bool has_news;      /* something happened meanwhile */
        bool is_failed;     /* until the next look */
        bool removes_empty; /* a line that nobody stands in leaves no node; whoever comes next makes it again */
        bool is_untidy;     /* we may have made it */
        union {
                struct coord_request request;
                struct coord_create create;
                struct coord_get get;
                struct coord_children children;
                struct coord_delete del;
        };
};

/* `path`: of the line; `id`: a nonce of ours, at most LINE_ID_MAX bytes. */
void line_init(
        struct line *line, struct coord *coord, const char *path, const char *id, const struct line_events *events);
/* Takes a place, and takes it again whenever it was lost. */
void line_enter(struct line *line);
/* Gives it up.  Not at the front from now on.  True: left() follows; false: we had no place. */
bool line_leave(struct line *line);

/* The tree's events. */
void line_session(struct line *line, enum coord_state state, uint64_t session);
void line_changed(struct line *line, const char *path);
void line_look(struct line *line);

#endif
