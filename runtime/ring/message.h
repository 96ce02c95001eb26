/* message.h: the messages that host and runner exchange over their control socket (SOCK_SEQPACKET, one message per
 * packet).
 *
 * Tasks and answers go through the shared memory; this socket carries the start message, the reply to it, log lines and
 * log levels.  End-of-file means that the other side is gone. */
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
        RUNNER_FD_BELL = 6,  /* eventfd that wakes the host's loop */
        RUNNER_FD_ALIVE = 7, /* holds a shared lock: the runner lives */
};

#define MESSAGE_MAX (128 * 1024)

enum message_kind {
        MESSAGE_START = 1, /* host → runner, first: struct runner_start */
        MESSAGE_READY,     /* runner → host: every seat's init succeeded: struct runner_ready */
        MESSAGE_REFUSED,   /* runner → host: cannot start, and a text with the reason; then the runner exits */
        MESSAGE_LOG,       /* runner → host: struct runner_log */
        MESSAGE_LEVEL,     /* host → runner: a new log_level */
};

/* What a runner needs before it opens the plugin.  Pointers are borrowed, as in pack.h. */
struct runner_start {
        const char *handler; /* name in runtime.cfg */
        const char *plugin;  /* path of the private copy */
        const char *label;   /* the plugin's name in messages: the name of the original file, "echo.so" */
        uint32_t seats;      /* threads */
        uint32_t batch_max;  /* 1: no handle_many */
        uint32_t leases;     /* number of slots in the lease page */
        uint32_t log_level;  /* enum log_level; more detailed lines are not sent */
        uint32_t log_rate;   /* lines per second, with a burst of the same size */
        uint64_t result_max; /* bytes */
        uint64_t payload_max;
        uint32_t can_call; /* one bit per enum ring_service that the host provides */
        /* Limits; 0 means that the limit is not changed. */
        uint64_t memory_max;
        uint64_t cpu_seconds_max;
        uint64_t files_max;
        uint64_t processes_max;
        uint64_t core_max;        /* of a core dump; 0 means none */
        uint32_t cores_millis;    /* thousandths of a processor */
        uint32_t has_no_network;  /* no network except Unix sockets in the file system */
        uint32_t has_controllers; /* bits of enum cgroup_controller that enforce these limits on its control group */
        const char *cgroup;       /* the folder of the control group to join; "": none */
        const char *user;         /* the user to become; "": none */
        /* Paths for Landlock; if both lists are empty, the file system is not confined. */
        const char *const *paths_read;
        const char *const *paths_write;
        size_t paths_read_count, paths_write_count;
        const struct setting *settings;
        size_t settings_count;
        uint32_t rehearsals; /* repetitions of init and close before the real init; 0 from a host */
        /* The environment.  It is not part of the message: the process is started with it. */
        const char *const *variables; /* variables of ours that the runner inherits besides the usual ones */
        size_t variables_count;
        bool has_all_variables; /* the runner inherits our whole environment: for an author who tries a plugin */
};

#define REHEARSAL_MS UINT64_C(20000) /* approximate limit on the time of all rehearsals together */

/* What the rehearsals leaked in total; a value is 0 unless it grew steadily. */
struct rehearsal {
        uint32_t count; /* number of rehearsals measured; 0: none */
        uint64_t bytes, descriptors, threads;
        /* What the plugin's constructors printed, and the threads that they started. */
        uint64_t constructor_bytes;
        uint32_t constructor_threads;
};

struct runner_ready {
        const char *name;    /* the plugin's own name */
        const char *version; /* "" if it has none */
        uint32_t flags;
        bool has_many;
        const char *unread; /* settings that init did not read, comma-separated; may be "" */
        const char *notes;  /* limits without effect on this machine, such as a missing Landlock; may be "" */
        struct rehearsal rehearsal;
};

/* What produced a line. */
enum log_source { LOG_SERVICE, LOG_STDOUT, LOG_STDERR };

struct runner_log {
        uint32_t level; /* enum log_level */
        uint32_t source;
        uint32_t seat;    /* UINT32_MAX: the line is not from a seat's thread */
        uint64_t ticket;  /* 0: no task was running */
        uint32_t dropped; /* lines dropped since the previous one */
        const char *text;
};

void message_put_start(struct buffer *to, const struct runner_start *start);
void message_put_ready(struct buffer *to, const struct runner_ready *ready);
void message_put_refused(struct buffer *to, const char *text);
void message_put_level(struct buffer *to, uint32_t level);
void message_put_log(struct buffer *to, const struct runner_log *log);

/* Reads the kind and leaves `r` at the body.  0 or -EBADMSG. */
int message_open(struct reader *r, const void *data, size_t size, enum message_kind *ret_kind);
/* `ret->settings` and the path lists are allocated: free with message_free_start(). */
int message_get_start(struct reader *r, struct runner_start *ret);
void message_free_start(struct runner_start *start);
int message_get_ready(struct reader *r, struct runner_ready *ret);
int message_get_refused(struct reader *r, const char **ret_text);
int message_get_level(struct reader *r, uint32_t *ret_level);
int message_get_log(struct reader *r, struct runner_log *ret);

#endif
