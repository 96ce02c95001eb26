#include "host/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/hash.h"

static bool same_stat(const struct stat *a, const struct stat *b)
{
        return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
               a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
               a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
        while (size) {
                ssize_t n = write(fd, data, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                data += n;
                size -= (size_t)n;
        }
        return 0;
}

/* Copies until end of file, hashing on the way; to -1, it only hashes. */
static int copy_bytes(int from, int to, uint64_t *ret_hash, uint64_t *ret_size)
{
        uint8_t chunk[65536];
        uint64_t hash = HASH_START;
        uint64_t size = 0;
        for (;;) {
                ssize_t n = read(from, chunk, sizeof(chunk));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                int r = to < 0 ? 0 : write_all(to, chunk, (size_t)n);
                if (r < 0)
                        return r;
                hash = hash_bytes(hash, chunk, (size_t)n);
                size += (uint64_t)n;
        }
        *ret_hash = hash;
        *ret_size = size;
        return 0;
}

static int open_original(const char *path, struct stat *ret_stat, struct error *error)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return error_set(error, -errno, "plugin %s: cannot open it: %s", path, strerror(errno));
        if (fstat(fd, ret_stat) < 0 || !S_ISREG(ret_stat->st_mode)) {
                (void)close(fd);
                return error_set(error, -EINVAL, "plugin %s: not a regular file", path);
        }
        if ((uint64_t)ret_stat->st_size > STAGE_FILE_MAX) {
                (void)close(fd);
                return error_set(error, -EFBIG, "plugin %s: larger than 512 MiB", path);
        }
        return fd;
}

static int check_folder(const char *folder, struct error *error)
{
        struct statvfs fs;
        if (statvfs(folder, &fs) < 0)
                return error_set(error, -errno, "state folder %s: %s", folder, strerror(errno));
        if (fs.f_flag & ST_NOEXEC)
                return error_set(error, -EACCES,
                        "state folder %s: mounted noexec, so no plugin can be loaded from it; choose another", folder);
        return 0;
}

static void set_label(struct staged *staged, const char *path)
{
        const char *slash = strrchr(path, '/');
        (void)snprintf(staged->label, sizeof(staged->label), "%.255s", slash ? slash + 1 : path);
}

/* Whoever installs with cp instead of rename may still be writing. */
static int check_unchanged(
        int fd, const struct stat *before, uint64_t size_bytes, const char *path, struct error *error)
{
        struct stat after;
        if (fstat(fd, &after) < 0 || !same_stat(before, &after) || (uint64_t)after.st_size != size_bytes)
                return error_set(error, -ETXTBSY,
                        "plugin %s: it changed while it was read; install it by rename (mv), not by cp", path);
        return 0;
}

int stage_hash(const char *path, uint64_t *ret_hash, struct error *error)
{
        struct stat before = { 0 };
        uint64_t hash;
        uint64_t size_bytes;
        int fd = open_original(path, &before, error);
        if (fd < 0)
                return fd;
        int r = copy_bytes(fd, -1, &hash, &size_bytes);
        if (r < 0)
                (void)error_set(error, r, "plugin %s: cannot read it: %s", path, strerror(-r));
        else
                r = check_unchanged(fd, &before, size_bytes, path, error);
        (void)close(fd);
        if (r == 0)
                *ret_hash = hash;
        return r;
}

/* The folder of `path`, which belongs to `owner`. */
static int check_folder_writers(const char *path, uid_t owner, struct error *error)
{
        char folder[PATH_MAX];
        struct stat st;
        (void)snprintf(folder, sizeof(folder), "%s", path);
        char *slash = strrchr(folder, '/');
        if (slash)
                slash[slash == folder] = 0;
        if (stat(slash ? folder : ".", &st) < 0)
                return error_set(error, -errno, "plugin folder %s: %s", folder, strerror(errno));
        bool is_ours = owner == 0 || owner == geteuid();
        if (!(st.st_mode & S_IWOTH) || ((st.st_mode & S_ISVTX) && is_ours))
                return 0;
        return error_set(error, -EPERM,
                "plugin %s: everybody on this machine can write to its folder; chmod o-w %s, or set "
                "reload.world_writable = \"allow\"",
                path, folder);
}

