/* slot.h: a small number that one process of an app owns, and the time up to which it owns it.
 *
 * A recipe above coord.h for unique ids (id/generator.h).  The owner of number N has the ephemeral node slots/N, which
 * names the owner.  The node horizons/N is permanent: it holds a time and the nonce of its last writer.  Up to that
 * time the writer may give ids of slot N.  Every write checks the version that it replaces, so the times granted to
 * two processes never overlap: a new owner is granted only time after the recorded horizon.  This holds whatever
 * happens to sessions and clocks.  The ephemeral node only keeps two processes from trying for one number.
 *
 * A machine without I/O of its own, like queue.h.  At most one request is under way.  Free it after the tree is
 * closed. */
#ifndef QUIVER_COORD_SLOT_H
#define QUIVER_COORD_SLOT_H

#include "coord/coord.h"

#define SLOT_ANY       UINT32_MAX
#define SLOT_NONCE_MAX 64u
#define SLOT_SAYS_MAX  256u
#define SLOT_PATH_MAX  24u
/* A number whose horizon is further ahead than this is skipped in favour of one that is free sooner. */
#define SLOT_SOON_MS 20u

struct slot_events {
        /* We own the number, and its ids from from_ms (inclusive) to until_ms (exclusive), in unix time.  Called again
         * after each slot_extend(), and after a lost session, then perhaps with another number. */
        void (*granted)(void *self, uint32_t number, uint64_t from_ms, uint64_t until_ms);
        /* slot_release() is done: another process may take the number. */
        void (*released)(void *self);
        /* -EBUSY: the number is taken, or all numbers are; -EBADMSG: a node in the tree cannot be parsed.  Any failed
         * request is repeated after the next look, or by slot_retry(). */
        void (*failed)(void *self, int status, const char *text);
        uint64_t (*wall_ms)(void *self); /* the wall clock, in unix milliseconds */
        void *self;
};

struct slot_options {
        const char *nonce; /* unique to each struct slot of an app; letters and digits, at most SLOT_NONCE_MAX */
        uint32_t numbers;  /* numbers are below this; at least 1 */
        uint32_t fixed;    /* the wanted number; SLOT_ANY: any free one */
        uint64_t ahead_ms; /* how far ahead of the clock the horizon is set */
        const char *says;  /* who we are, for people and for processes that want the same number */
};

enum slot_step {
        SLOT_REST,
        SLOT_LIST,   /* list the taken numbers */
        SLOT_READ,   /* read the horizon of the number that we try for */
        SLOT_CLAIM,  /* make slots/N */
        SLOT_VERIFY, /* check whether slots/N is ours: the answer to the claim was lost, or another process has it */
        SLOT_WRITE,  /* write the horizon */
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

        uint32_t number; /* the number that we own or try for; SLOT_ANY: none yet */
        uint32_t prefer; /* our number in the last session; SLOT_ANY: none */
        char node[SLOT_PATH_MAX];
        char horizon[SLOT_PATH_MAX];
        char data[SLOT_NONCE_MAX + 64]; /* the value being written */
        uint64_t recorded_ms;           /* the horizon last read or written */
        uint64_t from_ms;               /* start of our ids' time */
        uint64_t until_ms;              /* the horizon being written, or last written */
        uint64_t version;               /* of horizons/N */
        bool has_horizon;               /* horizons/N existed when it was read */
        bool is_ours;                   /* the horizon's nonce is ours */

        /* Numbers that were found taken or not free soon, in this search. */
        uint8_t *passed;
        bool is_second; /* second round: a number whose horizon is ahead is accepted, too */
        bool found_later;

        uint64_t session; /* 0: none */
        enum slot_step step;
        bool wants;
        bool is_held; /* slots/N is ours in this session */
        bool is_extending;
        bool is_releasing;
        bool is_failed;
        bool is_busy;  /* a request is under way */
        bool is_stale; /* that request belongs to a session that is over */
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
/* Call after the tree was closed. */
void slot_free(struct slot *slot);

/* Looks for a number and takes it; granted() follows. */
void slot_take(struct slot *slot);
/* Moves the horizon to ahead_ms from now; granted() follows. */
void slot_extend(struct slot *slot);
/* Gives the number back; no id of until_ms or later was given.  True: released() follows; false: we own none, or do not
 * know yet: then closing the tree gives it back. */
bool slot_release(struct slot *slot, uint64_t until_ms);
/* Repeats a failed request. */
void slot_retry(struct slot *slot);

/* The owner of the tree passes the tree's events on to these. */
void slot_session(struct slot *slot, enum coord_state state, uint64_t session);
void slot_look(struct slot *slot);

#endif
