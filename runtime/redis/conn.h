/* conn.h: a connection that has logged in, and the commands that wait for their answers on it, in order.
 *
 * Logging in is AUTH, HELLO, CLIENT SETNAME, SELECT, and for a main connection what the start-up line says and the
 * scripts: all in one write.  A server that is too old, is a replica, or knows another password is refused here. */
#ifndef QUIVER_REDIS_CONN_H
#define QUIVER_REDIS_CONN_H

#include "redis/redis.h"
#include "redis/socket.h"

enum conn_kind {
        CONN_MAIN,    /* a master: commands */
        CONN_BELL,    /* subscribed to invalidations */
        CONN_ALONE,   /* one blocking command at a time */
        CONN_ASK_ANY, /* any server of a Cluster, asked about the others */
        CONN_SENTINEL,
        CONN_WATCH, /* a Sentinel, subscribed to what it sees */
};

enum login_step {
        LOGIN_AUTH,
        LOGIN_HELLO,
        LOGIN_SETNAME,
        LOGIN_SELECT,
        LOGIN_INFO,
        LOGIN_CONFIG,
        LOGIN_SCRIPT, /* one for each */
        LOGIN_SUBSCRIBE,
        LOGIN_PING,
};

#define LOGIN_STEPS_MAX 8

struct conn;

/* Called from the loop. */
struct conn_events {
        void (*ready)(struct conn *conn);
        /* The first of `sent` was answered and taken from it.  `reply` is the receiver's. */
        void (*answered)(struct conn *conn, struct redis_command *command, redisReply *reply);
        /* A message nobody asked for: the bell's, or a Sentinel's.  `reply` is the receiver's. */
        void (*pushed)(struct conn *conn, redisReply *reply);
        /* Failed to connect, to log in, or was lost; conn->socket.error says why.  It is closed already; `sent` is as
         * it was, and the receiver's to empty. */
        void (*lost)(struct conn *conn, int status);
};

struct conn {
        struct redis_socket socket;
        enum conn_kind kind;
        struct redis *redis;
        void *owner;
        const struct conn_events *events;
        struct redis_command *sent; /* oldest first */
        struct redis_facts facts;   /* what login found */
        uint64_t client_id;         /* 0: not told */
        bool is_ready;              /* logged in */
        bool is_retiring;           /* gets nothing new; closed when `sent` is empty */

        /* private */
        struct conn *prev, *next; /* of redis->conns */
        struct conn *next_unflushed;
        bool is_unflushed;
        bool is_late; /* at the last look, something was overdue */
        enum login_step steps[LOGIN_STEPS_MAX];
        unsigned steps_count, step;
        uint32_t scripts_loaded;
};

/* Commands in the order in which they came; NULL is empty.  A command is in one queue at most. */
void queue_put(struct redis_command **queue, struct redis_command *command);
void queue_remove(struct redis_command **queue, struct redis_command *command);

struct conn *conn_open(struct redis *redis, enum conn_kind kind, const struct address *address,
        const struct conn_events *events, void *owner);
/* Nothing is called any more; frees itself.  `sent` must be empty.  NULL is fine. */
void conn_close(struct conn *conn);
/* Ends a connection for a reason found above it: as if it was lost. */
void conn_lose(struct conn *conn, int status);

/* Puts out a command and appends it to `sent`. */
void conn_send(struct conn *conn, struct redis_command *command);
/* A command of our own: `told` gets its answer, an error reply or not, or a status and no reply.  NULL: nobody cares.
 */
typedef void told_fn(void *self, int status, const redisReply *reply);
void conn_ask(struct conn *conn, int argc, const char *const *argv, const size_t *argv_size, told_fn *told, void *self);
/* The same with words up to a NULL. */
void conn_ask_words(struct conn *conn, const char *const *words, told_fn *told, void *self);
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
/* Ends our own commands among `sent`. */
void conn_end_asked(struct conn *conn, int status);
/* A word without an answer of its own, on a connection that is subscribed: a ping. */
void conn_say(struct conn *conn, const char *word);

/* Writes what was put out in this turn. */
void conns_flush(struct redis *redis);

/* login.c */
void login_start(struct conn *conn);
/* 0, or why this server is not for us, with the text in conn->socket.error. */
int login_reply(struct conn *conn, const redisReply *reply);
static inline bool login_is_over(const struct conn *conn)
{
        return conn->step == conn->steps_count;
}

#endif
