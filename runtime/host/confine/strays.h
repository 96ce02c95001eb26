/* strays.h: processes that a plugin has started and that outlived their runner.
 *
 * A host is a child subreaper: whatever a runner started, also by forking twice and in a session of its own, becomes
 * the host's child when its parents are gone.  Each runner has a variable in its environment that names it, and what it
 * starts inherits it: so a stray is killed when its runner has ended.  One whose variable is gone is killed when no
 * runner is left that could have started it, since none is as old; unless the host has children that others gave it: a
 * script that started something and then became the host, or a container whose first process it is.
 *
 * strays.c decides and has no I/O; strays_io.c reads /proc, kills and reaps.  Everything runs on the loop's thread. */
#ifndef QUIVER_HOST_CONFINE_STRAYS_H
#define QUIVER_HOST_CONFINE_STRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/process/stray_mark.h"

/* A runner that lives. */
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

/* Whether its runner is gone.  `is_shared`: a child without a mark may have nothing to do with runners. */
bool stray_is_left(const struct stray_process *stray, const struct stray_runner *runners, size_t count, bool is_shared);

struct strays {
        uv_loop_t *loop;
        char run[STRAY_RUN_MAX]; /* names this run of this host in marks; "": nothing is done */
        uint64_t count;          /* of runners so far */
        struct stray_runner *runners;
        size_t runners_count, runners_room;
        pid_t groups[STRAY_GROUPS]; /* process groups of the latest runners that ended: killed with them */
        size_t groups_next;
        uint64_t killed;
        uv_signal_t signal; /* SIGCHLD: a stray may have ended */
        bool is_open;
        bool is_shared;            /* the host may have children that neither it nor a runner has started */
        void (*ended)(void *self); /* a process that we did not start has ended; may be NULL */
        void *self;
};

/* Makes this process a subreaper.  `nonce`: this run of this host. */
void strays_open(struct strays *s, uv_loop_t *loop, const void *nonce, size_t nonce_size);
/* The number of the next runner, and the text of its variable.  "" if strays are not looked for. */
uint64_t strays_mark(struct strays *s, char ret_mark[STRAY_MARK_MAX]);
void strays_add(struct strays *s, pid_t pid, uint64_t number);
/* The runner was reaped and its process group killed: kills what else it has left behind. */
void strays_remove(struct strays *s, pid_t pid);
/* Kills all that are left, at the end of the host. */
void strays_close(struct strays *s);
void strays_free(struct strays *s);

#endif
