/* remote.h: what the trees that a server keeps have in common, whichever server it is.
 *
 * Requests wait for a connection, an answer or their deadline; a heartbeat keeps the session and proves that it is
 * alive; one timer wakes for all of it.  A driver embeds struct remote first and adds, as hooks, how it speaks to its
 * server.  On the loop only. */
#ifndef QUIVER_COORD_REMOTE_H
#define QUIVER_COORD_REMOTE_H

#include <uv.h>

#include "coord/driver.h"

/* Where nobody says how long a session is to live without a sign of life. */
#define REMOTE_SESSION_DEFAULT_MS 10000u
#define REMOTE_BEATS              3u /* within a session's time */
/* How long an opening waits for errors that do not go away by themselves: a wrong password, too old a server. */
#define REMOTE_OPENING_MS 500u
/* What only the owner of a session knows, in hexadecimal digits. */
#define REMOTE_NONCE_DIGITS 32u

struct remote;

/* A "call" is what the driver sends for a request or as a heartbeat; request->driver points to it. */
struct remote_hooks {
        /* The call of a request, not sent yet. */
        void *(*make)(struct remote *remote, struct coord_request *request);
        /* Sends the request's call unless it is on its way.  What cannot be sent now stays as it is, until
         * remote_flush().  Finishes nothing; remote_refuse() is allowed. */
        void (*send)(struct remote *remote, struct coord_request *request);
        /* Nobody waits for that call any more: it is freed at once, or when it comes back. */
        void (*forget)(void *call);
        /* The heartbeat, sent; NULL: it cannot be sent now. */
        void *(*beat)(struct remote *remote);
        /* Does what is due, and returns when there is something next. */
        uint64_t (*tick)(struct remote *remote, uint64_t now_ms);
        /* The tree is closing and all its requests have ended: ends the connection, and calls remote_end() when it is
         * gone.  Called again whenever the timer fires. */
        void (*close)(struct remote *remote);
        /* Frees the rest of the driver's struct, and the struct. */
        void (*free)(struct remote *remote);
};

struct remote {
        struct coord coord; /* first */
        const struct remote_hooks *hooks;
        uv_timer_t timer;
        uint64_t timer_at_ms;       /* when it fires; UINT64_MAX: it is not set */
        struct coord_open *opening; /* not yet told */
        struct error refusal;       /* the server does not accept us: why; empty: it does */

        bool has_session;      /* the server gave us one; it is told when a heartbeat has proven it */
        void *beat;            /* the heartbeat under way; NULL: none */
        uint64_t beat_sent_ms; /* when the last one was sent */
        uint64_t next_beat_ms;
        uint64_t proof_ms; /* when the last one that was answered had been sent */

        bool is_closing;
        void (*closed)(void *self);
        void *closed_self;
};

/* --- opening and closing --- */

/* For a zeroed struct.  With a negative status in open->request the tree only closes again, which finishes it. */
void remote_init(struct remote *remote, const struct remote_hooks *hooks, uv_loop_t *loop, struct coord_open *open,
        const struct coord_driver *driver, const char *url);
/* Tells whoever waits for the opening that there is a tree. */
void remote_tell_opened(struct remote *remote);
/* The first half of a driver's close: nothing that is under way is waited for, and hooks->close() follows. */
void remote_close(struct remote *remote, void (*closed)(void *self), void *self);
/* The connection is gone: frees the tree, then tells whoever closed it or waits for its opening. */
void remote_end(struct remote *remote);

/* --- time --- */

/* The timer fires at that time or earlier.  0: soon, but not inside this call. */
void remote_wake_at(struct remote *remote, uint64_t at_ms);
/* Does what is due and sets the timer for what is next.  The timer calls it, and so may the driver. */
void remote_turn(struct remote *remote);

/* --- requests --- */

/* coord_driver.start */
void remote_start(struct coord *coord, struct coord_request *request);
/* Sends what waits. */
void remote_flush(struct remote *remote);
/* Takes the request's call away from it. */
void remote_forget(struct coord_request *request);
/* Ends the request with that error, later: done() is never called inside the starting call. */
void remote_refuse(struct remote *remote, struct coord_request *request, int status, const char *why);
/* The server does not accept us: logs it and refuses all requests until `refusal` is empty again. */
void remote_refuse_all(struct remote *remote, int status, const char *why);

/* --- the session --- */

/* Whether a heartbeat of this session was answered. */
bool remote_is_proven(const struct remote *remote);
/* Whether there was no proof for the whole of the session's time. */
bool remote_is_over(const struct remote *remote, uint64_t now_ms);
void remote_make_nonce(char ret_nonce[REMOTE_NONCE_DIGITS + 1]);
uint64_t remote_beat_every_ms(const struct remote *remote);
void remote_send_beat(struct remote *remote, uint64_t now_ms);
/* The next heartbeat is due now. */
void remote_beat_soon(struct remote *remote);
/* Ignores the answer to the heartbeat under way, if there is one. */
void remote_forget_beat(struct remote *remote);
/* Sends the heartbeat if it is due.  If the one before has no answer yet, the session is suspended instead.  Returns
 * when there is something next. */
uint64_t remote_beat_tick(struct remote *remote, uint64_t now_ms);
/* The heartbeat was answered within session `number`: tells what is new, and sends what waits.  `must_look`: the
 * owner is to read everything again, as it does in each new session.  False: the answer came too late to prove
 * anything. */
bool remote_prove(struct remote *remote, uint64_t number, bool must_look);
void remote_suspend(struct remote *remote);
/* The session is over, and the driver has put away what it had of it.  What was asked of it ends with it; what is
 * asked from now on, also by those who are told here, is for the next one. */
void remote_expired(struct remote *remote, const char *why);

/* --- replies --- */

/* Fills in the names of children: first how many there are at most, then each, then sorted.  Others can write to the
 * tree, too: what is no name is left out and logged. */
void remote_names_begin(struct coord_children *children, size_t count_max);
void remote_names_add(struct coord_children *children, struct span name);
void remote_names_end(struct coord_children *children);

#endif
