/* judge_machine.c: this machine: limits, disks, the kernel, files, the unit of systemd. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/version.h"
#include "cli/doctor/judge.h"

#define FREE_WARNING_PART  0.10
#define FREE_ERROR_PART    0.03
#define FREE_WARNING_BYTES (UINT64_C(5) << 30) /* a large disk that is nearly full has room all the same */
#define FREE_ERROR_BYTES   (UINT64_C(1) << 30)
#define FREE_LEAST_BYTES   (UINT64_C(16) << 20)

static enum finding_level level_of_room(const struct doctor_folder *d)
{
        double part = d->size_bytes ? (double)d->free_bytes / (double)d->size_bytes : 1;
        double inodes = d->inodes ? (double)d->inodes_free / (double)d->inodes : 1;
        bool is_error =
                (part < FREE_ERROR_PART && d->free_bytes < FREE_ERROR_BYTES) || d->free_bytes < FREE_LEAST_BYTES;
        if (is_error || inodes < FREE_ERROR_PART)
                return FINDING_ERROR;
        if ((part < FREE_WARNING_PART && d->free_bytes < FREE_WARNING_BYTES) || inodes < FREE_WARNING_PART)
                return FINDING_WARNING;
        return FINDING_OK;
}

static void judge_folder(const struct doctor_folder *d, struct findings *to)
{
        char room[UNITS_TEXT_MAX], size[UNITS_TEXT_MAX];
        if (d->error.text[0]) {
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "disk", NULL,
                        "The disk of the %s folder was not looked at: %s.", d->of, d->error.text);
                return;
        }
        enum finding_level level = level_of_room(d);
        findings_add(to, level, SUBJECT_MACHINE, "disk", level == FINDING_OK ? NULL : "make room, or move it",
                "The disk of the %s folder %s has %s of %s free, and %.0f %% of its inodes.", d->of, d->path,
                units_format_bytes(room, d->free_bytes), units_format_bytes(size, d->size_bytes),
                d->inodes ? 100.0 * (double)d->inodes_free / (double)d->inodes : 100.0);
        if (d->network[0] && strcmp(d->of, "log") != 0)
                findings_add(to, FINDING_ERROR, SUBJECT_MACHINE, "network-disk", "use a local disk, or a Redis",
                        "The %s folder %s is on a network file system (%s), where SQLite and locks are not safe.",
                        d->of, d->path, d->network);
}

static void judge_limits(const struct doctor_machine *m, struct findings *to)
{
        const char *whose = m->is_of_host ? "The host" : "A host that is started as this command was";
        if (m->files_max != UNKNOWN)
                findings_add(to, m->files_max < m->files_needed ? FINDING_WARNING : FINDING_OK, SUBJECT_MACHINE,
                        "open-files", m->files_max < m->files_needed ? "LimitNOFILE= in its unit, or ulimit -n" : NULL,
                        "%s may open %" PRIu64 " files; its settings may need %" PRIu64 ".", whose, m->files_max,
                        m->files_needed);
        if (m->processes_max != UNKNOWN)
                findings_add(to, m->processes_max < m->processes_needed ? FINDING_WARNING : FINDING_OK, SUBJECT_MACHINE,
                        "processes",
                        m->processes_max < m->processes_needed ? "TasksMax= in its unit, or ulimit -u" : NULL,
                        "%s may have %" PRIu64 " processes and threads; its settings may need %" PRIu64 ".", whose,
                        m->processes_max, m->processes_needed);
}

static void judge_kernel(const struct doctor_machine *m, struct findings *to)
{
        if (!m->has_boottime)
                findings_add(to, FINDING_ERROR, SUBJECT_MACHINE, "boottime", "use Linux 2.6.39 or newer",
                        "The kernel has no clock that goes on while the machine sleeps (CLOCK_BOOTTIME).");
        if (m->landlock)
                findings_add(to, FINDING_OK, SUBJECT_MACHINE, "landlock", NULL,
                        "The kernel has Landlock, version %" PRIu64 ".", m->landlock);
        else
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "landlock", "a kernel with CONFIG_SECURITY_LANDLOCK",
                        "The kernel has no Landlock: limits.read and limits.write have no effect.");
        if (m->has_cgroup)
                findings_add(
                        to, FINDING_OK, SUBJECT_MACHINE, "cgroup", NULL, "Runners get control groups of their own.");
        else
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "cgroup",
                        "Delegate=yes in the unit, or host.cgroup = \"off\" to say that it is meant so",
                        "Runners get no control groups of their own: %s.", m->cgroup_why);
        findings_add(to, m->has_namespace ? FINDING_OK : FINDING_NOTE, SUBJECT_MACHINE, "namespaces",
                m->has_namespace ? NULL : "sysctl kernel.unprivileged_userns_clone=1, or run the host as root",
                m->has_namespace ? "Runners can be cut off from the network."
                                 : "Runners cannot leave the network: limits.network = \"none\" closes TCP at most.");
        for (size_t i = 0; i < m->void_limits.count; i++)
                findings_add(to, FINDING_WARNING, SUBJECT_MACHINE, "limits",
                        "quiver check says what each limit covers here", "%s.", m->void_limits.items[i]);
        if (m->overcommit == 2)
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "overcommit", "sysctl vm.overcommit_memory=1",
                        "vm.overcommit_memory is 2: starting runners may fail though memory is free.");
        else if (m->has_redis_here && m->overcommit == 0)
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "overcommit", "sysctl vm.overcommit_memory=1",
                        "vm.overcommit_memory is 0, and a Redis runs here: its snapshots may fail when memory is "
                        "short.");
        if (m->is_root)
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "root",
                        "run the host as a user of its own, or set limits.user",
                        "This is root: a host that is started so runs plugins as root.");
}

