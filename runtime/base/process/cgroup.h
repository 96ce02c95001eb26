/* cgroup.h: control groups of version 2: finds the mount and our own group, reads, writes, kills and removes groups.
 *
 * The mount is found in /proc/self/mountinfo: on a machine that also has version 1 it is not at /sys/fs/cgroup. */
#ifndef QUIVER_BASE_PROCESS_CGROUP_H
#define QUIVER_BASE_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CGROUP_PATH_MAX 1024
#define CGROUP_TEXT_MAX 32768

/* Controllers that Quiver uses. */
enum cgroup_controller { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4 };

/* The folder of a process's group, from the texts of its /proc/PID/mountinfo and /proc/PID/cgroup.  0; -ENOENT: version
 * 2 is not mounted, or the group is outside the mount; -ENAMETOOLONG. */
int cgroup_parse(const char *mountinfo, const char *cgroup, char ret_path[CGROUP_PATH_MAX]);
/* The controllers in a cgroup.controllers file that Quiver uses, as bits of enum cgroup_controller. */
unsigned cgroup_parse_controllers(const char *text);
/* "memory, processes, cpu", "none". */
const char *cgroup_controllers_text(unsigned controllers, char *text, size_t size);

/* The folder of our own group.  0, or -errno as cgroup_parse(). */
int cgroup_find_own(char ret_path[CGROUP_PATH_MAX]);

/* Reads `file` of the group; the text is cut at `size`.  0 or -errno. */
int cgroup_read(const char *group, const char *file, char *text, size_t size);
/* 0 or -errno. */
int cgroup_write(const char *group, const char *file, const char *text);

/* Kills every process of the group and of the groups below it.  0 or -errno; -ENOENT on a kernel before 5.14. */
int cgroup_kill(const char *group);
/* Whether the group or one below it has a process; false also if there is no such group. */
bool cgroup_is_populated(const char *group);
/* Removes the group and the groups below it, as far as they are empty.  0 or -errno. */
int cgroup_remove(const char *group);

#endif
