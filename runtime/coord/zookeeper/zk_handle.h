/* zk_handle.h: one handle of the ZooKeeper client, and a thread of ours that makes, watches and closes it.
 *
 * The client has threads of its own.  Their messages become posts in the handle's queue; the loop is woken and collects
 * them.  Making a handle resolves names, closing one waits for the server: both happen on the handle's thread.  A
 * handle that has ended is never reused: the driver starts another one, and a late post belongs to its old handle.
 *
 * The client keeps its session alive by itself, so a loop that hangs would keep it for ever.  The handle prevents that:
 * without a pulse from the loop for the length of a session it closes the handle. */
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
        POST_FAILED,  /* no handle could be made: struct failed_post; POST_GONE follows after zk_handle_end() */
        POST_GONE,    /* the handle is closed; the last post */
};

/* The first member of every post. */
struct post {
        struct post *prev, *next;
        enum post_kind kind;
        void (*drop)(struct post *post); /* frees the post; NULL: free() is enough */
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
        const char *addresses; /* numeric, from an earlier handle, for when no name resolves; NULL: none */
        uint64_t session_ms;   /* wanted */
        const char *auth;      /* USER:PASSWORD for digest; NULL: none */
        const clientid_t *id;  /* a session to take over; NULL: a new one */
        /* Called on any thread when there is something to collect; not after zk_handle_leave(). */
        void (*ring)(void *self);
        void *self;
};

/* Copies everything.  Never fails: errors are posted. */
struct zk_handle *zk_handle_start(const struct zk_handle_options *options);

/* All posts since the last call, oldest first; NULL: none.  The caller frees each with post_free(). */
struct post *zk_handle_collect(struct zk_handle *handle);

/* The client's handle, locked so that it is not closed meanwhile; NULL (and nothing locked) if there is none.  Only for
 * calls that do not block. */
zhandle_t *zk_handle_lock(struct zk_handle *handle);
void zk_handle_unlock(struct zk_handle *handle);

/* The loop is alive. */
void zk_handle_pulse(struct zk_handle *handle);

/* Closes the handle, which ends the session; POST_GONE follows.  `lingers`: if it is not connected now, it is closed
 * when it is connected again or the session has expired, because an unclosed session keeps its nodes for one more
 * timeout. */
void zk_handle_end(struct zk_handle *handle, bool lingers);

/* Ends the handle at once if it has not ended, and drops the loop's reference: the thread cleans up alone, however long
 * that takes. */
void zk_handle_leave(struct zk_handle *handle);

/* The addresses found, numeric; NULL if none yet.  The caller frees it. */
char *zk_handle_addresses(struct zk_handle *handle);

/* For call.c: the client was given this post and will answer through zk_handle_post(), on any thread.  Posts without an
 * answer when the handle is closed are posted unchanged by the thread.  Call it with the handle locked. */
void zk_handle_expect(struct zk_handle *handle, struct post *post);
void zk_handle_post(struct zk_handle *handle, struct post *post);

/* A watcher function for the client, with the handle as its context; posts POST_CHANGED. */
void zk_handle_watcher(zhandle_t *zh, int type, int state, const char *path, void *context);

#endif
