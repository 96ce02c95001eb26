/* redis_private.h: what the files of this folder share. */
#ifndef QUIVER_REDIS_REDIS_PRIVATE_H
#define QUIVER_REDIS_REDIS_PRIVATE_H

#include <errno.h>
#include <uv.h>

#include "base/url.h"
#include "redis/conn.h"
#include "redis/server.h"

struct sentinel;
struct cluster;

struct redis {
        uv_loop_t *loop;
        struct redis_options options; /* its texts are copies */
        struct url url;
        struct tls_context *tls; /* NULL: plain */
        uv_timer_t timer;        /* the earliest due time of all deadlines, retries, reconnects and pings */
        uint64_t timer_at_ms;
        uv_prepare_t prepare; /* calls done() of ended commands, then writes */
        uv_idle_t idle;       /* active while `prepare` has work, so that the loop does not sleep */

        struct server *servers;
        struct conn *conns; /* all connections that are not freed yet */
        struct conn *unflushed;
        struct redis_command *waiting; /* commands that wait for a server, or for their next try */
        struct redis_command *ended;   /* commands whose done() is due */
        struct sentinel *sentinel;     /* NULL: the URL is not redis+sentinel:// */
        struct cluster *cluster;

        int why; /* status of the latest failed connection; commands that wait until their deadline report it */
        struct error why_text;

        struct redis_open *open; /* NULL after opened() was called */
        uint64_t open_due_ms;
        int open_status;
        bool is_open_ended;

        bool has_said_no_tracking;
        bool is_config_refused; /* CONFIG GET was refused: it is not sent again, because the server logs each refusal */
        bool is_closing, is_torn_down, is_freeing;
        unsigned handles; /* libuv handles that are not closed yet */
        void (*closed)(void *self);
        void *closed_self;
};

/* Whether another server can take the place of one that hangs: Sentinel or Cluster. */
static inline bool redis_has_others(const struct redis *redis)
{
        return redis->sentinel || redis->cluster;
}
/* Makes the timer fire at `at_ms` (clock_boot_ms) or earlier. */
void redis_wake_at(struct redis *redis, uint64_t at_ms);
/* Makes `prepare` run before the loop sleeps. */
void redis_soon(struct redis *redis);
/* Tries the waiting commands again: a server came up, or keys moved to another server. */
void redis_dispatch(struct redis *redis);
/* Calls done() of a command later, on the loop.  The command must be in no queue. */
void redis_end(struct redis *redis, struct redis_command *command, int status, const char *text);
/* Queues a command that was not executed: it is sent at `at_ms`, or (0) as soon as a server is up.  The command must be
 * in no queue. */
void redis_wait(struct redis *redis, struct redis_command *command, uint64_t at_ms);
/* Records why a connection failed; commands that wait until their deadline report it. */
void redis_failed(struct redis *redis, int status, const char *text);
/* A master refused the login: if that is permanent, opening ends. */
void redis_refused(struct redis *redis, int status);
/* Ends the opening if a server is settled or the deadline has passed. */
void redis_check_open(struct redis *redis);
void redis_state(struct redis *redis, bool is_up, const char *text);
void redis_look(struct redis *redis);
/* Called when a connection is freed. */
void redis_conn_freed(struct redis *redis);
void redis_start(struct redis *redis);
/* Ends everything with -ECANCELED; may be called again. */
void redis_tear_down(struct redis *redis);
/* Completes the closing once no callback is due any more. */
void redis_free_when_idle(struct redis *redis);

/* Milliseconds to wait after `failures` failures: doubled each time, capped, with jitter. */
uint64_t backoff_ms(unsigned failures);

/* error_reply.c: how a reply affects its command. */
enum reply_kind {
        REPLY_OK,
        REPLY_FAILED,   /* the command ends with a status */
        REPLY_READONLY, /* failed, and the server is no master */
        REPLY_LATER,    /* not executed; try again after a while */
        REPLY_RELOAD,   /* not executed: the script is not there */
        REPLY_MOVED,
        REPLY_ASK,
};
/* denial.c: whether an error reply says that the user lacks a right; a text about that which says what to do. */
bool denial_is(const char *said);
void denial_describe(const struct redis_command *command, const char *user, const char *said, struct error *ret_error);

enum reply_kind error_reply_judge(const redisReply *reply, int *ret_status);
/* Describes an error reply for people; for an error inside a script it names the script and the key. */
void error_reply_describe(const struct redis_command *command, const char *said, struct error *ret_error);
/* Reads "MOVED 3999 10.0.0.7:6381"; an empty host means that of `from`.  False if it cannot be read. */
bool error_reply_target(
        const redisReply *reply, const struct address *from, uint16_t *ret_slot, struct address *ret_to);

#endif