static void judge_unit(const struct doctor_machine *m, struct findings *to)
{
        if (!m->unit[0])
                return;
        if (!m->unit_type[0]) {
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "unit", NULL,
                        "The host runs under %s, which systemctl did not describe.", m->unit);
                return;
        }
        size_t before = to->count;
        if (strcmp(m->unit_delegate, "yes") != 0)
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "unit", "Delegate=yes",
                        "%s has no control groups of its own (Delegate=%s).", m->unit, m->unit_delegate);
        if (strncmp(m->unit_type, "notify", 6) != 0)
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "unit", "Type=notify-reload",
                        "%s does not wait until the host is ready (Type=%s).", m->unit, m->unit_type);
        if (!strcmp(m->unit_watchdog, "0") || !strcmp(m->unit_watchdog, "infinity") || !m->unit_watchdog[0])
                findings_add(to, FINDING_NOTE, SUBJECT_MACHINE, "unit", "WatchdogSec=30s",
                        "%s does not notice a host that hangs (no WatchdogSec).", m->unit);
        if (!strcmp(m->unit_restart, "no"))
                findings_add(to, FINDING_WARNING, SUBJECT_MACHINE, "unit", "Restart=on-failure",
                        "%s does not start a host again that died (Restart=no).", m->unit);
        if (to->count == before)
                findings_add(to, FINDING_OK, SUBJECT_MACHINE, "unit", NULL, "%s is set up as it should be.", m->unit);
}

void judge_machine(const struct doctor_machine *m, struct findings *to)
{
        for (size_t i = 0; i < m->folders_count; i++)
                judge_folder(&m->folders[i], to);
        judge_limits(m, to);
        judge_kernel(m, to);
        judge_unit(m, to);
}

void judge_files(const struct doctor_files *files, struct findings *to)
{
        size_t before = to->count;
        for (size_t i = 0; i < files->plugins_count; i++) {
                const struct doctor_plugin *p = &files->plugins[i];
                if (p->error.text[0])
                        findings_add(to, FINDING_ERROR, SUBJECT_FILES, "plugin", "quiver check",
                                "The plugin of %s cannot be used: %s.", p->handler, p->error.text);
                else if (p->abi_major != UNKNOWN && p->abi_major != QUIVER_ABI_MAJOR)
                        findings_add(to, FINDING_ERROR, SUBJECT_FILES, "plugin-abi",
                                "rebuild it against sdk/include of this Quiver",
                                "The plugin %s of %s is built for ABI %" PRIu64 ".%" PRIu64
                                ", and this host speaks %u.x.",
                                p->path, p->handler, p->abi_major, p->abi_minor, QUIVER_ABI_MAJOR);
                if (p->trust.text[0])
                        findings_add(to, p->is_open_to_all ? FINDING_ERROR : FINDING_WARNING, SUBJECT_FILES,
                                "plugin-mode", NULL, "The plugin of %s: %s.", p->handler, p->trust.text);
        }
        if (files->tokens_file && files->tokens_mode != UNKNOWN && files->tokens_mode & 077)
                findings_add(to, FINDING_WARNING, SUBJECT_FILES, "tokens-mode", "chmod 600 on it",
                        "%s is open to others (mode %03o).", files->tokens_file, (unsigned)files->tokens_mode);
        if (to->count == before)
                findings_add(to, FINDING_OK, SUBJECT_FILES, "plugins", NULL, "%zu plugin file%s can be used.",
                        files->plugins_count, files->plugins_count == 1 ? "" : "s");
}
