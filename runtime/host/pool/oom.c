#include "host/pool/oom.h"

#include <stdlib.h>
#include <string.h>

#include "base/process/cgroup.h"

uint64_t oom_parse(const char *text, const char *name)
{
        size_t size = strlen(name);
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (!strncmp(line, name, size) && line[size] == ' ' && line[size + 1] >= '0' && line[size + 1] <= '9')
                        return strtoull(line + size + 1, NULL, 10);
        }
        return UINT64_MAX;
}

struct oom_count oom_count_read(const char *group)
{
        char text[4096];
        char own[CGROUP_PATH_MAX];
        struct oom_count count = { .group = UINT64_MAX, .machine = UINT64_MAX };
        if (!*group && cgroup_find_own(own) == 0)
                group = own;
        if (*group && cgroup_read(group, "memory.events", text, sizeof(text)) == 0)
                count.group = oom_parse(text, "oom_kill");
        char *machine = malloc(CGROUP_TEXT_MAX);
        if (machine && cgroup_read("/proc", "vmstat", machine, CGROUP_TEXT_MAX) == 0)
                count.machine = oom_parse(machine, "oom_kill");
        free(machine);
        return count;
}

static int has_grown(uint64_t before, uint64_t after)
{
        return before != UINT64_MAX && after != UINT64_MAX && after > before;
}

enum oom_finding oom_compare(struct oom_count before, struct oom_count after)
{
        if (has_grown(before.group, after.group))
                return OOM_GROUP;
        if (has_grown(before.machine, after.machine))
                return OOM_MACHINE;
        return after.group == UINT64_MAX && after.machine == UINT64_MAX ? OOM_UNKNOWN : OOM_NOT;
}
