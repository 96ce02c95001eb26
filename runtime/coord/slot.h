/* slot.h: a small number that one process of an app has to itself, and the time up to which it is its own.
 *
 * A recipe above coord.h for unique ids (id/generator.h).  Who has number N has the ephemeral node slots/N, which says
 * who it is.  The node horizons/N stays: it holds a time and the nonce of who wrote it last.  Up to that time the
 * writer may give ids of slot N.  Every write names the version that it replaces, so that the times granted to two
 * processes never overlap: a new owner is granted what lies behind the recorded horizon and nothing before it.  That
 * holds whatever happens to sessions and clocks.  The ephemeral node only keeps two from trying for one number.
 *
 * A machine without I/O of its own, as queue.h.  One request is under way at most.  Free it after the tree is closed.
 */
#ifndef QUIVER_COORD_SLOT_H
#define QUIVER_COORD_SLOT_H

#include "coord/coord.h"

#define SLOT_ANY       UINT32_MAX
#define SLOT_NONCE_MAX 64u
#define SLOT_SAYS_MAX  256u
#define SLOT_PATH_MAX  24u
/* A number whose horizon lies further ahead than this is passed over for one that is free sooner. */
#define SLOT_SOON_MS 20u

struct slot_events {
        /* The number is ours, and ids of it from from_ms (inclusive) to until_ms (exclusive) are, unix time.  Told
         * again after each slot_extend(), and after a lost session, then perhaps with another number. */
        void (*granted)(void *self, uint32_t number, uint64_t from_ms, uint64_t until_ms);
        /* slot_release() is done: the number is another's to take. */
        void (*released)(void *self);
        /* -EBUSY: somebody has the number, or all of them; -EBADMSG: what stands in the tree cannot be read.  Whatever
         * it is: it is tried again after the next look, or slot_retry(). */
        void (*failed)(void *self, int status, const char *text);
        uint64_t (*wall_ms)(void *self); /* what time it is, unix milliseconds */
        void *self;
};

struct slot_options {
        const char *nonce; /* different for each struct slot of an app; letters and digits, at most SLOT_NONCE_MAX */
        uint32_t numbers;  /* below this one, at least 1 */
        uint32_t fixed;    /* the number that is wanted; SLOT_ANY: whichever is free */
        uint64_t ahead_ms; /* how far ahead of the clock the horizon is set */
        const char *says;  /* who we are, for people who look and for who wants the same number */
};

enum slot_step {
        SLOT_REST,
        SLOT_LIST,   /* which numbers are taken */
        SLOT_READ,   /* the horizon of the number that we try for */
        SLOT_CLAIM,  /* make slots/N */
        SLOT_VERIFY, /* is slots/N ours: the answer to the claim was lost, or it is somebody's */
        SLOT_WRITE,  /* the horizon */
        SLOT_DROP,   /* delete slots/N */
};

struct slot {
        struct slot_events events;
        struct coord *coord;
        char nonce[SLOT_NONCE_MAX + 1];
        char says[SLOT_SAYS_MAX];
        uint32_t numbers;
        uint32_t fixed;
        uint64_t ahead_ms;

        uint32_t number; /* that we have or try for; SLOT_ANY: none yet */
        uint32_t prefer; /* that we had in the last session; SLOT_ANY: none */
        char node[SLOT_PATH_MAX];
        char horizon[SLOT_PATH_MAX];
        char data[SLOT_NONCE_MAX + 64]; /* that is being written */
        uint64_t recorded_ms;           /* the horizon as it was read or written last */
        uint64_t from_ms;               /* ids of this time and later are ours */
        uint64_t until_ms;              /* that is being written, or was */
        uint64_t version;               /* of horizons/N */
        bool has_horizon;               /* it was there when it was read */
        bool is_ours;                   /* its nonce is ours */

        /* Numbers that were found taken or not free soon, in this search. */
        uint8_t *passed;
        bool is_second; /* round: one whose horizon lies ahead is better than none */
        bool found_later;

        uint64_t session; /* 0: none */
        enum slot_step step;
        bool wants;
        bool is_held; /* slots/N is ours in this session */
        bool is_extending;
        bool is_releasing;
        bool is_failed;
        bool is_busy;  /* a request is under way */
        bool is_stale; /* it belongs to a session that is over */
        union {
                struct coord_request request;
                struct coord_children children;
                struct coord_get get;
                struct coord_create create;
                struct coord_set set;
                struct coord_delete del;
        };
};

void slot_init(
        struct slot *slot, struct coord *coord, const struct slot_options *options, const struct slot_events *events);
/* To be called after the tree was closed. */
void slot_free(struct slot *slot);

/* Looks for a number and takes it; granted() follows. */
void slot_take(struct slot *slot);
/* Moves the horizon on to ahead_ms from now; granted() follows. */
void slot_extend(struct slot *slot);
/* Gives the number back; no id of until_ms or later was given.  True: released() follows; false: we had none, or do
 * not know yet: closing the tree gives it back. */
bool slot_release(struct slot *slot, uint64_t until_ms);
/* Tries again what failed. */
void slot_retry(struct slot *slot);

/* The owner of the tree passes the tree's events on to these. */
void slot_session(struct slot *slot, enum coord_state state, uint64_t session);
void slot_look(struct slot *slot);

#endif
