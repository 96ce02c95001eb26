/* queue.h: a queue of processes, in order of arrival: whoever is at the front leads, or holds the lock.
 *
 * The recipe under lock.h and `quiver elect`: an ephemeral sequential node each; who has the lowest number is at the
 * front; everybody else watches the one before, so that an end wakes one process and not all.
 *
 * Several may be at the front at once: a place has a limit, which its name says (ID-NUMBER: 1, ID.N-NUMBER: n,
 * ID.s-NUMBER: none), and is at the front if fewer places are before it than the smallest limit of those and its own.
 * So 1 is alone, n are a semaphore, places without a limit share it, and nobody overtakes whoever must be alone.
 *
 * A machine without I/O of its own and without a clock: it starts requests on the tree, and whoever owns the tree
 * passes the tree's events on to it.  One request is under way at most.  Free it after the tree is closed. */
#ifndef QUIVER_COORD_QUEUE_H
#define QUIVER_COORD_QUEUE_H

#include "coord/coord.h"

/* On the loop, never inside a call of ours other than queue_session/changed/look. */
struct queue_events {
        /* We are at the front.  Each holder gets a larger `token`, so that others can refuse a request with an older
         * one. */
        void (*front)(void *self, uint64_t token);
        /* We are no longer at the front and did not leave: the session is gone, or our node was removed.  We take a new
         * place by ourselves. */
        void (*lost)(void *self);
        /* Another process is before us. */
        void (*behind)(void *self);
        /* At the front, and somebody has asked us to leave (queue_put_request()).  It is up to us. */
        void (*asked)(void *self);
        /* queue_leave() is done, or the queue gives_up: our node is gone, or was not made. */
        void (*left)(void *self);
        /* A request failed; it is tried again after the next look(). */
        void (*failed)(void *self, int status, const char *text);
        void *self;
};

enum queue_step {
        QUEUE_REST,   /* nothing to do until something happens */
        QUEUE_CREATE, /* take a place */
        QUEUE_FIND,   /* look whether we have one: the answer to the create may have been lost, or come late */
        QUEUE_VERIFY, /* check that the node belongs to this session */
        QUEUE_PEEK,   /* we would not be at the front: look whether a session holds the place before ours */
        QUEUE_LOOK,   /* look who is before us */
        QUEUE_WATCH,  /* watch the node before us, and our own */
        QUEUE_CLEAR,  /* delete a node before us that no session holds: it would never be deleted otherwise */
        QUEUE_REMOVE, /* delete our node */
        QUEUE_TIDY,   /* delete the queue's own node, if nobody else is in it */
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
        char ticket[COORD_PATH_MAX];  /* path/ID-: what our nodes' names begin with */
        char own[COORD_PATH_MAX];     /* our node; "": none */
        char watched[COORD_PATH_MAX]; /* the path that we watch: a place, or the whole queue */
        uint32_t limit;               /* of our place */
        char says[QUEUE_SAYS_MAX]; /* set after queue_init(): what our node says of us, for people who look; "": nothing
                                    */
        uint64_t token;            /* creation id of our node */
        uint64_t session;          /* 0: none */
        enum queue_step step;
        bool wants;      /* we want to be in the queue */
        bool is_leaving; /* left() is to be told */
        bool is_front;
        bool is_busy;       /* a request is under way */
        bool is_stale;      /* the request under way belongs to a session that is over */
        bool has_news;      /* something changed while the request was under way */
        bool is_failed;     /* a request failed; nothing is tried until the next look */
        bool gives_up;      /* set before queue_enter(): leaves if it would have to wait */
        bool is_unsure;     /* a node of ours that we do not know of may be there: a create got no answer */
        bool has_others;    /* somebody else was in the queue when we last looked */
        bool removes_empty; /* the queue's node is deleted when the last one leaves; whoever comes next makes it again
                             */
        bool is_untidy;     /* we may have made the queue's node, so it has to be deleted */
        union {
                struct coord_request request;
                struct coord_create create;
                struct coord_get get;
                struct coord_children children;
                struct coord_delete del;
        };
};

/* `path` is that of the queue; `id` is a nonce of ours of at most QUEUE_ID_MAX bytes. */
void queue_init(
        struct queue *queue, struct coord *coord, const char *path, const char *id, const struct queue_events *events);
/* The limit of our place, 1 if it was not called: QUEUE_NO_LIMIT, or 1 to QUEUE_LIMIT_MAX.  Not while we are in it. */
void queue_set_limit(struct queue *queue, uint32_t limit);
/* Enters the queue, and enters it again whenever the place was lost. */
void queue_enter(struct queue *queue);
/* Leaves the queue; from now on we are not at the front.  True: left() follows; false: we had no place. */
bool queue_leave(struct queue *queue);

/* No request is under way and none is to follow: the memory may be freed, but not from an event. */
bool queue_is_idle(const struct queue *queue);

/* What a process at the front is asked with to leave: its node is set to this.  `says` is what the node says. */
void queue_put_request(char ret_text[QUEUE_SAYS_MAX], struct span says);

/* What the name of a place says: its number as text of ten digits, NULL if it is no place; its limit. */
const char *queue_number_of(const char *name);
uint32_t queue_limit_of(const char *name);
/* Whether a place is at the front that has so many before it, the smallest of their limits being `smallest`. */
bool queue_is_in_front(uint32_t before, uint32_t smallest, uint32_t limit);
uint32_t queue_smaller_limit(uint32_t a, uint32_t b);

/* The owner of the tree passes the tree's events on to these. */
void queue_session(struct queue *queue, enum coord_state state, uint64_t session);
void queue_changed(struct queue *queue, const char *path);
void queue_look(struct queue *queue);

#endif
