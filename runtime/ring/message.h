/* message.h: the few words that host and runner exchange over their control socket (SOCK_SEQPACKET, one message a
 * packet).
 *
 * Everything hot goes through the shared memory; here go the start, the answer to it, log lines and captured output.
 * End-of-file tells either side that the other is gone. */
#ifndef QUIVER_RING_MESSAGE_H
#define QUIVER_RING_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/setting_list.h"

/* Descriptors that a runner is started with. */
enum runner_fd {
        RUNNER_FD_CONTROL = 3,
        RUNNER_FD_RING = 4,
        RUNNER_FD_LEASES = 5,
        RUNNER_FD_BELL = 6, /* eventfd: rung when the host sleeps */
};

#define MESSAGE_MAX (128 * 1024)

enum message_kind {
        MESSAGE_START = 1, /* host → runner, first: struct runner_start */
        MESSAGE_READY,     /* runner → host: every seat's init succeeded: struct runner_ready */
        MESSAGE_REFUSED,   /* runner → host: cannot start; text says why.  The runner exits */
        MESSAGE_LOG,       /* runner → host: struct runner_log */
        MESSAGE_LEVEL,     /* host → runner: another log_level from now on */
};

/* What a runner has to know before it opens the plugin.  Borrowed pointers, as in pack.h. */
struct runner_start {
        const char *handler; /* name in runtime.cfg */
        const char *plugin;  /* path of the private copy */
        const char *label;   /* what messages call it: the file's own name, "echo.so" */
        uint32_t seats;      /* threads */
        uint32_t batch_max;  /* 1: no handle_many */
        uint32_t leases;     /* number of slots in the lease page */
        uint32_t log_level;  /* enum log_level: finer lines are not sent */
        uint32_t log_rate;   /* lines per second, with a burst of the same size */
        uint64_t result_max; /* bytes */
        uint64_t payload_max;
        uint32_t can_call; /* bit per enum ring_service that the host can do */
        /* limits; 0: leave alone */
        uint64_t memory_max;
        uint64_t cpu_seconds_max;
        uint64_t files_max;
        uint64_t processes_max;
        const char *user; /* "" */
        /* Landlock: paths joined by NUL, "": not confined */
        const char *const *paths_read;
        const char *const *paths_write;
        size_t paths_read_count, paths_write_count;
        const struct setting *settings;
        size_t settings_count;
        uint32_t rehearsals; /* init and close so often before the real init; a host asks for none */
        /* Its environment, which no message carries: the process is started with it. */
        const char *const *variables; /* those of ours that it gets besides the usual ones */
        size_t variables_count;
        bool has_all_variables; /* every one of ours: for an author who tries his plugin */
};

#define REHEARSAL_MS UINT64_C(20000) /* about as long as all of them may take together */

/* What the rehearsals left behind, all together; 0 unless it grew all along. */
struct rehearsal {
        uint32_t count; /* as many were measured; 0: there were none */
        uint64_t bytes, descriptors, threads;
};

struct runner_ready {
        const char *name;    /* the plugin's own */
        const char *version; /* "" if it has none */
        uint32_t flags;
        bool has_many;
        const char *unread; /* settings that init never asked for, comma-separated; "" */
        const char *notes;  /* what could not be done (no Landlock here …), "" */
        struct rehearsal rehearsal;
};

/* Where a line came from. */
enum log_source { LOG_SERVICE, LOG_STDOUT, LOG_STDERR };

struct runner_log {
        uint32_t level; /* enum log_level */
        uint32_t source;
        uint32_t seat;    /* UINT32_MAX: not a seat's thread */
        uint64_t ticket;  /* 0: no task was running */
        uint32_t dropped; /* lines lost before this one */
        const char *text;
};

void message_put_start(struct buffer *to, const struct runner_start *start);
void message_put_ready(struct buffer *to, const struct runner_ready *ready);
void message_put_refused(struct buffer *to, const char *text);
void message_put_level(struct buffer *to, uint32_t level);
void message_put_log(struct buffer *to, const struct runner_log *log);

/* Reads the kind and leaves `r` at what follows.  0 or -EBADMSG. */
int message_open(struct reader *r, const void *data, size_t size, enum message_kind *ret_kind);
/* `ret->settings` and the path lists are allocated: free with message_free_start(). */
int message_get_start(struct reader *r, struct runner_start *ret);
void message_free_start(struct runner_start *start);
int message_get_ready(struct reader *r, struct runner_ready *ret);
int message_get_refused(struct reader *r, const char **ret_text);
int message_get_level(struct reader *r, uint32_t *ret_level);
int message_get_log(struct reader *r, struct runner_log *ret);

#endif
