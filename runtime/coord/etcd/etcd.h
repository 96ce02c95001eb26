/* etcd.h: the coordination tree in etcd.  Included by this folder only.
 *
 *         open.c          the driver: opening and closing a tree
 *         endpoint.c      which server is used: logging in, and trying another one
 *         call.c          one call to a server
 *         session.c       the session: a lease, kept alive every third of its time
 *         stream.c        the watch: one stream of all changes in the app's tree; watch.c: who waits for which
 *         request.c       requests as calls, in order
 *         txn.c           operations as transactions; txn_json.c: transactions as JSON
 *         reply.c         etcd's answers; names.c: its keys
 *         end_session.c   ends the session of a host that is gone */
#ifndef QUIVER_COORD_ETCD_ETCD_H
#define QUIVER_COORD_ETCD_ETCD_H

#include <jansson.h>

#include "base/url.h"
#include "coord/etcd/names.h"
#include "coord/etcd/reply.h"
#include "coord/etcd/txn.h"
#include "coord/etcd/watch.h"
#include "coord/remote.h"
#include "curl/curl_http.h"

/* A tree has no longer replies: 512 KiB of data as base64, or ten thousand names. */
#define ETCD_REPLY_MAX (16u * 1024u * 1024u)

struct etcd_call;

struct etcd_tree {
        struct remote remote; /* must be first */
        struct url url;
        char *prefix; /* "/quiver/demo/" */
        char *user, *password;
        struct curl_http *http; /* NULL: libcurl could not be loaded */
        uint64_t wanted_ms;     /* the session's timeout that we ask for */

        /* the server */
        size_t endpoint;            /* index into the url's hosts */
        unsigned failures;          /* consecutive failures of servers */
        unsigned untrusted;         /* of these, because the certificate could not be verified */
        uint64_t retry_at_ms;       /* nothing is sent before this time */
        bool is_greeted;            /* the server has told its version */
        bool is_open;               /* the server needs no password */
        char *token;                /* NULL: not logged in */
        struct etcd_call *greeting; /* the greeting or login under way */
        uint64_t cluster_id;        /* 0: unknown yet */
        bool is_said_down;          /* the log says that no server answers */
        bool must_suspend;          /* the owner must be told that the session is suspended */
        uint64_t made_ms;           /* when the tree was opened */
        uint64_t opening_by_ms;     /* when the open is finished even without a server */

        /* the session */
        uint64_t lease;     /* 0: none */
        uint64_t old_lease; /* a lease to revoke before the next one is granted; 0: none */
        char nonce[REMOTE_NONCE_DIGITS + 1];

        /* the watch */
        struct etcd_watches watches;
        struct etcd_call *stream;
        struct etcd_frame frame;
        uint64_t watch_from;    /* the next revision that the stream must report; 0: no session yet */
        uint64_t watch_pending; /* becomes watch_from when a message that came in parts is complete */
        uint64_t stream_at_ms;  /* when to start the stream, or start it again */

        struct etcd_call *waiting; /* calls of the session that were not sent yet */
        struct etcd_call *closing; /* the last call: ends the session */
        bool is_freeing;
};

/* --- call.c --- */

/* What became of a call. */
enum etcd_outcome {
        ETCD_ANSWERED,
        ETCD_UNSENT,  /* it reached no server */
        ETCD_LOST,    /* unknown whether it was executed */
        ETCD_FAILED,  /* etcd refused it: see `failure` */
        ETCD_STRANGE, /* the answer is not one of etcd's */
};

