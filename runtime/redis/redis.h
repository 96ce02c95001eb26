/* redis.h: connections to a Redis deployment (one server, Sentinel, Cluster), for store/redis and coord/redis.
 *
 * Finds the right server for a key, keeps a connection to it, and gives every command exactly one answer.  What is a
 * Redis command and what is behind it is the caller's business; who is master now, AUTH, SELECT, CLIENT SETNAME,
 * script loading, MOVED, ASK, TRYAGAIN, LOADING, reconnecting and deadlines are handled here.
 *
 * Everything is on the loop's thread; commands for the same server that are sent in one turn of the loop go out in one
 * write.  Name resolution happens off the loop. */
#ifndef QUIVER_REDIS_REDIS_H
#define QUIVER_REDIS_REDIS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h" /* struct span */

struct redis;
struct uv_loop_s;

/* A Lua script, embedded at build time.  The server that loads it tells its sha1. */
struct redis_script {
        const char *name;
        const char *text;
        size_t size;
        char sha[41]; /* filled in before opened(); "" where scripts may not be loaded: then EVAL carries the text */
};

struct redis_events {
        /* A key that a tracked command read was written by somebody else (CLIENT TRACKING … REDIRECT … NOLOOP): a hint.
         */
        void (*rang)(void *self, const char *key, size_t size);
        /* Rings may have been lost, for all keys: (re)connected, another master, a slot moved, tracking was refused. */
        void (*look)(void *self);
        /* A server was lost or came back; text for one log line. */
        void (*state)(void *self, bool is_up, const char *text);
        void *self;
};

struct redis_options {
        /* redis://HOST:PORT/DB  redis+unix:PATH[?db=N]  redis+sentinel://h1:26379,h2/MASTER[/DB]  redis+cluster://h1,h2
         */
        const char *url;
        const char *user, *password;                   /* NULL: none.  Copied, and wiped at the end */
        const char *sentinel_user, *sentinel_password; /* NULL: none */
        const char *name;                              /* for CLIENT SETNAME; NULL: none */
        struct redis_script **scripts;                 /* loaded on every connection that needs them */
        uint32_t scripts_count;
        bool wants_bell;                   /* tracking, where the server allows it */
        uint64_t deadline_ms;              /* for a command that names none; 0: 5 s */
        const struct redis_events *events; /* NULL: none */
};

/* One command.  Embedded in its owner; the owner fills the upper half and `done`.  argv must live until done().
 *
 * done() is called exactly once, on the loop, never inside redis_send(): status 0 with `reply` (never an error reply;
 * valid until done() returns), or a negative errno with error.text and, if the server said no, `reply` the error:
 *   -ECONNREFUSED, -EHOSTUNREACH  not sent: nothing happened (not connected until the deadline; -EACCES and -ENOTSUP
 *                                 if that is why);
 *   -ETIMEDOUT, -ECONNRESET       sent, no answer: it may or may not have happened, or still happen;
 *   -EACCES    NOAUTH, WRONGPASS, NOPERM;        -EROFS     READONLY (anywhere in the text; the master is looked for);
 *   -ENOSPC    OOM;                              -EIO       MISCONF, NOREPLICAS;
 *   -EBUSY     BUSY, TRYAGAIN or CLUSTERDOWN that lasted until the deadline; LOADING likewise;
 *   -EPROTO    WRONGTYPE, BADVALUE, CROSSSLOT, NOSCRIPT after a reload, syntax: ours or somebody else's data;
 *   -EREMOTEIO any other error reply, scripts' own included (error.text is the server's);
 *   -ECANCELED redis_close().
 * MOVED and ASK are followed and never seen, and so is NOSCRIPT.
 *
 * A command that was not answered in time costs its connection, and all others that wait on it end with the same
 * status: answers come in order, so none of them would be answered either.  Commands for one server are answered in the
 * order in which they were sent, except those that had to be tried again. */
struct redis_command {
        void (*done)(struct redis_command *command);
        struct span
                route; /* the key, or anything with the same hash tag, that decides which server.  Empty: any master */
        const char **argv;
        const size_t *argv_size;
        int argc;
        struct redis_script *script; /* not NULL: argv[0] is "EVALSHA" (or EVALSHA_RO) and argv[1] is set from here */
        uint64_t deadline_ms;        /* from now; 0: the options' */
        bool is_tracked;             /* its reads are to ring; those of others may */
        bool is_blocking;            /* BLMOVE, WAIT: gets a connection of its own, closed when cancelled */
        /* A blocking one may have another before it on the same connection, whose answer is not told.  WAIT counts only
         * what its own connection wrote: without a write here (of any key of the same server) it waits for nothing. */
        const char **first_argv;
        const size_t *first_size;
        int first_argc;       /* 0: none */
        uint64_t first_least; /* … whose answer is to be such a number, or a higher one: else this ends with -ECONNRESET
                               */

        int status;
        struct error error;
        redisReply *reply;

        /* private */
        struct redis *redis;
        struct redis_command *prev, *next;
        void *link, *target; /* where it is under way; where ASK sends it */
        uint64_t due_ms, retry_at_ms;
        unsigned tries;
        bool is_sent, is_eval, is_ended, is_first_refused;
};

struct redis_open {
        void (*opened)(struct redis_open *open, int status); /* once: a first master answered (status 0), or why not */
        struct redis_options options;
        struct error error;
        struct redis *redis; /* set at once, so that opening can be ended by redis_close(); NULL if it failed */
};

/* Connects and verifies that it is a master (HELLO, INFO).  -EACCES, -EINVAL, -ENOTSUP (a server older than 7.0),
 * -EPROTO (no Redis, or a script that does not compile) at once; anything that may heal is tried until `deadline_ms`,
 * then -ECONNREFUSED, -EHOSTUNREACH or -ETIMEDOUT.  -ECANCELED if it was closed meanwhile.  The struct must live until
 * opened(), which is called on the loop, never inside redis_open(). */
void redis_open(struct uv_loop_s *loop, struct redis_open *open);
/* May be called from any callback of ours.  Everything under way ends with -ECANCELED, then closed() is called. */
void redis_close(struct redis *redis, void (*closed)(void *self), void *self);

void redis_send(struct redis *redis, struct redis_command *command);
/* A command that waits or blocks ends with -ECANCELED, later, on the loop; one that blocks may still happen, until the
 * server has seen the end of its connection.  One that is under way on a shared
 * connection gets its answer as if nothing was said, and so does one that is done. */
void redis_cancel(struct redis_command *command);

/* What was found, for the start-up line.  Any may be "" or "unknown" where the server does not tell (ACL, managed). */
struct redis_facts {
        char version[32];
        char mode[16]; /* standalone, sentinel, cluster */
        char role[16];
        char server[272]; /* who answers now */
        char replid[48];
        char appendonly[16], appendfsync[16], save[128];
        char maxmemory_policy[32];
        uint64_t maxmemory;
        uint32_t replicas;
        bool has_tracking; /* the bell works */
};
void redis_facts(const struct redis *redis, struct redis_facts *ret_facts);

/* The slot of a key (CRC16 of its hash tag, or of all of it): 0 … 16383. */
uint16_t redis_slot(const char *key, size_t size);

#endif
