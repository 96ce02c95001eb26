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

static uint64_t rights_of_version(long version)
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

int sandbox_confine(const struct runner_start *start, struct buffer *notes, struct error *error)
{
        if (!start->paths_read_count && !start->paths_write_count)
                return 0;
        long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        if (version < 1) {
                buffer_printf(notes, "%spaths are not confined: this kernel has no Landlock", notes->size ? "; " : "");
                return 0;
        }
        struct landlock_ruleset_attr attributes = { .handled_access_fs = rights_of_version(version) };
        struct ruleset set = { .known = attributes.handled_access_fs };
        set.fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
        if (set.fd < 0)
                return error_set(error, -errno, "Landlock: cannot make a ruleset: %s", strerror(errno));
        allow_always(&set);
        int r = allow_listed(&set, &start->plugin, 1, READING, error);
        if (!r)
                r = allow_listed(&set, start->paths_read, start->paths_read_count, READING, error);
        if (!r)
                r = allow_listed(&set, start->paths_write, start->paths_write_count, READING | WRITING, error);
        if (!r && syscall(SYS_landlock_restrict_self, set.fd, 0) < 0)
                r = error_set(error, -errno, "Landlock: cannot confine: %s", strerror(errno));
        (void)close(set.fd);
        return r;
}
