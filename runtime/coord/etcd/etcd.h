/* etcd.h: the coordination tree in etcd.  Included by this folder only.
 *
 *         open.c          the driver: opening and closing a tree
 *         endpoint.c      which server is spoken to, how it is logged in to, and when another one is tried
 *         call.c          one question on its way
 *         session.c       the session: a lease, kept alive every third of its time
 *         stream.c        the watch: one stream of all changes in the app's tree; watch.c: who waits for which
 *         request.c       requests as questions, in order
 *         txn.c           operations as transactions; txn_json.c: these as JSON
 *         reply.c         what etcd answers; names.c: its keys
 *         end_session.c   ending the session of a host that is gone */
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

/* A reply that is longer is none of a tree: 512 KiB of data as base64, or ten thousand names. */
#define ETCD_REPLY_MAX (16u * 1024u * 1024u)

struct etcd_call;

struct etcd_tree {
        struct remote remote; /* first */
        struct url url;
        char *prefix; /* "/quiver/demo/" */
        char *user, *password;
        struct curl_http *http; /* NULL: libcurl could not be loaded */
        uint64_t wanted_ms;     /* the session's time that we ask for */

        /* the server */
        size_t endpoint;            /* of the url's hosts */
        unsigned failures;          /* of servers, in a row */
        unsigned untrusted;         /* of these, with a certificate that could not be verified */
        uint64_t retry_at_ms;       /* nothing is sent before */
        bool is_greeted;            /* a server has said which version it has */
        bool is_open;               /* it wants no password */
        char *token;                /* NULL: not logged in */
        struct etcd_call *greeting; /* or the login, under way */
        uint64_t cluster_id;        /* 0: not known yet */
        bool is_said_down;          /* it was logged that nobody answers */
        bool must_suspend;          /* the owner is to be told so */
        uint64_t made_ms;           /* when the tree was opened */
        uint64_t opening_by_ms;     /* when the opening is told without a server */

        /* the session */
        uint64_t lease;     /* 0: none */
        uint64_t old_lease; /* one that is to be revoked before the next is granted; 0: none */
        char nonce[REMOTE_NONCE_DIGITS + 1];

        /* the watch */
        struct etcd_watches watches;
        struct etcd_call *stream;
        struct etcd_frame frame;
        uint64_t watch_from;    /* the next revision that it has to tell of; 0: no session yet */
        uint64_t watch_pending; /* the same, when a message that came in parts is complete */
        uint64_t stream_at_ms;  /* when it is begun, or begun anew */

        struct etcd_call *waiting; /* questions of the session that are not sent yet */
        struct etcd_call *closing; /* the last one: the session's end */
        bool is_freeing;
};

/* --- call.c --- */

/* What became of a question. */
enum etcd_outcome {
        ETCD_ANSWERED,
        ETCD_UNSENT,  /* it has not reached any server */
        ETCD_LOST,    /* nobody knows whether it was executed */
        ETCD_FAILED,  /* etcd says no: `failure` */
        ETCD_STRANGE, /* that is no answer of etcd */
};

struct etcd_call {
        struct curl_exchange exchange; /* first */
        struct etcd_tree *tree;
        struct coord_request *request;            /* NULL: it is the session's */
        void (*answered)(struct etcd_call *call); /* frees it, or sends it again */
        void *self;
        const char *path; /* "/v3/kv/txn" */
        char *url;
        bool is_out;
        bool is_write; /* it must not be sent twice */
        bool needs_no_login;
        uint64_t deadline_ms;          /* of the session's */
        unsigned logins;               /* that it was the reason for */
        struct etcd_call *prev, *next; /* in tree->waiting */
        /* the answer */
        enum etcd_outcome outcome;
        json_t *reply;
        struct etcd_header header;
        struct etcd_failure failure;
        struct error error; /* names the server */
        /* of requests */
        struct etcd_txn *txn;
        struct etcd_watch *watch;
        uint64_t lease; /* of the session it was sent in */
};

/* "/v3/…"; the body is filled in by the caller. */
struct etcd_call *etcd_call_new(struct etcd_tree *tree, const char *path, void (*answered)(struct etcd_call *call));
/* Sends it to the current server. */
void etcd_call_send(struct etcd_call *call, uint64_t limit_ms);
/* Sends it as soon as there is a server, again if it got lost, until its deadline. */
void etcd_call_post(struct etcd_call *call);
/* Sends what waits, and gives up what is too late.  Returns when the next one is. */
uint64_t etcd_call_tick(struct etcd_tree *tree, uint64_t now_ms);
/* remote_hooks.forget */
void etcd_call_forget(void *call);
void etcd_call_free(struct etcd_call *call);
/* The text of what went wrong, for a call that has not been answered. */
void etcd_call_explain(struct etcd_call *call);
/* The lease as the body has it. */
void etcd_put_lease(struct etcd_call *call, uint64_t lease);

/* --- endpoint.c --- */

/* "127.0.0.1:2379" */
const char *etcd_endpoint_name(const struct etcd_tree *tree, char text[300]);
/* Whether questions can be sent now. */
bool etcd_is_ready(const struct etcd_tree *tree, uint64_t now_ms);
/* How long one server is waited for before another is tried. */
uint64_t etcd_attempt_ms(const struct etcd_tree *tree);
/* Greets and logs in, if that is due.  Returns when there is something next. */
uint64_t etcd_endpoint_tick(struct etcd_tree *tree, uint64_t now_ms);
/* The current server does not answer, or cannot: the next one is tried. */
void etcd_endpoint_failed(struct etcd_tree *tree, const char *why);
/* It has answered. */
void etcd_endpoint_answered(struct etcd_tree *tree);
/* The token is none any more. */
void etcd_endpoint_logout(struct etcd_tree *tree);
/* Opening fails, or requests are refused until something changes. */
void etcd_refuse(struct etcd_tree *tree, int status, const char *why);

/* --- session.c --- */

uint64_t etcd_session_tick(struct etcd_tree *tree, uint64_t now_ms);
/* remote_hooks.beat */
void *etcd_beat(struct remote *remote);
/* The session is over, says `why`. */
void etcd_expire(struct etcd_tree *tree, const char *why);
struct etcd_call *etcd_revoke_call(
        struct etcd_tree *tree, uint64_t lease, void (*answered)(struct etcd_call *call), uint64_t patience_ms);

/* --- stream.c --- */

/* Begins the stream if it is due.  Returns when it is. */
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
