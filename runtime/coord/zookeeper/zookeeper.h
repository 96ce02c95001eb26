/* zookeeper.h: the coordination tree in ZooKeeper.  Included by this folder only.
 *
 *         open.c          the driver: opening and closing a tree, and its bell
 *         session.c       the session: heartbeat, suspended, expired, the next link
 *         request.c       requests as operations, step by step
 *         multi.c         requests of several operations
 *         end_session.c   ends the session of a host that is gone
 *         call.c          one operation; zk_handle.c: the client's handle
 *
 * Nodes are under /ROOT/APP, where ROOT comes from the URL.  The client's own chroot is not used: it must exist before
 * anything else, while we make ROOT as needed. */
#ifndef QUIVER_COORD_ZOOKEEPER_ZOOKEEPER_H
#define QUIVER_COORD_ZOOKEEPER_ZOOKEEPER_H

#include "coord/remote.h"
#include "coord/zookeeper/call.h"

/* A link in use, or one that is ending: its session may still have to be closed. */
struct zk_link {
        struct zk_link *next;
        struct zk_handle *handle;
        bool is_gone;
};

struct zk {
        struct remote remote; /* must be first */
        struct url url;
        char *root; /* "/quiver/demo" */
        char *auth; /* USER:PASSWORD, or NULL */
        const struct ACL_vector *acl;
        uint64_t wanted_ms; /* the session's timeout that we ask for */
        uv_async_t bell;

        struct zk_link *links;
        struct zk_link *current; /* one of `links`; NULL: none, until start_at_ms */
        uint64_t start_at_ms;
        uint64_t started_ms;
        char *addresses; /* numeric, of the last link that resolved the names; NULL: none yet */

        clientid_t id;     /* of the session; client_id 0: none */
        bool is_connected; /* as the client reports: calls can be sent */
        bool has_root;     /* the app's root was made in this session */
        uint64_t close_by_ms;
};

/* --- open.c --- */

/* The options' URL and USER:PASSWORD, for opening and ending.  The caller frees both. */
int zk_read_options(const struct coord_options *options, struct url *ret_url, char **ret_auth, struct error *error);

/* --- session.c --- */

/* Does what is due.  Returns the next due time. */
uint64_t zk_session_tick(struct zk *zk, uint64_t now_ms);
/* remote_hooks.beat */
void *zk_beat(struct remote *remote);
/* Handles a post and frees it. */
void zk_session_take(struct zk *zk, struct zk_link *from, struct post *post);
/* Ends the current link, if there is one; `lingers` as zk_handle_end(). */
void zk_session_end(struct zk *zk, bool lingers);

/* --- request.c --- */

/* remote_hooks.make, .send and .forget */
void *zk_request_make(struct remote *remote, struct coord_request *request);
void zk_request_send(struct remote *remote, struct coord_request *request);
void zk_call_forget(void *call);
/* Handles the answer to a call that still has its request. */
void zk_request_answered(struct zk *zk, struct zk_call *call);
/* After a STEP_PARENT was answered: prepares the next node of the first `path_size` bytes.  False: all are made, or it
 * failed, as the answer shows. */
bool zk_parent_next(struct zk_call *call, size_t path_size);
int zk_errno(int rc);
struct coord_stat zk_stat(const struct Stat *stat);
/* A version in ZooKeeper's type. */
int32_t zk_version(uint64_t version);

/* --- multi.c --- */

struct zk_call *zk_multi_call(struct zk *zk, struct coord_multi *multi);
/* Fills in stats or the failed operation's status; 0 or -errno. */
int zk_multi_answer(struct coord_multi *multi, const struct zk_call *call);

/* --- end_session.c --- */

/* coord_driver.end_session */
void zk_end_session(struct uv_loop_s *loop, struct coord_end_session *end);
/* "" if there is no session. */
void zk_token_write(const clientid_t *id, char ret_token[COORD_TOKEN_MAX]);

/* "/quiver/demo/PATH"; the caller frees it. */
char *zk_path(const struct zk *zk, const char *path);

#endif
