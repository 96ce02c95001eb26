/* redis_private.h: what the files of this folder know of each other. */
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
        struct redis_options options; /* with copies of its texts */
        struct url url;
        uv_timer_t timer; /* the next of all that is due: deadlines, retries, reconnects, pings */
        uint64_t timer_at_ms;
        uv_prepare_t prepare; /* tells what has ended, then writes */
        uv_idle_t idle;       /* keeps the loop from sleeping before that */

        struct server *servers;
        struct conn *conns; /* all that are not freed yet */
        struct conn *unflushed;
        struct redis_command *waiting; /* for a server, or for their next try */
        struct redis_command *ended;   /* done() is due */
        struct sentinel *sentinel;     /* NULL: not that kind */
        struct cluster *cluster;

        int why; /* what the last connection failed of, and its text: for commands that wait in vain */
        struct error why_text;

        struct redis_open *open; /* NULL: opened */
        uint64_t open_due_ms;
        int open_status;
        bool is_open_ended;

        bool has_said_no_tracking;
        bool is_closing, is_torn_down, is_freeing;
        unsigned handles; /* not closed yet */
        void (*closed)(void *self);
        void *closed_self;
};

/* The timer fires no later than that (clock_boot_ms). */
void redis_wake_at(struct redis *redis, uint64_t at_ms);
/* Something is to be told or written before the loop sleeps. */
void redis_soon(struct redis *redis);
/* Whatever waits is tried again: a server came up, or keys have another server. */
void redis_dispatch(struct redis *redis);
/* Ends a command, later, on the loop.  It is in no list. */
void redis_end(struct redis *redis, struct redis_command *command, int status, const char *text);
/* It is in no list and was not executed: sent again at `at_ms`, or at once when a server comes up (0). */
void redis_wait(struct redis *redis, struct redis_command *command, uint64_t at_ms);
/* A connection was lost or could not be made: what commands that wait in vain are told. */
void redis_failed(struct redis *redis, int status, const char *text);
/* A master does not want us: if that cannot heal, opening ends. */
void redis_refused(struct redis *redis, int status);
/* Whether opened() can be called now. */
void redis_check_open(struct redis *redis);
void redis_state(struct redis *redis, bool is_up, const char *text);
void redis_look(struct redis *redis);
/* A connection of ours is freed. */
void redis_conn_freed(struct redis *redis);
void redis_start(struct redis *redis);
/* Everything under way ends with -ECANCELED; may be called again. */
void redis_tear_down(struct redis *redis);
/* The rest of closing, when nothing is left to be told. */
void redis_free_when_idle(struct redis *redis);

/* Milliseconds to wait before try number `failures`: doubles, capped, jittered. */
uint64_t backoff_ms(unsigned failures);

/* error_reply.c: what a reply means for its command. */
enum reply_kind {
        REPLY_OK,
        REPLY_FAILED,   /* with a status */
        REPLY_READONLY, /* failed, and the server is no master */
        REPLY_LATER,    /* not executed; try again after a while */
        REPLY_RELOAD,   /* not executed: the script is not there */
        REPLY_MOVED,
        REPLY_ASK,
};
enum reply_kind error_reply_judge(const redisReply *reply, int *ret_status);
/* "MOVED 3999 10.0.0.7:6381"; an empty host means `from`'s.  False if it cannot be read. */
bool error_reply_target(
        const redisReply *reply, const struct address *from, uint16_t *ret_slot, struct address *ret_to);

#endif
