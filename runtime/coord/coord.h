/* coord.h: a small tree that all hosts of an app share: who is a member, who leads, what was decided.
 *
 * The contract that every driver meets (local: a folder; zookeeper; redis; etcd) and that tests/contract/test_coord
 * checks.  Membership, leadership and locks are recipes above it (member.h, leader.h, lock.h), written once; nothing
 * above this file knows which driver it has.
 *
 * The tree.  Nodes have a name, up to COORD_DATA_MAX bytes, a version that grows with each set, a creation id that no
 * other node ever had, and children.  A path is relative to the app's own root and has no leading slash:
 * "members/3f2a…".  Names are 1 to 255 bytes of [A-Za-z0-9._:@%+-], not "." or "..".  Parents of a created node are
 * made as needed and stay; an ephemeral node has no children (-ENOTDIR).
 *
 * Sessions.  An opened tree keeps a session with its authority: a lease on which ephemeral nodes depend.  The driver
 * keeps it alive by itself, but only from the loop: a loop that hangs loses its session.  When a session has expired
 * (the authority said so, or did not answer for the session's timeout), its ephemeral nodes are gone or are about to
 * go, and the driver begins a new session; the owners of ephemeral nodes make them again.
 *
 * Requests.  As in store.h: a struct embedded in its owner, zeroed, the upper half and `done` filled in; done() is
 * called exactly once, on the loop, never inside the starting call, with -ECANCELED on close.  What a request points to
 * must live until done(); what a reply points to lives until done() returns.  Requests take effect in the order in
 * which they were started.  While the session is suspended, requests wait for at most the session's timeout, then fail
 * with -ETIMEDOUT; requests under way when it expires fail with -EOWNERDEAD, before the next ALIVE is reported.
 *
 * Common errors: -ENOENT no such node; -EEXIST; -ESTALE the version differs; -ENOTEMPTY it has children; -EINVAL called
 * wrongly; -EACCES refused (wrong password, permissions); -E2BIG; -ETIMEDOUT, -ECONNRESET no answer: the request may or
 * may not have been carried out; -EOWNERDEAD the session expired first; -EBADMSG the node exists, but its value is
 * invalid (somebody else has written it): it can be watched, and deleted or set with COORD_ANY_VERSION; -ECANCELED. */
#ifndef QUIVER_COORD_COORD_H
#define QUIVER_COORD_COORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file/tls_files.h"
#include "base/rights.h"
#include "base/span.h" /* struct span */

#define COORD_DATA_MAX  (512u * 1024u)
#define COORD_PATH_MAX  512u /* with the NUL */
#define COORD_TOKEN_MAX 256u
#define COORD_MULTI_MAX 16u

struct coord;
struct uv_loop_s;

enum coord_state {
        COORD_CONNECTING, /* no session yet */
        COORD_ALIVE,      /* the authority has answered recently */
        COORD_SUSPENDED,  /* no answer for a while: the session may or may not exist, and nothing that depends on it is
                           * lost yet */
        COORD_EXPIRED,    /* the session is gone with all its ephemeral nodes; the driver begins a new one by itself */
};

/* What a tree tells its opener: on the loop, never inside a call of the opener. */
struct coord_events {
        /* The session changed.  `session` is its number, the `owner` of its ephemeral nodes; EXPIRED names the session
         * that is gone, and the next one has another number.  Every change is reported, in order, except CONNECTING. */
        void (*session)(void *self, enum coord_state state, uint64_t session);
        /* A watched node or child list has changed: read it again.  One-shot: reading it with `watch` arms it again.
         * It may be spurious, but none is lost unless look() follows. */
        void (*changed)(void *self, const char *path);
        /* Watches may have been lost (new session, reconnected): read everything again.  Follows each ALIVE that comes
         * with a new session. */
        void (*look)(void *self);
        void *self;
};

struct coord_options {
        /* local:FOLDER  zookeeper://h1:2181,h2/ROOT  etcd://h1:2379,h2/ROOT or etcd+tls://…  redis (the store's) or
         * redis://… as a store's url */
        const char *url;
        const char *app;
        uint64_t session_ms;  /* wanted; the authority may change it, see coord_info() */
        const char *user;     /* NULL: none */
        const char *password; /* NULL: none; wiped by the caller after done() of the open */
        /* For url "redis": where the store is, with its own user and password. */
        const char *store_url, *store_user, *store_password;
        /* User and password for the Sentinels: those of the tree's own Redis, and those of the store's. */
        const char *sentinel_user, *sentinel_password, *store_sentinel_user, *store_sentinel_password;
        struct tls_files tls;              /* etcd+tls, rediss */
        struct tls_files store_tls;        /* for url "redis" */
        const struct coord_events *events; /* NULL: a visitor, without watches, ephemeral nodes and usually a session */
};

struct coord_request {
        void (*done)(struct coord_request *request);
        int status;
        struct error error; /* empty unless status is negative */

        /* private to coord.c and the driver */
        struct coord *coord;
        struct coord_request *prev, *next;
        void *reply; /* memory of the reply; freed after done() */
        unsigned op;
        uint64_t deadline_ms;
        void *driver;
};

