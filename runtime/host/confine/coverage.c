#include "host/confine/coverage.h"

#include "base/process/cgroup.h"

/* The Landlock versions since which TCP and signals can be restricted. */
#define LANDLOCK_TCP     4
#define LANDLOCK_SIGNALS 6

static struct coverage_line about_memory(const struct coverage_facts *facts)
{
        if (facts->controllers & CGROUP_MEMORY)
                return (struct coverage_line){ .limit = "memory",
                        .covers = "all memory of a runner and of what it starts, shared memory, memfd and files in "
                                  "tmpfs too (control group)" };
        return (struct coverage_line){ .limit = "memory",
                .covers = "what each process allocates for itself; not shared memory, memfd and files in tmpfs (no "
                          "control group for memory)" };
}

static struct coverage_line about_processes(const struct limits_config *limits, const struct coverage_facts *facts)
{
        if (facts->controllers & CGROUP_PIDS)
                return (struct coverage_line){ .limit = "processes",
                        .covers = "processes and threads of a runner with all that it starts (control group)" };
        if (facts->is_root && !limits->user)
                return (struct coverage_line){ .limit = "processes",
                        .covers = "nothing: the kernel does not limit root's (no control group for processes)",
                        .is_void = true };
        return (struct coverage_line){ .limit = "processes",
                .covers = "all processes and threads of the runners' user together, whoever started them (no control "
                          "group for processes)" };
}

static struct coverage_line about_cores(const struct coverage_facts *facts)
{
        bool has_group = facts->controllers & CGROUP_CPU;
        return (struct coverage_line){ .limit = "cores",
                .covers = has_group ? "a runner with all that it starts (control group)"
                                    : "nothing: it needs a control group for processors",
                .is_void = !has_group };
}

static struct coverage_line about_files(const struct coverage_facts *facts)
{
        if (!facts->landlock)
                return (struct coverage_line){
                        .limit = "read, write", .covers = "nothing: this kernel has no Landlock", .is_void = true
                };
        return (struct coverage_line){ .limit = "read, write",
                .covers = facts->landlock >= LANDLOCK_SIGNALS
                                  ? "files and folders, signals to other processes, and abstract sockets (Landlock)"
                                  : "files and folders; not signals to other processes (this kernel's Landlock is too "
                                    "old)" };
}

static struct coverage_line about_network(const struct coverage_facts *facts)
{
        if (facts->has_namespace)
                return (struct coverage_line){ .limit = "network",
                        .covers = "everything but Unix sockets in the file system (network namespace)" };
        if (facts->landlock >= LANDLOCK_TCP)
                return (struct coverage_line){ .limit = "network",
                        .covers = "TCP alone; UDP stays open (Landlock: this machine allows no network namespace)" };
        return (struct coverage_line){ .limit = "network",
                .covers = "nothing: this machine allows no network namespace, and its kernel has no Landlock for TCP; "
                          "the handler is refused",
                .is_void = true };
}

size_t coverage_of(const struct limits_config *limits, const struct coverage_facts *facts,
        struct coverage_line lines[COVERAGE_LINES_MAX])
{
        size_t count = 0;
        if (limits->user)
                lines[count++] = (struct coverage_line){ .limit = "user",
                        .covers =
                                "files, processes and sockets of the host and of others, by the rights of that user" };
        if (limits->memory_bytes)
                lines[count++] = about_memory(facts);
        if (limits->cpu_ms)
                lines[count++] = (struct coverage_line){ .limit = "cpu",
                        .covers = "the processor time of each process by itself, since it was started" };
        if (limits->cores > 0)
                lines[count++] = about_cores(facts);
        if (limits->descriptors)
                lines[count++] =
                        (struct coverage_line){ .limit = "descriptors", .covers = "the open files of each process" };
        if (limits->processes)
                lines[count++] = about_processes(limits, facts);
        if (limits->read.count || limits->write.count)
                lines[count++] = about_files(facts);
        if (limits->network == NETWORK_NONE)
                lines[count++] = about_network(facts);
        return count;
}
