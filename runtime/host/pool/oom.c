#include "host/pool/oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

const char *oom_group(const char *text, char *path, uint64_t size)
{
        const char *line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
        *path = 0;
        if (!line)
                return path;
        line = strchr(line, '/');
        size_t length = line ? strcspn(line, "\n") : 0;
        if (line && length < size)
                (void)snprintf(path, size, "%.*s", (int)length, line);
        return path;
}

/* The files are the kernel's and small, so that this does not wait. */
static const char *read_file(const char *path, char *text, size_t size)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = 0;
        size_t used = 0;
        while (fd >= 0 && used + 1 < size && (n = read(fd, text + used, size - used - 1)) > 0)
                used += (size_t)n;
        text[used] = 0;
        if (fd >= 0)
                (void)close(fd);
        return text;
}

struct oom_count oom_count_read(void)
{
        static char text[32768];
        char group[1024];
        char path[1200];
        (void)oom_group(read_file("/proc/self/cgroup", text, sizeof(text)), group, sizeof(group));
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.events", group);
        struct oom_count count = { .group = oom_parse(read_file(path, text, sizeof(text)), "oom_kill") };
        count.machine = oom_parse(read_file("/proc/vmstat", text, sizeof(text)), "oom_kill");
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
