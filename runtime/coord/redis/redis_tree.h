/* redis_tree.h: the coordination tree in Redis.  Included by this folder only.
 *
 *         lua/            the tree itself: each operation is one script, and lua/lib/tree.lua names the keys
 *         open.c          the driver: opening and closing a tree, its connection and its timer
 *         session.c       the session: a lease in the server's time, renewed every third of it
 *         request.c       requests as scripts
 *         reply.c         the scripts' answers
 *         watch.c         which keys are watched
 *         op.c            one script call
 *         end_session.c   ends the session of a host that is gone */
#ifndef QUIVER_COORD_REDIS_REDIS_TREE_H
#define QUIVER_COORD_REDIS_REDIS_TREE_H

#include "coord/redis/scripts.h"
#include "coord/remote.h"

struct redis_watch;
struct tree_op;

struct redis_tree {
        struct remote remote; /* must be first */
        char *prefix;         /* "quiver:{demo:coord}" */
        uv_loop_t *loop;
        struct tree_scripts scripts;

        /* the connection */
        const char *redis_url;
        char *user, *password, *sentinel_user, *sentinel_password;
        struct tls_files tls;
        struct redis_open redis_open;
        struct redis_events redis_events;
        bool is_connecting;
        struct redis *redis;    /* NULL: not connected yet */
        uint64_t connect_at_ms; /* when to try again */
        uint64_t opening_by_ms; /* when the open is finished even without a connection */
        bool is_disconnecting;

        /* the session */
        char number[24]; /* decimal; "": none */
        char nonce[REMOTE_NONCE_DIGITS + 1];

        struct redis_watch *watches;
};

/* --- open.c --- */

/* Finishes the request when there is a connection, when it is clear that there will be none, or after `patience_ms`: a
 * tree may be opened while Redis is down. */
void rtree_make(struct uv_loop_s *loop, struct coord_open *open, uint64_t patience_ms);
/* The server refuses this user: fails the open, or all requests. */
void rtree_refuse(struct redis_tree *tree, int status, const char *why);
bool rtree_rights(const struct coord_options *options, bool is_for_sentinels, struct rights *to);
void rtree_close(struct coord *coord, void (*closed)(void *self), void *self);

/* --- op.c --- */

#define OP_WORDS_MAX 96

/* A script call; owns its words.  Freed after answered(), which is called exactly once. */
struct tree_op {
        struct redis_command command; /* must be first */
        struct redis_tree *tree;
        struct coord_request *request; /* NULL: a call of the session, or nobody waits any more */
        void (*answered)(struct tree_op *op);
        void *self; /* for answered() */
        struct arena_chunk *memory;
        const char *argv[OP_WORDS_MAX];
        size_t sizes[OP_WORDS_MAX];
        bool needs_session;
        bool is_out;
        char number[24];              /* of the session in which it was made */
        struct redis_watch *watch[2]; /* for reads that watch; NULL: none */
};

struct tree_op *rtree_op_new(struct redis_tree *tree, enum tree_script script, void (*answered)(struct tree_op *op));
/* Keys come first: "" is the tree's own key, others are "node:PATH" and "children:PATH". */
void rtree_op_key(struct tree_op *op, const char *kind, const char *path);
void rtree_op_word(struct tree_op *op, struct span word);
void rtree_op_text(struct tree_op *op, const char *text);
void rtree_op_number(struct tree_op *op, uint64_t number);
void rtree_op_send(struct tree_op *op, uint64_t deadline_ms);
/* remote_hooks.forget */
void rtree_op_forget(void *call);
void rtree_op_free(struct tree_op *op);

/* --- session.c --- */

/* Does what is due.  Returns the next due time. */
uint64_t rtree_session_tick(struct redis_tree *tree, uint64_t now_ms);
/* remote_hooks.beat: begins or renews the session. */
void *rtree_beat(struct remote *remote);
/* The session is over; `why` is for the log. */
void rtree_expire(struct redis_tree *tree, const char *why);
/* A call of finish.lua for that session; answered() as in rtree_op_new(). */
struct tree_op *rtree_finish_op(
        struct redis_tree *tree, const char *number, const char *nonce, void (*answered)(struct tree_op *));

/* --- request.c --- */

/* remote_hooks.make and .send */
void *rtree_request_make(struct remote *remote, struct coord_request *request);
void rtree_request_send(struct remote *remote, struct coord_request *request);

/* --- reply.c --- */

enum reply_verdict { REPLY_OK, REPLY_FAILED, REPLY_EXPIRED, REPLY_BROKEN, REPLY_UNKNOWN };

/* The largest number that the server counts exactly. */
#define REPLY_NUMBER_MAX UINT64_C(9007199254740991)

/* Reads a script's verdict, and fires our own watches on the keys that it changed. */
enum reply_verdict rtree_reply_read(struct redis_tree *tree, const redisReply *reply);
struct span rtree_reply_span(const redisReply *reply, size_t index);
/* False: not a number from 0 to REPLY_NUMBER_MAX. */
bool rtree_reply_number(const redisReply *reply, size_t index, uint64_t *ret_number);
/* Reads the version, creation id and owner of a node, from that element on.  False: one of them is invalid. */
bool rtree_reply_stat(const redisReply *reply, size_t index, struct coord_stat *ret_stat);
void rtree_reply_names(struct coord_children *children, const redisReply *names);
/* Whether `made` is a possible result of a create with that path and flags. */
bool rtree_reply_is_made(struct span made, const char *path, unsigned flags);
/* -ENOENT for NONODE, and so on. */
int rtree_reply_errno(struct span word);

/* --- watch.c --- */

/* A read that watches is sent; Redis may report a change before the answer comes. */
struct redis_watch *rtree_watch_begin(struct redis_tree *tree, const char *kind, const char *path);
/* The read was answered.  `is_armed`: its reader wants to know of changes.  A change that was reported meanwhile is
 * passed on at once. */
void rtree_watch_end(struct redis_tree *tree, struct redis_watch *watch, bool is_armed);
/* "node:PATH" or "children:PATH" was written. */
void rtree_watch_rang(struct redis_tree *tree, const char *key, size_t size);
/* Reports of changes may have been lost: disarms every watch. */
void rtree_watch_clear(struct redis_tree *tree);
void rtree_watch_free_all(struct redis_tree *tree);

/* --- end_session.c --- */

void rtree_end_session(struct uv_loop_s *loop, struct coord_end_session *end);
void rtree_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX]);

#endif