int stage_check_writers(const char *path, struct error *error)
{
        char real[PATH_MAX];
        struct stat st;
        if (!realpath(path, real) || stat(real, &st) < 0)
                return error_set(error, -errno, "plugin %s: cannot open it: %s", path, strerror(errno));
        if (st.st_mode & S_IWOTH)
                return error_set(error, -EPERM,
                        "plugin %s: everybody on this machine can write to it; chmod o-w %s, or set "
                        "reload.world_writable = \"allow\"",
                        path, real);
        int r = check_folder_writers(path, st.st_uid, error);
        return r < 0 ? r : check_folder_writers(real, st.st_uid, error);
}

int stage_copy(const char *path, const char *folder, struct staged *ret, struct error *error)
{
        struct staged staged = { 0 };
        struct stat before = { 0 };
        char temporary[4096 + 64];
        int r = check_folder(folder, error);
        if (r < 0)
                return r;
        int from = open_original(path, &before, error);
        if (from < 0)
                return from;
        set_label(&staged, path);
        (void)snprintf(temporary, sizeof(temporary), "%s/.staging-XXXXXX", folder);
        int to = mkostemp(temporary, O_CLOEXEC);
        if (to < 0) {
                r = error_set(error, -errno, "state folder %s: cannot write to it: %s", folder, strerror(errno));
                (void)close(from);
                return r;
        }
        r = copy_bytes(from, to, &staged.hash, &staged.size_bytes);
        if (r < 0) {
                (void)error_set(error, r, "plugin %s: cannot copy it to %s: %s", path, folder, strerror(-r));
                goto out;
        }
        r = check_unchanged(from, &before, staged.size_bytes, path, error);
        if (r < 0)
                goto out;
        /* The longest file name, with the hash before it, would be longer than any may be. */
        (void)snprintf(staged.path, sizeof(staged.path), "%s/%016" PRIx64 "-%s-%.200s", folder, staged.hash,
                strrchr(temporary, '-') + 1, staged.label);
        /* Whoever may read the original may read the copy: the runner may be another user by then. */
        if (fchmod(to, 0500 | (before.st_mode & 0444)) < 0 || rename(temporary, staged.path) < 0) {
                r = error_set(error, -errno, "state folder %s: %s", folder, strerror(errno));
                goto out;
        }
        *ret = staged;
out:
        if (r < 0)
                (void)unlink(temporary);
        (void)close(to);
        (void)close(from);
        return r;
}

void stage_remove(const struct staged *staged)
{
        (void)unlink(staged->path);
}

int stage_temporary(const char *path, struct staged *ret, struct error *error)
{
        const char *parent = getenv("TMPDIR");
        char folder[2048];
        if (!parent || !*parent)
                parent = "/tmp";
        int n = snprintf(folder, sizeof(folder), "%s/quiver-XXXXXX", parent);
        if (n < 0 || (size_t)n >= sizeof(folder))
                return error_set(error, -ENAMETOOLONG, "the path in $TMPDIR is too long");
        if (!mkdtemp(folder))
                return error_set(error, -errno, "cannot make a temporary folder in %s: %s", parent, strerror(errno));
        /* A runner may be another user: it has to get through, but has nothing to see. */
        (void)chmod(folder, 0711);
        int r = stage_copy(path, folder, ret, error);
        if (r < 0)
                (void)rmdir(folder);
        return r;
}

void stage_remove_temporary(const struct staged *staged)
{
        char folder[sizeof(staged->path)];
        stage_remove(staged);
        (void)snprintf(folder, sizeof(folder), "%s", staged->path);
        char *slash = strrchr(folder, '/');
        if (slash) {
                *slash = 0;
                (void)rmdir(folder);
        }
}
