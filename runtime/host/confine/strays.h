/* strays.h: processes that a plugin has started and that outlived their runner.
 *
 * A host is a child subreaper: a process that a runner started, even by forking twice or in a session of its own,
 * becomes the host's child when its parents are gone.  Each runner has an environment variable that names it, and its
 * children inherit it: so a stray is killed when its runner has ended.  A stray without the variable is killed when
 * every living runner is younger than it, unless the host may have unrelated children: a script that started something
 * and then became the host, or a container whose first process it is.
 *
 * strays.c decides without I/O; strays_io.c reads /proc, kills and reaps.  Used on the loop's thread only. */
#ifndef QUIVER_HOST_CONFINE_STRAYS_H
#define QUIVER_HOST_CONFINE_STRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/process/stray_mark.h"

/* A living runner. */
struct stray_runner {
        pid_t pid;
        uint64_t number;
        uint64_t started; /* as in process_stat.h */
};

#define STRAY_GROUPS 8

/* A child of the host that the host has not started. */
struct stray_process {
        bool has_mark;   /* `number` is known */
        uint64_t number; /* of the runner that started it */
        uint64_t started;
};

/* Whether the stray's runner is gone.  `is_shared`: a child without a mark may have nothing to do with runners. */
bool stray_is_left(const struct stray_process *stray, const struct stray_runner *runners, size_t count, bool is_shared);

struct strays {
        uv_loop_t *loop;
        char run[STRAY_RUN_MAX]; /* identifies this run of this host in marks; "": strays are not handled */
        uint64_t count;          /* runners so far */
        struct stray_runner *runners;
        size_t runners_count, runners_room;
        pid_t groups[STRAY_GROUPS]; /* process groups of the latest runners that ended: killed with them */
        size_t groups_next;
        uint64_t killed;
        uv_signal_t signal; /* SIGCHLD: a stray may have ended */
        bool is_open;
        bool is_shared;            /* the host may have children that neither it nor a runner started */
        void (*ended)(void *self); /* a process that we did not start has ended; may be NULL */
        void *self;
};

/* Makes this process a subreaper.  `nonce` identifies this run of this host. */
void strays_open(struct strays *s, uv_loop_t *loop, const void *nonce, size_t nonce_size);
/* The number of the next runner, and the value of its variable; "" if strays are not handled. */
uint64_t strays_mark(struct strays *s, char ret_mark[STRAY_MARK_MAX]);
void strays_add(struct strays *s, pid_t pid, uint64_t number);
/* The runner was reaped and its process group killed: kills the other processes that it left behind. */
void strays_remove(struct strays *s, pid_t pid);
/* Kills all remaining strays when the host ends. */
void strays_close(struct strays *s);
void strays_free(struct strays *s);

#endif
