/* queue.h: a queue of processes, in order of arrival: the process at the front leads, or holds the lock.
 *
 * The recipe under lock.h and leader.h: each process has an ephemeral sequential node; the lowest number is at the
 * front; every other process watches the node before it, so that an end wakes one process and not all.
 *
 * Several processes may be at the front at once: a place has a limit, which is part of its name (ID-NUMBER: 1,
 * ID.N-NUMBER: n, ID.s-NUMBER: none), and is at the front if the number of places before it is less than the smallest
 * limit among them and its own.  So limit 1 is exclusive, limit n is a semaphore, places without a limit share, and
 * nobody overtakes an exclusive place.
 *
 * A machine without I/O of its own and without a clock: it starts requests on the tree, and the owner of the tree
 * passes the tree's events on to it.  At most one request is under way.  Free it after the tree is closed. */
#ifndef QUIVER_COORD_QUEUE_H
#define QUIVER_COORD_QUEUE_H

#include "coord/coord.h"

/* Called on the loop, and from no function of this file other than queue_session/changed/look. */
struct queue_events {
        /* We are at the front.  Each holder gets a larger `token`, so that others can refuse a request with an older
         * one. */
        void (*front)(void *self, uint64_t token);
        /* We are no longer at the front and did not leave: the session is gone, or our node was removed.  We take a new
         * place by ourselves. */
        void (*lost)(void *self);
        /* Another process is before us. */
        void (*behind)(void *self);
        /* We are at the front, and somebody asks us to leave (queue_put_request()).  We need not. */
        void (*asked)(void *self);
        /* queue_leave() is done, or a queue with gives_up would have to wait: our node is gone, or was not made. */
        void (*left)(void *self);
        /* A request failed.  It is repeated after the next look(). */
        void (*failed)(void *self, int status, const char *text);
        void *self;
};

enum queue_step {
        QUEUE_REST,   /* nothing to do until something happens */
        QUEUE_CREATE, /* take a place */
        QUEUE_FIND,   /* find out whether we have a place: the answer to the create was lost, or came late */
        QUEUE_VERIFY, /* check that the node belongs to this session */
        QUEUE_PEEK,   /* we would not be at the front: check whether a session holds the place before ours */
        QUEUE_LOOK,   /* list the places before ours */
        QUEUE_WATCH,  /* watch the node before us, and our own */
        QUEUE_CLEAR,  /* delete a place before ours that no session holds, because it would never go away */
        QUEUE_REMOVE, /* delete our node */
        QUEUE_TIDY,   /* delete the queue's own node if nobody else is in it */
};

#define QUEUE_ID_MAX    64u
#define QUEUE_NO_LIMIT  0u
#define QUEUE_LIMIT_MAX 1000u

#define QUEUE_SAYS_MAX 512

struct queue {
        struct queue_events events;
        struct coord *coord;
        char path[COORD_PATH_MAX]; /* of the queue */
        char id[QUEUE_ID_MAX + 1];
        char ticket[COORD_PATH_MAX];  /* path/ID-: the prefix of our nodes' paths */
        char own[COORD_PATH_MAX];     /* our node; "": none */
        char watched[COORD_PATH_MAX]; /* the path that we watch: a place, or the whole queue */
        uint32_t limit;               /* of our place */
        char says[QUEUE_SAYS_MAX];    /* set after queue_init(): the text about us in our node, for people; "": none */
        uint64_t token;               /* creation id of our node */
        uint64_t session;             /* 0: none */
        enum queue_step step;
        bool wants;      /* we want to be in the queue */
        bool is_leaving; /* left() must be called */
        bool is_front;
        bool is_busy;       /* a request is under way */
        bool is_stale;      /* the request under way belongs to a session that is over */
        bool has_news;      /* something changed while the request was under way */
        bool is_failed;     /* a request failed; nothing is repeated until the next look */
        bool gives_up;      /* set before queue_enter(): leave if we would have to wait */
        bool is_unsure;     /* a node of ours may exist that we do not know, because a create got no answer */
        bool has_others;    /* somebody else was in the queue at the last look */
        bool removes_empty; /* delete the queue's node when the last place goes; the next process makes it again */
        bool is_untidy;     /* we may have made the queue's node, so we must delete it */
        union {
                struct coord_request request;
                struct coord_create create;
                struct coord_get get;
                struct coord_children children;
                struct coord_delete del;
        };
};

/* `path` is the queue's; `id` is a nonce of ours of at most QUEUE_ID_MAX bytes. */
void queue_init(
        struct queue *queue, struct coord *coord, const char *path, const char *id, const struct queue_events *events);
/* Sets the limit of our place (default 1): QUEUE_NO_LIMIT, or 1 to QUEUE_LIMIT_MAX.  Not allowed while we are in the
 * queue. */
void queue_set_limit(struct queue *queue, uint32_t limit);
/* Enters the queue, and again whenever the place is lost. */
void queue_enter(struct queue *queue);
/* Leaves the queue; from now on we are not at the front.  True: left() follows; false: we had no place. */
bool queue_leave(struct queue *queue);

/* No request is under way or will follow: the memory may be freed, but not from an event. */
bool queue_is_idle(const struct queue *queue);

/* The data to set in the node of a process at the front to ask it to leave.  `says` is the node's current text. */
void queue_put_request(char ret_text[QUEUE_SAYS_MAX], struct span says);

/* Parses the name of a place: its number as text of ten digits, NULL if it is not a place; its limit. */
const char *queue_number_of(const char *name);
uint32_t queue_limit_of(const char *name);
/* Whether a place with this many places before it, whose smallest limit is `smallest`, is at the front. */
bool queue_is_in_front(uint32_t before, uint32_t smallest, uint32_t limit);
uint32_t queue_smaller_limit(uint32_t a, uint32_t b);

/* The owner of the tree passes the tree's events on to these. */
void queue_session(struct queue *queue, enum coord_state state, uint64_t session);
void queue_changed(struct queue *queue, const char *path);
void queue_look(struct queue *queue);

#endif