struct etcd_call {
        struct curl_exchange exchange; /* must be first */
        struct etcd_tree *tree;
        struct coord_request *request;            /* NULL: a call of the session */
        void (*answered)(struct etcd_call *call); /* frees the call, or sends it again */
        void *self;
        const char *path; /* "/v3/kv/txn" */
        char *url;
        bool is_out;
        bool is_write; /* it must not be sent twice */
        bool needs_no_login;
        uint64_t deadline_ms;          /* for a call of the session */
        unsigned logins;               /* logins that the call has caused */
        struct etcd_call *prev, *next; /* in tree->waiting */
        /* the answer */
        enum etcd_outcome outcome;
        json_t *reply;
        struct etcd_header header;
        struct etcd_failure failure;
        struct error error; /* includes the server's name */
        /* for requests */
        struct etcd_txn *txn;
        struct etcd_watch *watch;
        uint64_t lease; /* of the session in which it was sent */
};

/* `path` is "/v3/…"; the caller fills in the body. */
struct etcd_call *etcd_call_new(struct etcd_tree *tree, const char *path, void (*answered)(struct etcd_call *call));
/* Sends the call to the current server. */
void etcd_call_send(struct etcd_call *call, uint64_t limit_ms);
/* Sends the call as soon as there is a server, and again if it was lost, until its deadline. */
void etcd_call_post(struct etcd_call *call);
/* Sends waiting calls, and fails those past their deadline.  Returns the next deadline. */
uint64_t etcd_call_tick(struct etcd_tree *tree, uint64_t now_ms);
/* remote_hooks.forget */
void etcd_call_forget(void *call);
void etcd_call_free(struct etcd_call *call);
/* Sets the error text of a call that was not answered. */
void etcd_call_explain(struct etcd_call *call);
/* Adds the lease to the body. */
void etcd_put_lease(struct etcd_call *call, uint64_t lease);

/* --- endpoint.c --- */

/* "127.0.0.1:2379" */
const char *etcd_endpoint_name(const struct etcd_tree *tree, char text[300]);
/* Whether calls can be sent now. */
bool etcd_is_ready(const struct etcd_tree *tree, uint64_t now_ms);
/* How long to wait for one server before another is tried. */
uint64_t etcd_attempt_ms(const struct etcd_tree *tree);
/* Greets the server and logs in, if that is due.  Returns the next due time. */
uint64_t etcd_endpoint_tick(struct etcd_tree *tree, uint64_t now_ms);
/* The current server does not answer or cannot serve: tries the next one. */
void etcd_endpoint_failed(struct etcd_tree *tree, const char *why);
/* The current server has answered. */
void etcd_endpoint_answered(struct etcd_tree *tree);
/* The token is no longer valid. */
void etcd_endpoint_logout(struct etcd_tree *tree);
/* Fails the open, or refuses requests until something changes. */
void etcd_refuse(struct etcd_tree *tree, int status, const char *why);

/* --- session.c --- */

uint64_t etcd_session_tick(struct etcd_tree *tree, uint64_t now_ms);
/* remote_hooks.beat */
void *etcd_beat(struct remote *remote);
/* The session is over; `why` is for the log. */
void etcd_expire(struct etcd_tree *tree, const char *why);
struct etcd_call *etcd_revoke_call(
        struct etcd_tree *tree, uint64_t lease, void (*answered)(struct etcd_call *call), uint64_t patience_ms);

/* --- stream.c --- */

/* Starts the stream if it is due.  Returns when it is due. */
uint64_t etcd_stream_tick(struct etcd_tree *tree, uint64_t now_ms);
void etcd_stream_stop(struct etcd_tree *tree);

/* --- request.c --- */

/* remote_hooks.make and .send */
void *etcd_request_make(struct remote *remote, struct coord_request *request);
void etcd_request_send(struct remote *remote, struct coord_request *request);

/* --- open.c --- */

/* Finishes the request when a server has answered, when it is clear that none will, or after `patience_ms`. */
void etcd_make(struct uv_loop_s *loop, struct coord_open *open, uint64_t patience_ms);
void etcd_close(struct coord *coord, void (*closed)(void *self), void *self);

/* --- end_session.c --- */

void etcd_end_session(struct uv_loop_s *loop, struct coord_end_session *end);
void etcd_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX]);

#endif
