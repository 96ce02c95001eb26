/* redis.h: connections to a Redis deployment (one server, Sentinel, Cluster), for store/redis and coord/redis.
 *
 * Finds the right server for a key, keeps a connection to it, and gives every command exactly one answer.  The caller
 * decides which commands to send; finding the master, AUTH, SELECT, CLIENT SETNAME, script loading, MOVED, ASK,
 * TRYAGAIN, LOADING, reconnecting and deadlines are handled here.
 *
 * Everything runs on the loop's thread, except name resolution.  Commands for the same server that are sent in one
 * iteration of the loop go out in one write. */
#ifndef QUIVER_REDIS_REDIS_H
#define QUIVER_REDIS_REDIS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file/tls_files.h"
#include "base/span.h" /* struct span */

struct redis;
struct uv_loop_s;

/* A Lua script, embedded at build time.  Its sha1, by which servers know it, is made when it is first sent. */
struct redis_script {
        const char *name;
        const char *text;
        size_t size;
        char sha[41]; /* "": not sent yet */
};

struct redis_events {
        /* A key that a tracked command has read was written by another client (CLIENT TRACKING … REDIRECT … NOLOOP).
         * This is a hint. */
        void (*rang)(void *self, const char *key, size_t size);
        /* Calls of rang() may have been lost for any key: reconnected, another master, a slot moved, tracking refused.
         * The receiver reads everything once. */
        void (*look)(void *self);
        /* A server was lost or came back; `text` is for one log line. */
        void (*state)(void *self, bool is_up, const char *text);
        void *self;
};

struct redis_options {
        /* redis://HOST:PORT/DB  redis+unix:PATH[?db=N]  redis+sentinel://h1:26379,h2/MASTER[/DB]  redis+cluster://h1,h2
         * and with TLS rediss://, rediss+sentinel:// (Sentinels and servers), rediss+cluster:// */
        const char *url;
        struct tls_files tls;                          /* copied; read again for new connections when they change */
        const char *user, *password;                   /* NULL: none.  Copied; the copies are wiped on close */
        const char *sentinel_user, *sentinel_password; /* NULL: none */
        const char *name;                              /* for CLIENT SETNAME; NULL: none */
        /* Loaded on every main connection, and again when the server has forgotten one, for users who may run scripts
         * but not load them.  Other clients need not list scripts here: a script that the server does not have is sent
         * with EVAL. */
        struct redis_script **scripts;
        uint32_t scripts_count;
        bool wants_facts;                  /* ask INFO, and without a user of its own CONFIG GET, for redis_facts() */
        bool wants_bell;                   /* turn tracking on, if the server allows it */
        uint64_t deadline_ms;              /* of a command that sets none; 0: 5 s */
        const struct redis_events *events; /* NULL: none */
};

/* One command, embedded in its owner.  The owner fills in the fields from `done` to `first_least`; argv must stay valid
 * until done().
 *
 * done() is called exactly once, on the loop, never inside redis_send(): with status 0 and `reply` (never an error
 * reply; valid until done() returns), or with a negative errno, error.text and, if the server refused, the error as
 * `reply`:
 *   -ECONNREFUSED, -EHOSTUNREACH  not sent, so not executed: no connection until the deadline
 *                                 (-EACCES or -ENOTSUP if that was the reason)
 *   -ETIMEDOUT, -ECONNRESET       sent, no answer: it may have been executed, or may be executed later, or never
 *   -EACCES      NOAUTH, WRONGPASS
 *   -EPERM       the user lacks a right, which error.text names
 *   -EROFS       READONLY anywhere in the text; the master is searched again
 *   -ENOSPC      OOM
 *   -EIO         MISCONF, NOREPLICAS
 *   -EBUSY       BUSY, TRYAGAIN, CLUSTERDOWN or LOADING that lasted until the deadline
 *   -EPROTO      WRONGTYPE, BADVALUE, CROSSSLOT, NOSCRIPT after a reload, syntax: a wrong command or unexpected data
 *   -EREMOTEIO   any other error reply, those of scripts included; error.text is the server's
 *   -ECANCELED   redis_close(), redis_cancel()
 * MOVED, ASK and a first NOSCRIPT are handled here and not reported.
 *
 * If a command is not answered in time, its connection is closed, and all other commands on it end with the same
 * status: answers come in order, so none of them would be answered either.  With Sentinel or Cluster the others are
 * asked while an answer is overdue; if another server has become the master, commands that the old one owes an answer
 * end with -ECONNRESET without waiting for their deadline.  Commands for one server are answered in the
 * order in which they were sent, except those that had to be tried again. */
