/* cgroups.h: the control groups (version 2) of a host and of its runners.
 *
 *         OWN/                          the group that the host was started in
 *         OWN/quiver-NAME-NONCE/        made by this host
 *                 host/                 the host, its guard and the processes that explain backtraces
 *                 runners/              what cgroup.kill ends when the host is dead; never the guard
 *                         HANDLER.N/    one runner, with all that it starts, under its limits
 *
 * A group that has processes cannot have controllers for the groups below it, so the host leaves OWN first.  A runner
 * joins its group itself, before it opens the plugin: to move a process waits for the kernel, and the host must not.
 *
 * cgroups.c decides and has no I/O; cgroups_io.c does the rest.  A failure never stops a host, unless host.cgroup is
 * "require": then the limits hold as far as they do without control groups. */
#ifndef QUIVER_HOST_CONFINE_CGROUPS_H
#define QUIVER_HOST_CONFINE_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/process/cgroup.h"
#include "ring/message.h"

/* What is known about the group that the host was started in. */
struct cgroup_facts {
        bool is_mounted;   /* version 2 is there */
        bool is_root;      /* we are root */
        bool is_ours;      /* its folder belongs to our user */
        bool is_delegated; /* systemd has marked it: Delegate=yes */
        bool has_systemd;  /* and manages this machine */
};

/* NULL if the host may make groups there, else why not.  `is_required`: a person has said that it should. */
const char *cgroup_objection(const struct cgroup_facts *facts, bool is_required);

#define CGROUP_FILES_MAX 6

/* A file of a runner's group, and what is written to it. */
struct cgroup_file {
        const char *name;
        char text[48];
        bool is_optional; /* not every kernel has it */
};

/* The limits of `start` that these controllers can keep.  Returns their number. */
size_t cgroup_limits(
        const struct runner_start *start, unsigned controllers, struct cgroup_file files[CGROUP_FILES_MAX]);

struct cgroup_ended;

struct cgroups {
        char own[CGROUP_PATH_MAX];     /* "": there is none */
        char made[CGROUP_PATH_MAX];    /* ours in it; "": none was made */
        char runners[CGROUP_PATH_MAX]; /* "": none was made */
        unsigned controllers;          /* bits of enum cgroup_controller that hold for runners */
        unsigned added;                /* those that `own` did not hand on before */
        uint64_t count;                /* of runners so far */
        struct cgroup_ended *ended;    /* groups of runners that have ended, not removed yet */
        struct error why;              /* why there are none, or no controllers; "" */
};

/* What a host that is started as this process is may do; changes nothing.  `ret_controllers`: those that it would get.
 * 0, or -errno with the text set. */
int cgroups_probe(bool is_required, unsigned *ret_controllers, char ret_own[CGROUP_PATH_MAX], struct error *error);

/* Makes the groups and moves this process into its own.  `name` and `nonce` make theirs unique.  0, or -errno with the
 * text in c->why: then there are none. */
int cgroups_open(struct cgroups *c, const char *name, const char *nonce, bool is_required);
/* Makes a group for one runner, with its limits.  0 with the path, or -errno with the text set. */
int cgroups_add(
        struct cgroups *c, const struct runner_start *start, char ret_group[CGROUP_PATH_MAX], struct error *error);
/* The runner has ended: what it left behind is killed, and the group removed, as soon as it is empty. */
void cgroups_end(struct cgroups *c, const char *group);
/* A process has ended: tries again to remove what could not be removed. */
void cgroups_sweep(struct cgroups *c);
/* Removes what was made, as far as it can be. */
void cgroups_close(struct cgroups *c);

#endif
