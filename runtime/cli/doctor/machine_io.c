/* machine_io.c: this machine: limits, disks, the kernel, the unit of systemd, the files of plugins. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_system.h"
#include "base/file/file_trust.h"
#include "base/numbers.h"
#include "cli/check/check_limits.h"
#include "cli/doctor/probes.h"

#define FILES_OF_HOST   64u /* the loop, the store, the coordination, the control socket, logs */
#define FILES_OF_RUNNER 8u  /* its ring, sockets and pipes */

/* --- text files of the kernel --- */

/* The first line; false: it cannot be read. */
static bool read_line(const char *path, char *to, size_t size)
{
        FILE *file = fopen(path, "re");
        bool is_read = file && fgets(to, (int)size, file);
        if (file)
                (void)fclose(file);
        if (is_read)
                to[strcspn(to, "\n")] = 0;
        return is_read;
}

static uint64_t read_number(const char *path)
{
        char text[64];
        char *end;
        if (!read_line(path, text, sizeof(text)))
                return UNKNOWN;
        unsigned long long value = strtoull(text, &end, 10);
        return end == text ? UNKNOWN : value;
}

/* --- limits --- */

static uint64_t own_limit(__rlimit_resource_t which)
{
        struct rlimit limit;
        return getrlimit(which, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ? UNKNOWN : limit.rlim_cur;
}

/* The soft limit in a line of /proc/PID/limits.  False: that process is not ours to look at. */
static bool host_limit(uint64_t pid, const char *name, uint64_t *ret)
{
        char path[64], line[256];
        bool is_found = false;
        (void)snprintf(path, sizeof(path), "/proc/%u/limits", (unsigned)pid);
        FILE *file = fopen(path, "re");
        while (file && !is_found && fgets(line, sizeof(line), file)) {
                is_found = !strncmp(line, name, strlen(name));
                if (is_found)
                        *ret = strtoull(line + strlen(name), NULL, 10);
                if (is_found && strstr(line + strlen(name), "unlimited"))
                        *ret = UNKNOWN;
        }
        if (file)
                (void)fclose(file);
        return is_found;
}

static void look_at_limits(const struct config *config, struct doctor_machine *to)
{
        uint64_t runners = 0, threads = 0;
        for (size_t i = 0; i < config->handlers_count; i++) {
                runners += config->handlers[i].processes;
                threads += (uint64_t)config->handlers[i].processes * (config->handlers[i].threads + 2);
        }
        /* While a version is replaced, two have runners. */
        to->files_needed = FILES_OF_HOST + 2 * runners * FILES_OF_RUNNER + config->http.connections;
        to->processes_needed = 16 + 2 * threads;
        to->is_of_host = to->host_pid && host_limit(to->host_pid, "Max open files", &to->files_max) &&
                         host_limit(to->host_pid, "Max processes", &to->processes_max);
        if (to->is_of_host)
                return;
        to->files_max = own_limit(RLIMIT_NOFILE);
        to->processes_max = own_limit(RLIMIT_NPROC);
}

/* --- the control group of a process, and its unit --- */

static bool find_group(uint64_t pid, char *to, size_t size)
{
        char path[64], line[512];
        bool is_found = false;
        (void)snprintf(path, sizeof(path), "/proc/%u/cgroup", (unsigned)pid);
        FILE *file = fopen(path, "re");
        while (file && !is_found && fgets(line, sizeof(line), file)) {
                is_found = !strncmp(line, "0::", 3);
                line[strcspn(line, "\n")] = 0;
                if (is_found)
                        (void)snprintf(to, size, "%s", line + 3);
        }
        if (file)
                (void)fclose(file);
        return is_found;
}

static void look_at_pids(struct doctor_machine *to)
{
        char group[512];
        char path[640];
        if (!find_group(to->is_of_host ? to->host_pid : (uint64_t)getpid(), group, sizeof(group)))
                return;
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/pids.max", group);
        to->processes_max = min_u64(to->processes_max, read_number(path));
}

/* "quiver.service" of "/system.slice/quiver.service/host". */
static void find_unit(const char *group, char *to, size_t size)
{
        const char *end = strstr(group, ".service");
        const char *from = end;
        *to = 0;
        while (from && from > group && from[-1] != '/')
                from--;
        if (!end || strspn(from, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@._:-") <
                            (size_t)(end - from))
                return;
        (void)snprintf(to, size, "%.*s", (int)(end - from) + 8, from);
}

static void take_property(struct doctor_machine *to, const char *line)
{
        static const struct {
                const char *name;
                size_t offset, size;
        } known[] = {
#define PROPERTY(name, field) { name "=", offsetof(struct doctor_machine, field), sizeof(to->field) }
                PROPERTY("Delegate", unit_delegate),
                PROPERTY("LimitNOFILE", unit_files),
                PROPERTY("WatchdogUSec", unit_watchdog),
                PROPERTY("Type", unit_type),
                PROPERTY("Restart", unit_restart),
#undef PROPERTY
        };
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (!strncmp(line, known[i].name, strlen(known[i].name)))
                        (void)snprintf((char *)to + known[i].offset, known[i].size, "%.*s",
                                (int)strcspn(line + strlen(known[i].name), "\n"), line + strlen(known[i].name));
}

static void look_at_unit(struct doctor_machine *to)
{
        char group[512], command[320], line[256];
        if (!to->host_pid || !find_group(to->host_pid, group, sizeof(group)))
                return;
        find_unit(group, to->unit, sizeof(to->unit));
        if (!to->unit[0])
                return;
        (void)snprintf(command, sizeof(command),
                "timeout 3 systemctl show -p Delegate,LimitNOFILE,WatchdogUSec,Type,Restart -- %s 2>/dev/null",
                to->unit);
        FILE *said = popen(command, "re"); /* NOLINT(cert-env33-c): the unit's name has no special character */
        while (said && fgets(line, sizeof(line), said))
                take_property(to, line);
        if (said)
                (void)pclose(said);
}

/* --- disks --- */

/* The folder that is there, at or above `path`. */
static void find_existing(char *path)
{
        struct stat st;
        while (stat(path, &st) < 0 && errno == ENOENT && strcmp(path, "/") != 0 && strcmp(path, ".") != 0)
                memmove(path, dirname(path), strlen(dirname(path)) + 1);
}

static void add_folder(struct doctor_machine *to, const char *of, const char *path)
{
        struct doctor_folder *d = &to->folders[to->folders_count++];
        struct statvfs disk;
        struct statfs kind;
        d->of = of;
        (void)snprintf(d->path, sizeof(d->path), "%s", path);
        find_existing(d->path);
        if (statvfs(d->path, &disk) < 0 || statfs(d->path, &kind) < 0) {
                (void)error_set(&d->error, -errno, "%s: %s", d->path, strerror(errno));
                return;
        }
        d->size_bytes = (uint64_t)disk.f_blocks * disk.f_frsize;
        d->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
        d->inodes = disk.f_files;
        d->inodes_free = disk.f_favail;
        const char *network = file_system_network_name((unsigned long)kind.f_type);
        (void)snprintf(d->network, sizeof(d->network), "%s", network ? network : "");
}

static void look_at_disks(const struct config *config, struct doctor_machine *to)
{
        char path[PATH_MAX];
        add_folder(to, "state", config->state);
        if (config->store.url.kind == URL_SQLITE) {
                (void)snprintf(path, sizeof(path), "%s", config->store.url.path);
                add_folder(to, "store", dirname(path));
        }
        if (config->log.file) {
                (void)snprintf(path, sizeof(path), "%s", config->log.file);
                add_folder(to, "log", dirname(path));
        }
}

/* --- the kernel --- */

static bool is_redis_here(const struct url *url)
{
        return url_is_redis(url) && (!url->hosts_count || probe_is_here(url->hosts[0].name));
}

static void look_at_coverage(const struct config *config, const struct check_machine *m, struct doctor_machine *to)
{
        for (size_t i = 0; i < config->handlers_count; i++) {
                struct coverage_line lines[COVERAGE_LINES_MAX];
                size_t count = coverage_of(&config->handlers[i].limits, &m->facts, lines);
                for (size_t k = 0; k < count; k++) {
                        if (!lines[k].is_void)
                                continue;
                        char *text = text_printf(
                                "limits.%s of %s: %s", lines[k].limit, config->handlers[i].name, lines[k].covers);
                        strings_add(&to->void_limits, text);
                        free(text);
                }
        }
}

void probe_machine(const struct config *config, struct doctor_figures *figures)
{
        struct doctor_machine *to = &figures->machine;
        const struct check_machine m = check_machine_look(config);
        struct timespec now;
        struct timex clock = { 0 };
        to->landlock = m.facts.landlock;
        to->has_namespace = m.facts.has_namespace;
        to->is_root = m.facts.is_root;
        to->has_cgroup = *m.group != 0;
        (void)snprintf(to->cgroup_why, sizeof(to->cgroup_why), "%.511s", m.why.text);
        to->has_boottime = clock_gettime(CLOCK_BOOTTIME, &now) == 0;
        to->is_clock_synchronised = adjtimex(&clock) >= 0 && !(clock.status & STA_UNSYNC);
        uint64_t overcommit = read_number("/proc/sys/vm/overcommit_memory");
        to->overcommit = overcommit == UNKNOWN ? -1 : (int)overcommit;
        to->has_redis_here = is_redis_here(&config->store.url) || is_redis_here(&config->coordination.url);
        look_at_coverage(config, &m, to);
        look_at_limits(config, to);
        look_at_pids(to);
        look_at_unit(to);
        look_at_disks(config, to);
}
