/* conn.h: a connection that logs in, and the commands that wait for their answers on it, in order.
 *
 * A login is AUTH, HELLO, CLIENT SETNAME, SELECT, and on a main connection also the queries for the start-up line and
 * the scripts, all in one write.  A server that is too old, is a replica or has another password is refused here. */
#ifndef QUIVER_REDIS_CONN_H
#define QUIVER_REDIS_CONN_H

#include "redis/redis.h"
#include "redis/socket.h"

enum conn_kind {
        CONN_MAIN,    /* to a master, for commands */
        CONN_BELL,    /* to a master, subscribed to invalidations */
        CONN_ALONE,   /* to a master, for one blocking command at a time */
        CONN_ASK_ANY, /* to any server of a Cluster, for the slot map */
        CONN_SENTINEL,
        CONN_WATCH, /* to a Sentinel, subscribed to its events */
};

enum login_step {
        LOGIN_AUTH,
        LOGIN_HELLO,
        LOGIN_SETNAME,
        LOGIN_SELECT,
        LOGIN_INFO,
        LOGIN_CONFIG,
        LOGIN_SCRIPT, /* one step per script */
        LOGIN_SUBSCRIBE,
        LOGIN_PING,
};

#define LOGIN_STEPS_MAX 8

struct conn;

/* Called from the loop. */
struct conn_events {
        void (*ready)(struct conn *conn);
        /* The first command of `sent` was answered and removed from it.  `reply` is gone when this returns. */
        void (*answered)(struct conn *conn, struct redis_command *command, redisReply *reply);
        /* A pub/sub message: an invalidation, or a Sentinel's event.  `reply` is gone when this returns. */
        void (*pushed)(struct conn *conn, redisReply *reply);
        /* Connecting or logging in failed, or the connection was lost; conn->socket.error has the reason.  It is
         * already closed.  `sent` is unchanged, and the receiver must empty it. */
        void (*lost)(struct conn *conn, int status);
};

struct conn {
        struct redis_socket socket;
        enum conn_kind kind;
        struct redis *redis;
        void *owner;
        const struct conn_events *events;
        struct redis_command *sent; /* commands that wait for an answer, the oldest first */
        struct redis_facts facts;   /* filled in by the login */
        uint64_t client_id;         /* 0: unknown */
        bool is_ready;              /* logged in */
        bool is_tracking; /* keys that it reads will ring, except those of commands sent with CLIENT CACHING NO */
        bool is_retiring; /* gets no new commands, and is closed when `sent` is empty */

        /* private */
        struct conn *prev, *next; /* links in redis->conns */
        struct conn *next_unflushed;
        bool is_unflushed;
        bool is_late; /* an answer was overdue at the last check */
        uint64_t opened_at_ms;
        enum login_step steps[LOGIN_STEPS_MAX];
        unsigned steps_count, step;
        uint32_t scripts_loaded;
};

/* A queue of commands; NULL is empty.  A command is in at most one queue. */
void queue_put(struct redis_command **queue, struct redis_command *command);
void queue_remove(struct redis_command **queue, struct redis_command *command);

struct conn *conn_open(struct redis *redis, enum conn_kind kind, const struct address *address,
        const struct conn_events *events, void *owner);
/* Closes the connection without calling any event; it frees itself later.  `sent` must be empty.  Accepts NULL. */
void conn_close(struct conn *conn);
/* Ends the connection for a reason that its owner found, as if it had been lost. */
void conn_lose(struct conn *conn, int status);

/* Puts a command into the output buffer and appends it to `sent`. */
void conn_send(struct conn *conn, struct redis_command *command);
/* Like conn_send(), but on a tracking connection first tells the server that keys read by the command need not ring. */
void conn_send_untracked(struct conn *conn, struct redis_command *command);
/* Sends a command for this folder itself.  `told` receives its reply, which may be an error reply, or a negative status
 * and no reply.  A NULL `told` ignores the answer. */
typedef void told_fn(void *self, int status, const redisReply *reply);
void conn_ask(struct conn *conn, int argc, const char *const *argv, const size_t *argv_size, told_fn *told, void *self);
/* As conn_ask(), with words ended by NULL. */
void conn_ask_words(struct conn *conn, const char *const *words, told_fn *told, void *self);
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
/* Removes the commands of conn_ask() from `sent` and reports `status` to them. */
void conn_end_asked(struct conn *conn, int status);
/* Sends a command whose answer comes as a pub/sub message: PING on a subscribed connection. */
void conn_say(struct conn *conn, const char *word);

/* Since when the server has owed an answer, to the login or to the oldest command; 0: it owes none. */
uint64_t conn_owes_since_ms(const struct conn *conn);
/* Whether the server has owed an answer for so long that it may hang. */
bool conn_is_silent(const struct conn *conn, uint64_t now_ms);
#define CONN_SILENT_MS 300

/* Writes the output buffers of all connections. */
void conns_flush(struct redis *redis);

/* login.c */
void login_start(struct conn *conn);
/* Takes one reply of the login.  0, or -errno if the server must not be used, with the text in conn->socket.error. */
int login_reply(struct conn *conn, const redisReply *reply);
static inline bool login_is_over(const struct conn *conn)
{
        return conn->step == conn->steps_count;
}

#endif
