/* oom.h: whether the kernel ended processes for lack of memory (the OOM killer) while a runner ran. */
#ifndef QUIVER_HOST_POOL_OOM_H
#define QUIVER_HOST_POOL_OOM_H

#include <stdint.h>

/* How often the OOM killer ended a process: in the control group, and on the whole machine.  UINT64_MAX: unknown. */
struct oom_count {
        uint64_t group, machine;
};

enum oom_finding {
        OOM_UNKNOWN, /* the kernel does not say */
        OOM_NOT,     /* no process was ended meanwhile */
        OOM_MACHINE, /* a process of this machine was ended */
        OOM_GROUP,   /* a process of the control group was ended */
};

/* `group` is the control group's folder; "": our own. */
struct oom_count oom_count_read(const char *group);
enum oom_finding oom_compare(struct oom_count before, struct oom_count after);

/* The number after `name` in lines of "name number"; UINT64_MAX: no such line. */
uint64_t oom_parse(const char *text, const char *name);

#endif
