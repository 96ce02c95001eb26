/* cgroups_io.c: makes and removes control groups. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "base/memory.h"
#include "host/confine/cgroups.h"

#define PREFIX   "quiver-"
#define LOCK_MS  1000
#define PAUSE_NS 1000000

struct cgroup_ended {
        struct cgroup_ended *prev, *next;
        char path[CGROUP_PATH_MAX];
};

/* --- whether groups may be made --- */

/* systemd marks delegated groups with an extended attribute; only root can set the trusted one. */
static bool is_marked(const char *own)
{
        char value[4] = "";
        return (getxattr(own, "trusted.delegate", value, sizeof(value) - 1) > 0 ||
                       getxattr(own, "user.delegate", value, sizeof(value) - 1) > 0) &&
               *value == '1';
}

static struct cgroup_facts look(const char *own)
{
        struct stat st;
        struct cgroup_facts facts = { .is_mounted = *own, .is_root = geteuid() == 0 };
        facts.is_ours = *own && stat(own, &st) == 0 && st.st_uid == geteuid();
        facts.is_delegated = *own && is_marked(own);
        facts.has_systemd = access("/run/systemd/system", F_OK) == 0;
        return facts;
}

static unsigned controllers_of(const char *group, const char *file)
{
        char text[512];
        return cgroup_read(group, file, text, sizeof(text)) < 0 ? 0 : cgroup_parse_controllers(text);
}

int cgroups_probe(bool is_required, unsigned *ret_controllers, char ret_own[CGROUP_PATH_MAX], struct error *error)
{
        *ret_controllers = 0;
        if (cgroup_find_own(ret_own) < 0)
                *ret_own = 0;
        struct cgroup_facts facts = look(ret_own);
        const char *objection = cgroup_objection(&facts, is_required);
        if (objection)
                return error_set(error, -EPERM, "%s", objection);
        if (access(ret_own, W_OK) < 0)
                return error_set(error, -errno, "%s: %s", ret_own, strerror(errno));
        *ret_controllers = controllers_of(ret_own, "cgroup.controllers");
        return 0;
}

/* --- the host's --- */

/* One host at a time makes groups in `own` and removes those of dead hosts, because an empty group may be one that is
 * just being made.  A host that cannot get the lock goes on without it, and removes nothing. */
static int lock_own(const char *own)
{
        struct timespec pause = { .tv_nsec = PAUSE_NS };
        int fd = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int i = 0; fd >= 0 && i < LOCK_MS; i++) {
                if (flock(fd, LOCK_EX | LOCK_NB) == 0)
                        return fd;
                (void)nanosleep(&pause, NULL);
        }
        if (fd >= 0)
                (void)close(fd);
        return -1;
}

static int path_in(char path[CGROUP_PATH_MAX], const char *folder, const char *name)
{
        int n = snprintf(path, CGROUP_PATH_MAX, "%s/%s", folder, name);
        return n < CGROUP_PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Removes the groups of killed hosts: those with our prefix and without a process. */
static void remove_dead(const char *own)
{
        char path[CGROUP_PATH_MAX];
        DIR *folder = opendir(own);
        for (const struct dirent *entry; folder && (entry = readdir(folder));)
                if (entry->d_type == DT_DIR && !strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) &&
                        path_in(path, own, entry->d_name) == 0 && !cgroup_is_populated(path))
                        (void)cgroup_remove(path);
        if (folder)
                (void)closedir(folder);
}

static int make(const char *folder, const char *name, char ret_path[CGROUP_PATH_MAX])
{
        int r = path_in(ret_path, folder, name);
        if (r == 0 && mkdir(ret_path, 0755) < 0 && errno != EEXIST)
                r = -errno;
        return r;
}

static const struct {
        enum cgroup_controller bit;
        const char *give, *take;
} words[] = { { CGROUP_MEMORY, "+memory", "-memory" }, { CGROUP_PIDS, "+pids", "-pids" },
        { CGROUP_CPU, "+cpu", "-cpu" } };

/* Enables the controllers for the groups below, one by one, because a machine may lack some.  Returns those that are
 * enabled. */
static unsigned hand_on(const char *group)
{
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                (void)cgroup_write(group, "cgroup.subtree_control", words[i].give);
        return controllers_of(group, "cgroup.subtree_control");
}