struct coord_open {
        struct coord_request request;
        struct coord_options options;

        struct coord *coord; /* use it from done() on; the session may still be CONNECTING */
};

/* Does not wait for a session: a host must be able to start while coordination is down.  Fails only for permanent
 * reasons: -EINVAL (url), -EACCES, -ENOTSUP, -EPROTO. */
void coord_open(struct uv_loop_s *loop, struct coord_open *open);

/* Ends the session (its ephemeral nodes are deleted at once), ends every request and frees the tree; then calls
 * `closed` on the loop, after the session's timeout at the latest. */
void coord_close(struct coord *coord, void (*closed)(void *self), void *self);

struct coord_info {
        const char *driver; /* "local", "zookeeper", "redis", "etcd" */
        const char *url;    /* as recorded in the store, without secrets; for local with the machine's id */
        const char *server; /* the server that answered last; "": none yet */
        enum coord_state state;
        uint64_t session;     /* 0: none */
        uint64_t session_ms;  /* as agreed with the authority */
        uint64_t answered_ms; /* clock_boot_ms() when the authority last answered; 0: never */
};
void coord_info(const struct coord *coord, struct coord_info *ret_info);

/* Adds the rights that a user needs on the servers of the tree, or on their Sentinels.  False: there are no such users.
 * For the url "redis": the rights that the tree needs beyond the store's. */
bool coord_rights(const struct coord_options *options, bool is_for_sentinels, struct rights *to);

/* A text with which a guard can end this session after its host died.  Secret: anybody who has it can end the
 * session. */
void coord_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX]);

/* Ends the session of a host that is gone: its ephemeral nodes are deleted at once.  For a guard; needs no open
 * tree. */
struct coord_end_session {
        struct coord_request request;
        struct coord_options options; /* url, app, secrets; events are not used */
        const char *token;
        /* A visitor's tree with the same options that was opened before: the driver reuses its connection if it can.
         * NULL: none. */
        struct coord *through;
};
void coord_end_session(struct uv_loop_s *loop, struct coord_end_session *end);

/* --- nodes --- */

struct coord_stat {
        uint64_t created; /* creation id: grows over the whole tree, so a node that is made again gets another one */
        uint64_t version; /* 0 when made */
        uint64_t owner;   /* the session of an ephemeral node; 0: the node is permanent */
};

enum coord_flags { COORD_EPHEMERAL = 1, COORD_SEQUENTIAL = 2 };

/* COORD_SEQUENTIAL appends ten digits to the name, which grow within the parent in order of creation.  After -ETIMEDOUT
 * or -ECONNRESET the node may exist or not: a caller that must know puts a nonce into the name, lists the children, and
 * compares the owner with the session. */
struct coord_create {
        struct coord_request request;
        const char *path;
        struct span data;
        unsigned flags;

        const char *made; /* the path of the node */
        struct coord_stat stat;
};
void coord_create(struct coord *coord, struct coord_create *create);

/* With `watch`, changed() is called once when the node's data changes, or it is deleted, or (after -ENOENT) created. */
struct coord_get {
        struct coord_request request;
        const char *path;
        bool watch;

        struct span data;
        struct coord_stat stat;
};
void coord_get(struct coord *coord, struct coord_get *get);

#define COORD_ANY_VERSION UINT64_MAX

struct coord_set {
        struct coord_request request;
        const char *path;
        struct span data;
        uint64_t version; /* the version that the node must have, or COORD_ANY_VERSION */

        struct coord_stat stat;
};
void coord_set(struct coord *coord, struct coord_set *set);

struct coord_delete {
        struct coord_request request;
        const char *path;
        uint64_t version;
};
void coord_delete(struct coord *coord, struct coord_delete *del);

/* Names of the children, sorted by bytes.  With `watch`, changed() is called once when a child is created or deleted.
 * For a node that does not exist the list is empty, and the watch waits for its creation. */
struct coord_children {
        struct coord_request request;
        const char *path;
        bool watch;

        const char **names;
        uint32_t names_count;
};
void coord_children(struct coord *coord, struct coord_children *children);

/* Executes all operations or none, in one step.  The request's status is that of the first operation that failed.
 * -ENOTSUP: a driver may refuse to delete and create the same node in one step (etcd cannot). */
enum coord_multi_kind { COORD_CHECK, COORD_SET, COORD_CREATE, COORD_DELETE };

struct coord_multi_op {
        enum coord_multi_kind kind;
        const char *path;
        struct span data; /* SET, CREATE (not sequential; parents must be there) */
        uint64_t version; /* CHECK (COORD_ANY_VERSION: the node exists), SET, DELETE */
        unsigned flags;   /* CREATE */

        int status; /* on failure: why this operation failed; 0 for the others */
        struct coord_stat stat;
};

struct coord_multi {
        struct coord_request request;
        struct coord_multi_op *ops;
        uint32_t ops_count; /* 1 to COORD_MULTI_MAX, together at most COORD_DATA_MAX bytes of data */
};
void coord_multi(struct coord *coord, struct coord_multi *multi);

#endif
