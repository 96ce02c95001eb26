#include "host/confine/cgroups.h"

#include <inttypes.h>
#include <stdio.h>

#define CPU_PERIOD_US 100000u

const char *cgroup_objection(const struct cgroup_facts *facts, bool is_required)
{
        if (!facts->is_mounted)
                return "this machine has no control groups of version 2, or they are not mounted here";
        if (!facts->is_root && !facts->is_ours)
                return "its control group belongs to another user; under systemd set Delegate=yes in its unit, and no "
                       "ProtectControlGroups";
        /* In a group that systemd manages and has not delegated, nobody else may make groups. */
        if (facts->is_root && facts->has_systemd && !facts->is_delegated && !is_required)
                return "systemd manages its control group and has not delegated it; set Delegate=yes in its unit, or "
                       "host.cgroup = \"require\"";
        return NULL;
}

static struct cgroup_file *add(struct cgroup_file *files, size_t *count, const char *name, bool is_optional)
{
        struct cgroup_file *file = &files[(*count)++];
        *file = (struct cgroup_file){ .name = name, .is_optional = is_optional };
        return file;
}

size_t cgroup_limits(const struct runner_start *start, unsigned controllers, struct cgroup_file files[CGROUP_FILES_MAX])
{
        size_t count = 0;
        struct cgroup_file *file;
        if (controllers & CGROUP_MEMORY && start->memory_max) {
                file = add(files, &count, "memory.max", false);
                (void)snprintf(file->text, sizeof(file->text), "%" PRIu64, start->memory_max);
                /* Without this, memory beyond the limit is swapped out, and the limit has no effect. */
                file = add(files, &count, "memory.swap.max", true);
                (void)snprintf(file->text, sizeof(file->text), "0");
                /* A runner that lost one of its processes is of no use: the kernel kills all of them. */
                file = add(files, &count, "memory.oom.group", true);
                (void)snprintf(file->text, sizeof(file->text), "1");
        }
        if (controllers & CGROUP_PIDS && start->processes_max) {
                file = add(files, &count, "pids.max", false);
                (void)snprintf(file->text, sizeof(file->text), "%" PRIu64, start->processes_max);
        }
        if (controllers & CGROUP_CPU && start->cores_millis) {
                file = add(files, &count, "cpu.max", false);
                (void)snprintf(file->text, sizeof(file->text), "%" PRIu64 " %u",
                        (uint64_t)start->cores_millis * CPU_PERIOD_US / 1000, CPU_PERIOD_US);
        }
        return count;
}
