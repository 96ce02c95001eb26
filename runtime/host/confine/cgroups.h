/* cgroups.h: the control groups (version 2) of a host and of its runners.
 *
 *         OWN/                          the group that the host was started in
 *         OWN/quiver-NAME-NONCE/        made by this host
 *                 host/                 the host, its guard and the processes that explain backtraces
 *                 runners/              killed as a whole (cgroup.kill) when the host is dead; never contains the guard
 *                         HANDLER.N/    one runner with all processes that it starts, under its limits
 *
 * A group that has processes cannot have controllers for the groups below it, so the host leaves OWN first.  A runner
 * joins its group itself, before it opens the plugin: moving a process waits for the kernel, and the host must not.
 *
 * cgroups.c decides without I/O; cgroups_io.c does the rest.  A failure stops a host only if host.cgroup is "require";
 * otherwise the limits hold as far as they do without control groups. */
#ifndef QUIVER_HOST_CONFINE_CGROUPS_H
#define QUIVER_HOST_CONFINE_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/process/cgroup.h"
#include "ring/message.h"

/* The group that the host was started in. */
struct cgroup_facts {
        bool is_mounted;   /* control groups version 2 are mounted */
        bool is_root;      /* the process runs as root */
        bool is_ours;      /* the group's folder belongs to our user */
        bool is_delegated; /* systemd has marked the group: Delegate=yes */
        bool has_systemd;  /* systemd manages this machine */
};

/* NULL if the host may make groups there, else why not.  `is_required`: a person has asked for groups (host.cgroup). */
const char *cgroup_objection(const struct cgroup_facts *facts, bool is_required);

#define CGROUP_FILES_MAX 6

/* A file of a runner's group, and what is written to it. */
struct cgroup_file {
        const char *name;
        char text[48];
        bool is_optional; /* not every kernel has it */
};

/* The limits of `start` that these controllers can enforce.  Returns their number. */
size_t cgroup_limits(
        const struct runner_start *start, unsigned controllers, struct cgroup_file files[CGROUP_FILES_MAX]);

struct cgroup_ended;

struct cgroups {
        char own[CGROUP_PATH_MAX];     /* "": there is none */
        char made[CGROUP_PATH_MAX];    /* our group in `own`; "": none was made */
        char runners[CGROUP_PATH_MAX]; /* "": none was made */
        unsigned controllers;          /* bits of enum cgroup_controller that are enforced for runners */
        unsigned added;                /* controllers that `own` did not delegate before */
        uint64_t count;                /* runners so far */
        struct cgroup_ended *ended;    /* groups of runners that have ended, not removed yet */
        struct error why;              /* why there are no groups or no controllers; "": no problem */
};

/* What a host started like this process could do; changes nothing.  `ret_controllers`: the controllers that it would
 * get.  0, or -errno with the text set. */
int cgroups_probe(bool is_required, unsigned *ret_controllers, char ret_own[CGROUP_PATH_MAX], struct error *error);

/* Makes the groups and moves this process into its own.  `name` and `nonce` make the group's name unique.  0, or -errno
 * with the text in c->why: then there are no groups. */
int cgroups_open(struct cgroups *c, const char *name, const char *nonce, bool is_required);
/* Makes a group for one runner, with its limits.  0 with the path, or -errno with the text set. */
int cgroups_add(
        struct cgroups *c, const struct runner_start *start, char ret_group[CGROUP_PATH_MAX], struct error *error);
/* The runner has ended: kills what it left behind, and removes the group as soon as it is empty. */
void cgroups_end(struct cgroups *c, const char *group);
/* A process has ended: tries again to remove groups that were not empty. */
void cgroups_sweep(struct cgroups *c);
/* Removes the groups, as far as possible. */
void cgroups_close(struct cgroups *c);

#endif
