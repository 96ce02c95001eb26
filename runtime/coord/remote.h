/* remote.h: what the drivers with a server share, whichever server it is.
 *
 * Requests wait for a connection, an answer or their deadline; a heartbeat keeps the session and proves that it is
 * alive; one timer serves all of it.  A driver embeds struct remote as its first member, and adds hooks that talk to
 * its server.  On the loop only. */
#ifndef QUIVER_COORD_REMOTE_H
#define QUIVER_COORD_REMOTE_H

#include <uv.h>

#include "coord/driver.h"

/* The session's timeout if none is configured. */
#define REMOTE_SESSION_DEFAULT_MS 10000u
#define REMOTE_BEATS              3u /* per session timeout */
/* How long an open waits for permanent errors: a wrong password, a server that is too old. */
#define REMOTE_OPENING_MS 500u
/* Hexadecimal digits of a secret that only the owner of a session knows. */
#define REMOTE_NONCE_DIGITS 32u

struct remote;

/* A "call" is what the driver sends for a request or as a heartbeat; request->driver points to it. */
struct remote_hooks {
        /* Makes the call of a request, without sending it. */
        void *(*make)(struct remote *remote, struct coord_request *request);
        /* Sends the request's call unless it is under way.  A call that cannot be sent now stays until remote_flush().
         * Finishes nothing; may call remote_refuse(). */
        void (*send)(struct remote *remote, struct coord_request *request);
        /* Nobody waits for the call any more: frees it at once, or when its answer comes. */
        void (*forget)(void *call);
        /* Sends a heartbeat and returns its call; NULL: it cannot be sent now. */
        void *(*beat)(struct remote *remote);
        /* Does what is due, and returns the next due time. */
        uint64_t (*tick)(struct remote *remote, uint64_t now_ms);
        /* The tree is closing and all its requests have ended: ends the connection, and calls remote_end() when it is
         * gone.  Called again whenever the timer fires. */
        void (*close)(struct remote *remote);
        /* Frees the rest of the driver's struct, and the struct. */
        void (*free)(struct remote *remote);
};

struct remote {
        struct coord coord; /* must be first */
        const struct remote_hooks *hooks;
        uv_timer_t timer;
        uint64_t timer_at_ms;       /* when the timer fires; UINT64_MAX: not set */
        struct coord_open *opening; /* the open request, until it is finished */
        struct error refusal;       /* why the server does not accept us; empty: it does */

        bool has_session;      /* the server gave us a session; it is reported once a heartbeat has proven it */
        void *beat;            /* the heartbeat under way; NULL: none */
        uint64_t beat_sent_ms; /* when the last heartbeat was sent */
        uint64_t next_beat_ms;
        uint64_t proof_ms; /* when the last heartbeat that was answered was sent */

        bool is_closing;
        void (*closed)(void *self);
        void *closed_self;
};

/* --- opening and closing --- */

/* For a zeroed struct.  With a negative status in open->request, the tree is closed again at once, which finishes the
 * request. */
void remote_init(struct remote *remote, const struct remote_hooks *hooks, uv_loop_t *loop, struct coord_open *open,
        const struct coord_driver *driver, const char *url);
/* Finishes the open request. */
void remote_tell_opened(struct remote *remote);
/* The first half of a driver's close: cancels all requests; hooks->close() follows. */
void remote_close(struct remote *remote, void (*closed)(void *self), void *self);
/* The connection is gone: frees the tree, then reports to the closer or finishes the open request. */
void remote_end(struct remote *remote);

/* --- time --- */

/* Makes the timer fire at that time or earlier.  0: soon, but not inside this call. */
void remote_wake_at(struct remote *remote, uint64_t at_ms);
/* Does what is due and sets the timer.  Called by the timer, and by the driver when it likes. */
void remote_turn(struct remote *remote);

/* --- requests --- */

/* Implements coord_driver.start. */
void remote_start(struct coord *coord, struct coord_request *request);
/* Sends all requests that wait. */
void remote_flush(struct remote *remote);
/* Detaches the request's call. */
void remote_forget(struct coord_request *request);
/* Finishes the request with that error later, because done() is never called inside the starting call. */
void remote_refuse(struct remote *remote, struct coord_request *request, int status, const char *why);
/* The server does not accept us: logs the reason and refuses all requests until `refusal` is empty again. */
void remote_refuse_all(struct remote *remote, int status, const char *why);

/* --- the session --- */

/* Whether a heartbeat of this session was answered. */
bool remote_is_proven(const struct remote *remote);
/* Whether no heartbeat was answered for the whole of the session's timeout. */
bool remote_is_over(const struct remote *remote, uint64_t now_ms);
void remote_make_nonce(char ret_nonce[REMOTE_NONCE_DIGITS + 1]);
uint64_t remote_beat_every_ms(const struct remote *remote);
void remote_send_beat(struct remote *remote, uint64_t now_ms);
/* Makes the next heartbeat due now. */
void remote_beat_soon(struct remote *remote);
/* Ignores the answer to the heartbeat under way, if there is one. */
void remote_forget_beat(struct remote *remote);
/* Sends the heartbeat if it is due; if the one before has no answer yet, suspends the session instead.  Returns the
 * next due time. */
uint64_t remote_beat_tick(struct remote *remote, uint64_t now_ms);
/* The heartbeat was answered within session `number`: reports changes and sends waiting requests.  `must_look`: the
 * owner must read everything again, as in each new session.  False: the answer came too late to prove anything. */
bool remote_prove(struct remote *remote, uint64_t number, bool must_look);
void remote_suspend(struct remote *remote);
/* The session is over, and the driver has dropped its own state of it.  Fails all requests under way; those started
 * from now on, even from inside the callbacks, are for the next session. */
void remote_expired(struct remote *remote, const char *why);

/* --- replies --- */

/* Fills in the names of children: first their maximum number, then each name, then sorts them.  Others can write to the
 * tree, too: invalid names are skipped and logged. */
void remote_names_begin(struct coord_children *children, size_t count_max);
void remote_names_add(struct coord_children *children, struct span name);
void remote_names_end(struct coord_children *children);

#endif
