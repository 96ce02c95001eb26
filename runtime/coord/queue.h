/* queue.h: a queue of processes, in order of arrival: whoever is at the front leads, or holds the lock.
 *
 * The recipe under lock.h and `quiver elect`: an ephemeral sequential node each; who has the lowest number is at the
 * front; everybody else watches the one before, so that an end wakes one process and not all.
 *
 * A machine without I/O of its own and without a clock: it starts requests on the tree, and whoever owns the tree
 * passes the tree's events on to it.  One request is under way at most.  Free it after the tree is closed. */
#ifndef QUIVER_COORD_QUEUE_H
#define QUIVER_COORD_QUEUE_H

#include "coord/coord.h"

/* On the loop, never inside a call of ours other than queue_session/changed/look. */
struct queue_events {
        /* We are at the front.  `token` grows with every holder: others can refuse what comes with an older one. */
        void (*front)(void *self, uint64_t token);
        /* We are no longer, and did not leave: the session is gone, or the node was removed.  A new place follows. */
        void (*lost)(void *self);
        /* Somebody is before us. */
        void (*behind)(void *self);
        /* queue_leave() is done: our node is gone. */
        void (*left)(void *self);
        /* It cannot go on; tried again after the next look(). */
        void (*failed)(void *self, int status, const char *text);
        void *self;
};

enum queue_step {
        QUEUE_REST,   /* nothing to do until something happens */
        QUEUE_CREATE, /* take a place */
        QUEUE_FIND,   /* have we got one?  Nothing is assumed: an answer may be lost, or late */
        QUEUE_VERIFY, /* is it this session's? */
        QUEUE_LOOK,   /* who is before us? */
        QUEUE_WATCH,  /* be told when that one goes, or our own */
        LINE_CLEAR,   /* remove a place before us that no session holds: it would never go */
        QUEUE_REMOVE, /* give the place up */
        LINE_TIDY,    /* remove the line's own node, if nobody else is in it */
};

#define QUEUE_ID_MAX 64u

struct queue {
        struct queue_events events;
        struct coord *coord;
        char path[COORD_PATH_MAX];    /* of the queue */
        char ticket[COORD_PATH_MAX];  /* path/ID-: what our nodes' names begin with */
        char own[COORD_PATH_MAX];     /* our node; "": none */
        char watched[COORD_PATH_MAX]; /* what we are told about */
        uint64_t token;               /* creation id of our node */
        uint64_t session;             /* 0: none */
        enum queue_step step;
        bool wants;      /* to be in the queue */
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

/* `path`: of the queue; `id`: a nonce of ours, at most QUEUE_ID_MAX bytes. */
void queue_init(
        struct queue *queue, struct coord *coord, const char *path, const char *id, const struct queue_events *events);
/* Takes a place, and takes it again whenever it was lost. */
void queue_enter(struct queue *queue);
/* Gives it up.  Not at the front from now on.  True: left() follows; false: we had no place. */
bool queue_leave(struct queue *queue);

/* The tree's events. */
void queue_session(struct queue *queue, enum coord_state state, uint64_t session);
void queue_changed(struct queue *queue, const char *path);
void queue_look(struct queue *queue);

#endif
