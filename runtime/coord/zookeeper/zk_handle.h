/* zk_handle.h: one handle of the ZooKeeper client, and a thread of ours that makes it, watches over it and closes it.
 *
 * The client has threads of its own.  What they have to say becomes a post in the handle's queue; the loop is woken and
 * collects them.  Making a handle resolves names, closing one waits for the server: both happen on the handle's thread.
 * A handle that has ended is never used again: whoever wants to go on starts another handle, and a post that comes late
 * comes with its own, old one.
 *
 * The client keeps its session alive by itself, so a loop that hangs would keep it for ever.  The handle sees to it
 * that it does not: without a pulse from the loop for the length of a session it closes the handle. */
#ifndef QUIVER_COORD_ZOOKEEPER_ZK_HANDLE_H
#define QUIVER_COORD_ZOOKEEPER_ZK_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/url.h"
#include "coord/zookeeper/client.h"

struct zk_handle;

enum post_kind {
        POST_SESSION, /* the client's view of the session has changed: struct session_post */
        POST_CHANGED, /* a watch has fired: struct changed_post */
        POST_ANSWER,  /* the operation has ended: struct zk_call, of call.h */
        POST_FAILED,  /* no handle could be made: struct failed_post; POST_GONE follows when the handle is ended */
        POST_GONE,    /* the handle is closed; the last post */
};

/* The first member of what is posted. */
struct post {
        struct post *prev, *next;
        enum post_kind kind;
        void (*drop)(struct post *post); /* frees it; NULL: one free() is enough */
};
void post_free(struct post *post);

struct session_post {
        struct post post;
        int state; /* ZOO_CONNECTED_STATE and so on; anything else is "not connected" */
        clientid_t id;
        uint64_t session_ms; /* as negotiated */
        char server[80];
};

struct changed_post {
        struct post post;
        char path[];
};

struct failed_post {
        struct post post;
        struct error error;
};

struct zk_handle_options {
        const struct url *url;
        const char *addresses; /* numeric, from an earlier handle, if no name resolves any more; NULL: none */
        uint64_t session_ms;   /* wanted */
        const char *auth;      /* USER:PASSWORD for digest; NULL: none */
        const clientid_t *id;  /* a session to take over; NULL: a new one */
        /* Rings, on any thread, when there is something to collect.  Not called any more after zk_handle_leave(). */
        void (*ring)(void *self);
        void *self;
};

/* Everything is copied.  Never fails: what goes wrong is posted. */
struct zk_handle *zk_handle_start(const struct zk_handle_options *options);

/* All posts since the last time, oldest first; NULL: none.  The caller frees each with post_free(). */
struct post *zk_handle_collect(struct zk_handle *handle);

/* The handle, locked so that it is not closed meanwhile; NULL (and nothing locked) if there is none.  Only for calls
 * that do not wait. */
zhandle_t *zk_handle_lock(struct zk_handle *handle);
void zk_handle_unlock(struct zk_handle *handle);

/* The loop is alive. */
void zk_handle_pulse(struct zk_handle *handle);

/* Closes the handle, which ends the session; POST_GONE follows.  `lingers`: if it is not connected now, only when it is
 * again or the session has expired, since a session that is not closed keeps its nodes for one more timeout. */
void zk_handle_end(struct zk_handle *handle, bool lingers);

/* Ends it at once if it has not ended, and forgets it: the handle cleans up alone, for as long as that takes. */
void zk_handle_leave(struct zk_handle *handle);

/* The addresses found, numeric; NULL if none yet.  The caller frees it. */
char *zk_handle_addresses(struct zk_handle *handle);

/* For call.c: the client was given this and will answer by zk_handle_post(), on any thread.  Or it will not: what is
 * left when a handle is closed the client forgets, and the handle posts it as it is.  Called while the handle is
 * locked. */
void zk_handle_expect(struct zk_handle *handle, struct post *post);
void zk_handle_post(struct zk_handle *handle, struct post *post);

/* A watcher function for the client, with the handle as its context: POST_CHANGED. */
void zk_handle_watcher(zhandle_t *zh, int type, int state, const char *path, void *context);

#endif