/* Disables controllers.  The kernel refuses while a group below, perhaps another host's, has them enabled. */
static void take_back(const char *group, unsigned controllers)
{
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (controllers & words[i].bit)
                        (void)cgroup_write(group, "cgroup.subtree_control", words[i].take);
}

static int make_ours(struct cgroups *c, const char *name, const char *nonce)
{
        char leaf[CGROUP_PATH_MAX];
        char ours[96];
        (void)snprintf(ours, sizeof(ours), PREFIX "%.64s-%.8s", name, nonce);
        int r = make(c->own, ours, c->made);
        if (r == 0)
                r = make(c->made, "host", leaf);
        if (r == 0)
                r = cgroup_write(leaf, "cgroup.procs", "0");
        if (r == 0)
                r = make(c->made, "runners", c->runners);
        return r;
}

int cgroups_open(struct cgroups *c, const char *name, const char *nonce, bool is_required)
{
        unsigned expected;
        *c = (struct cgroups){ 0 };
        int r = cgroups_probe(is_required, &expected, c->own, &c->why);
        if (r < 0) {
                *c->own = 0;
                return r;
        }
        int lock = lock_own(c->own);
        if (lock >= 0)
                remove_dead(c->own);
        r = make_ours(c, name, nonce);
        if (lock >= 0)
                (void)close(lock);
        if (r < 0) {
                (void)error_set(&c->why, r, "cannot make a control group in %s: %s", c->own, strerror(-r));
                cgroups_close(c);
                return r;
        }
        unsigned before = controllers_of(c->own, "cgroup.subtree_control");
        c->added = hand_on(c->own) & ~before;
        (void)hand_on(c->made);
        c->controllers = hand_on(c->runners);
        if (c->controllers != expected) /* other processes are in the same group, a shell for instance */
                (void)error_set(&c->why, 0,
                        "other processes are in the control group %s as well, so not all of its "
                        "controllers can be used; give the host a group of its own",
                        c->own);
        return 0;
}

void cgroups_close(struct cgroups *c)
{
        struct cgroup_ended *e, *next;
        DL_FOREACH_SAFE (c->ended, e, next) {
                DL_DELETE(c->ended, e);
                free(e);
        }
        /* Moves the process back, if the kernel lets it, so that our groups can be removed; if not, the next host
         * removes them.  A group with processes must not enable controllers, so those that we enabled are disabled
         * first. */
        if (*c->made) {
                (void)cgroup_remove(c->runners);
                take_back(c->made, CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU);
                take_back(c->own, c->added);
                (void)cgroup_write(c->own, "cgroup.procs", "0");
                (void)cgroup_remove(c->made);
        }
        *c->own = *c->made = *c->runners = 0;
        c->controllers = 0;
}

/* --- a runner's --- */

int cgroups_add(
        struct cgroups *c, const struct runner_start *start, char ret_group[CGROUP_PATH_MAX], struct error *error)
{
        struct cgroup_file files[CGROUP_FILES_MAX];
        char name[96];
        *ret_group = 0;
        if (!*c->runners)
                return 0;
        (void)snprintf(name, sizeof(name), "%.64s.%" PRIu64, start->handler, ++c->count);
        int r = make(c->runners, name, ret_group);
        size_t count = r < 0 ? 0 : cgroup_limits(start, c->controllers, files);
        for (size_t i = 0; r == 0 && i < count; i++) {
                r = cgroup_write(ret_group, files[i].name, files[i].text);
                if (r < 0 && files[i].is_optional)
                        r = 0;
        }
        if (r == 0)
                return 0;
        (void)error_set(error, r, "control group %s/%s: %s", c->runners, name, strerror(-r));
        (void)rmdir(ret_group);
        *ret_group = 0;
        return r;
}

void cgroups_end(struct cgroups *c, const char *group)
{
        (void)cgroup_kill(group);
        if (cgroup_remove(group) >= 0 || !*c->runners)
                return;
        struct cgroup_ended *e = memory_zero(1, sizeof(*e));
        (void)snprintf(e->path, sizeof(e->path), "%s", group);
        DL_APPEND(c->ended, e);
}

void cgroups_sweep(struct cgroups *c)
{
        struct cgroup_ended *e, *next;
        DL_FOREACH_SAFE (c->ended, e, next) {
                /* Processes that were forked during the kill are killed now. */
                (void)cgroup_kill(e->path);
                if (cgroup_remove(e->path) < 0 && errno == EBUSY)
                        continue;
                DL_DELETE(c->ended, e);
                free(e);
        }
}
