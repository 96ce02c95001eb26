/* landlock.c: sandbox_confine().  glibc has no wrappers, so the three system calls are made by number. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner/sandbox.h"

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14) /* since Landlock ABI 3; Debian 12's headers lack it */
#endif

/* Missing in the same headers: TCP since ABI 4, signals and abstract sockets since 6. */
#define NETWORK_VERSION            4
#define ACCESS_NET_BIND_TCP        (1ULL << 0)
#define ACCESS_NET_CONNECT_TCP     (1ULL << 1)
#define SCOPE_VERSION              6
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL               (1ULL << 1)

#define READING (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITING                                                                                                        \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |              \
                LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |             \
                LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |          \
                LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE)
/* The rights that apply to a path that is no folder; the kernel refuses the others. */
#define FOR_FILES                                                                                                      \
        (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                   \
                LANDLOCK_ACCESS_FS_TRUNCATE)

/* Paths that are needed to load libraries, read time zones and symbolise a backtrace.  Not all exist everywhere. */
static const char *const always_read[] = { "/lib", "/lib64", "/usr/lib", "/usr/local/lib", "/etc/ld.so.cache",
        "/etc/localtime", "/usr/share/zoneinfo", "/proc/self", "/dev/null", "/dev/zero", "/dev/urandom" };
static const char *const always_write[] = { "/dev/null" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct ruleset {
        int fd;
        uint64_t known; /* rights that this kernel's Landlock supports */
};

static uint64_t rights_of_version(unsigned version)
{
        uint64_t rights = READING | WRITING;
        if (version < 2)
                rights &= ~LANDLOCK_ACCESS_FS_REFER;
        if (version < 3)
                rights &= ~LANDLOCK_ACCESS_FS_TRUNCATE;
        return rights;
}

static int allow(const struct ruleset *set, const char *path, uint64_t rights)
{
        struct stat st;
        int r = 0;
        int fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
                rights &= FOR_FILES;
        struct landlock_path_beneath_attr rule = { .allowed_access = rights & set->known, .parent_fd = fd };
        if (syscall(SYS_landlock_add_rule, set->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
                r = -errno;
        (void)close(fd);
        return r;
}

/* A configured path must exist: otherwise a misspelt one would only show when a task fails. */
static int allow_listed(
        const struct ruleset *set, const char *const *paths, size_t count, uint64_t rights, struct error *error)
{
        for (size_t i = 0; i < count; i++) {
                int r = allow(set, paths[i], rights);
                if (r < 0)
                        return error_set(error, r, "cannot allow the path %s: %s", paths[i], strerror(-r));
        }
        return 0;
}

static void allow_always(const struct ruleset *set)
{
        for (size_t i = 0; i < COUNT(always_read); i++)
                (void)allow(set, always_read[i], READING);
        for (size_t i = 0; i < COUNT(always_write); i++)
                (void)allow(set, always_write[i], LANDLOCK_ACCESS_FS_WRITE_FILE);
}

/* The kernel's struct since ABI 6; an older kernel is given the beginning that it knows. */
struct landlock_wishes {
        uint64_t files, network, scoped;
};

static size_t size_of_version(unsigned version)
{
        return version >= 6 ? sizeof(struct landlock_wishes) : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

static void note(struct buffer *notes, const char *text)
{
        buffer_printf(notes, "%s%s", notes->size ? "; " : "", text);
}

static int allow_paths(const struct ruleset *set, const struct runner_start *start, struct error *error)
{
        allow_always(set);
        int r = allow_listed(set, &start->plugin, 1, READING, error);
        if (!r)
                r = allow_listed(set, start->paths_read, start->paths_read_count, READING, error);
        if (!r)
                r = allow_listed(set, start->paths_write, start->paths_write_count, READING | WRITING, error);
        return r;
}

/* Decides what to ask the kernel for.  0, or -ENOSYS with the text set. */
static int wish(const struct runner_start *start, bool has_network_left, unsigned version, struct landlock_wishes *ret,
        struct buffer *notes, struct error *error)
{
        bool has_paths = start->paths_read_count || start->paths_write_count;
        *ret = (struct landlock_wishes){ 0 };
        if (has_network_left && version < NETWORK_VERSION)
                return error_set(error, -ENOSYS,
                        "limits.network = \"none\": this machine allows no network namespace, and its kernel has no "
                        "Landlock for TCP; allow user namespaces, start the host as root, or remove the setting");
        if (has_network_left) {
                ret->network = ACCESS_NET_BIND_TCP | ACCESS_NET_CONNECT_TCP;
                note(notes, "limits.network closes TCP alone: this machine allows no network namespace, and UDP stays "
                            "open");
        }
        if (has_paths && version < 1)
                note(notes, "paths are not confined: this kernel has no Landlock");
        if (has_paths && version >= 1) {
                ret->files = rights_of_version(version);
                ret->scoped = version >= SCOPE_VERSION ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0;
        }
        if (has_paths && version >= 1 && version < SCOPE_VERSION)
                note(notes, "signals to the host are not confined: this kernel's Landlock is too old for it");
        return 0;
}

unsigned sandbox_landlock_version(void)
{
        long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        return version < 0 ? 0 : (unsigned)version;
}

int sandbox_confine(const struct runner_start *start, bool has_network_left, struct buffer *notes, struct error *error)
{
        struct landlock_wishes wishes;
        if (!start->paths_read_count && !start->paths_write_count && !has_network_left)
                return 0;
        unsigned version = sandbox_landlock_version();
        int r = wish(start, has_network_left, version, &wishes, notes, error);
        if (r < 0 || !(wishes.files | wishes.network | wishes.scoped))
                return r;
        struct ruleset set = { .known = wishes.files };
        set.fd = (int)syscall(SYS_landlock_create_ruleset, &wishes, size_of_version(version), 0);
        if (set.fd < 0)
                return error_set(error, -errno, "Landlock: cannot make a ruleset: %s", strerror(errno));
        if (wishes.files)
                r = allow_paths(&set, start, error);
        if (!r && syscall(SYS_landlock_restrict_self, set.fd, 0) < 0)
                r = error_set(error, -errno, "Landlock: cannot confine: %s", strerror(errno));
        (void)close(set.fd);
        return r;
}
