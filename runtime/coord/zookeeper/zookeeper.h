/* zookeeper.h: the coordination tree in ZooKeeper.  Included by this folder only.
 *
 *         open.c      the driver: opening and closing a tree, its bell and its timer
 *         session.c   the session: heartbeat, suspended, expired, the next link
 *         request.c   requests as operations, step by step
 *         multi.c     those of several operations
 *         end_session.c      ending the session of a host that is gone
 *         call.c      one operation on its way; zk_handle.c: the client's handle
 *
 * Nodes stand under /ROOT/APP, where ROOT comes from the URL.  The client's own chroot is not used: it must exist
 * before anything else, and we make it as needed. */
#ifndef QUIVER_COORD_ZOOKEEPER_ZOOKEEPER_H
#define QUIVER_COORD_ZOOKEEPER_ZOOKEEPER_H

#include <uv.h>

#include "coord/zookeeper/call.h"

/* A link in use, or one that is ending: its session may have to be closed yet. */
struct zk_link {
        struct zk_link *next;
        struct zk_handle *handle;
        bool is_gone;
};

struct zk {
        struct coord coord; /* first */
        struct url url;
        char *root; /* "/quiver/demo" */
        char *auth; /* USER:PASSWORD, or NULL */
        const struct ACL_vector *acl;
        uint64_t wanted_ms; /* of a session */
        uv_async_t bell;
        uv_timer_t timer;
        uint64_t timer_at_ms;

        struct zk_link *links;
        struct zk_link *current; /* one of them; NULL: none, until start_at_ms */
        uint64_t start_at_ms;
        uint64_t started_ms;
        char *addresses; /* of the last link that had any; NULL: none yet */

        clientid_t id;        /* of the session; client_id 0: none */
        bool is_connected;    /* the client says so: what is sent now goes out */
        bool is_proven;       /* a heartbeat of this session was answered */
        bool has_root;        /* the app's root was made in this session */
        struct zk_call *beat; /* the heartbeat under way */
        uint64_t beat_sent_ms;
        uint64_t next_beat_ms;
        uint64_t proof_ms;    /* when the last one that was answered had been sent */
        struct error refusal; /* the server refused our authentication: why; empty: it did not */

        struct coord_open *opening; /* not yet told */
        bool is_closing;
        uint64_t close_by_ms;
        void (*closed)(void *self);
        void *closed_self;
};

/* Where nobody says how long a session is to live without a sign of life. */
#define SESSION_DEFAULT_MS 10000u

/* --- open.c --- */

/* Have the bell handler, or the timer, run soon; the latter not after `at_ms`. */
void zk_ring(struct zk *zk);
void zk_wake_at(struct zk *zk, uint64_t at_ms);
/* The options' URL and USER:PASSWORD, for opening and ending.  The caller frees both. */
int zk_read_options(const struct coord_options *options, struct url *ret_url, char **ret_auth, struct error *error);

/* --- session.c --- */

/* What is due.  Returns when there is something next. */
uint64_t zk_session_tick(struct zk *zk, uint64_t now_ms);
/* Takes the post. */
void zk_session_take(struct zk *zk, struct zk_link *from, struct post *post);
/* Ends the current link, if there is one; `lingers` as zk_handle_end(). */
void zk_session_end(struct zk *zk, bool lingers);

/* --- request.c --- */

void zk_request_start(struct coord *coord, struct coord_request *request);
/* Sends what waits. */
void zk_request_flush(struct zk *zk);
/* The request does not wait for its call any more, which is freed when it comes back. */
void zk_request_forget(struct coord_request *request);
/* An answer to a call that still has its request. */
void zk_request_answered(struct zk *zk, struct zk_call *call);
/* Finishes those that were refused before they were sent. */
void zk_request_finish_refused(struct zk *zk);
/* All of them, later. */
void zk_request_refuse_all(struct zk *zk, int status, const char *why);
/* After a STEP_PARENT was answered: the next node to make of the first `path_size` bytes.  False when all are made, or
 * it does not go on; the answer tells which. */
bool zk_parent_next(struct zk_call *call, size_t path_size);
int zk_errno(int rc);
struct coord_stat zk_stat(const struct Stat *stat);
/* The version as ZooKeeper counts. */
int32_t zk_version(uint64_t version);

/* --- multi.c --- */

struct zk_call *zk_multi_call(struct zk *zk, struct coord_multi *multi);
/* Fills in stats or the failed operation's status; 0 or -errno. */
int zk_multi_answer(struct coord_multi *multi, const struct zk_call *call);

/* --- end_session.c --- */

void zk_end_session(struct uv_loop_s *loop, struct coord_end_session *end);
/* "" if there is no session. */
void zk_token_write(const clientid_t *id, char ret_token[COORD_TOKEN_MAX]);

/* "/quiver/demo/PATH"; the caller frees it. */
char *zk_path(const struct zk *zk, const char *path);

#endif
