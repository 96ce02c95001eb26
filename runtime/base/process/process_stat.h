/* process_stat.h: a process's parent and start time, from /proc/PID/stat. */
#ifndef QUIVER_BASE_PROCESS_STAT_H
#define QUIVER_BASE_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
        pid_t parent;
        char state;       /* 'Z': it has ended and was not reaped */
        uint64_t started; /* in clock ticks since the machine was started */
};

/* 0, or -EBADMSG. */
int process_stat_parse(const char *text, struct process_stat *ret);
/* 0, or -errno: -ENOENT if there is no such process. */
int process_stat_read(pid_t pid, struct process_stat *ret);

/* Whether `pid` is a descendant of `ancestor`.  A process that is gone, or whose ancestors cannot be read, counts as
 * one, because the caller is about to trust those that are not. */
bool process_descends(pid_t pid, pid_t ancestor);

#endif