struct redis_command {
        void (*done)(struct redis_command *command);
        struct span route; /* chooses the server: the key, or any text with the same hash tag.  Empty: any master */
        const char **argv;
        const size_t *argv_size;
        int argc;
        struct redis_script *script; /* if set, argv[0] is "EVALSHA" or "EVALSHA_RO", and argv[1] is taken from it */
        uint64_t deadline_ms;        /* from redis_send() on; 0: that of the options */
        bool is_tracked;             /* the keys that it reads must ring; those of other commands may ring too */
        bool is_untracked; /* the keys that it reads need not ring; where the server can be told so, they do not */
        bool is_blocking;  /* BLMOVE, WAIT: runs on a connection of its own, which is closed on cancel */
        /* A command that is sent before a blocking one on the same connection; its answer is not reported.  WAIT counts
         * only the writes of its own connection, so it needs a write here, of any key of the same server. */
        const char **first_argv;
        const size_t *first_size;
        int first_argc;       /* 0: none */
        uint64_t first_least; /* if not 0: a lower answer to the first command ends this one with -ECONNRESET */

        int status;
        struct error error;
        redisReply *reply; /* until done() returns */
        /* How often it was sent.  If two commands with the same route were each sent once, the server executed them in
         * the order of redis_send(). */
        unsigned sends;

        /* private */
        struct redis *redis;
        struct redis_command *prev, *next;
        void *link, *target; /* the connection that it was sent on; the server that an ASK named */
        uint64_t due_ms, retry_at_ms, sent_at_ms;
        unsigned tries;
        bool is_sent, is_eval, is_ended, is_first_refused;
        bool has_prefix; /* the next answer on its connection belongs to a prefix command that was sent before it */
};

struct redis_open {
        void (*opened)(struct redis_open *open, int status); /* called once: 0 if a master answered, or -errno */
        struct redis_options options;
        struct error error;
        struct redis *redis; /* set by redis_open(), so that redis_close() can end the opening; NULL if it failed */
};

/* Connects and verifies that the server is a master (HELLO, INFO).  -EACCES, -EINVAL, -ENOTSUP (a server older
 * than 7.0, or no OpenSSL for TLS) and -EPROTO (no Redis, or a script that does not compile) are reported at once; so
 * are certificates that one side does not accept (-EACCES), and files of our own that cannot be used (-EINVAL).
 * Failures that may be temporary are retried until `deadline_ms`, then reported as -ECONNREFUSED, -EHOSTUNREACH or
 * -ETIMEDOUT; -ECANCELED after redis_close().  The struct must stay valid until opened(), which is called on the loop,
 * never inside redis_open(). */
void redis_open(struct uv_loop_s *loop, struct redis_open *open);
/* Ends every command with -ECANCELED, then calls closed().  May be called from any callback of this file. */
void redis_close(struct redis *redis, void (*closed)(void *self), void *self);

void redis_send(struct redis *redis, struct redis_command *command);
/* Writes the commands sent so far.  Without this call they are written before the loop polls, which may be one turn
 * later, depending on whose `prepare` runs first. */
void redis_flush(struct redis *redis);
/* Turns tracking on, if the options did not; look() is called when it rings, or if it is refused. */
void redis_want_bell(struct redis *redis);
/* Ends a waiting or blocking command with -ECANCELED, later, on the loop; the server may still execute a blocking one
 * until it notices that its connection is closed.  Commands already sent on a shared connection, or done, are not
 * affected. */
void redis_cancel(struct redis_command *command);

/* Call it when an answer does not fit its command.  The stored data may be bad, or the server's answers may be out of
 * step, so that none belongs to its command.  Each server is asked to echo a word; if another answer comes, its
 * connection is closed and opened again. */
void redis_verify(struct redis *redis);

/* Facts about the server, for the start-up line.  Each may be "" or "unknown" if the server does not report it, because
 * of an ACL or because it is a managed service. */
struct redis_facts {
        char version[32];
        char mode[16]; /* standalone, sentinel, cluster */
        char role[16];
        char server[272]; /* the address of the current master */
        char replid[48];
        char appendonly[16], appendfsync[16], save[128];
        char maxmemory_policy[32];
        uint64_t maxmemory;
        uint32_t replicas;
        char tls[16];      /* "TLSv1.3"; "": plain */
        bool has_tracking; /* doorbells arrive */
};
void redis_facts(const struct redis *redis, struct redis_facts *ret_facts);

/* The slot of a key (CRC16 of its hash tag, or of all of it): 0 … 16383. */
uint16_t redis_slot(const char *key, size_t size);

#endif
