#include "host/handler/plugin_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file/file_trust.h"
#include "base/hash.h"
#include "config/config.h"

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

/* Copies until end of file and hashes the bytes.  With `to` -1 it only hashes. */
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

enum plugin_copy_source plugin_copy_source_of(const struct config *config)
{
        return config->reload.world_writable == WORLD_WRITABLE_ALLOW ? PLUGIN_ANYBODYS : PLUGIN_TRUSTED;
}

/* Checks and reads through one descriptor, so that the file cannot be replaced in between. */
static int open_original(const char *path, enum plugin_copy_source source, struct stat *ret_stat, struct error *error)
{
        struct file_trust trust;
        int fd = file_trust_open(path, FILE_TRUST_OF_FILE, &trust, error);
        if (fd < 0)
                return error_set(error, fd, "plugin %s: cannot open it: %s", path, strerror(-fd));
        if (source == PLUGIN_TRUSTED && trust.verdict != FILE_TRUST_SOUND) {
                (void)close(fd);
                return error_set(
                        error, -EPERM, "plugin %s: %s, or set reload.world_writable = \"allow\"", path, trust.why.text);
        }
        if (fstat(fd, ret_stat) < 0 || !S_ISREG(ret_stat->st_mode)) {
                (void)close(fd);
                return error_set(error, -EINVAL, "plugin %s: not a regular file", path);
        }
        if ((uint64_t)ret_stat->st_size > PLUGIN_FILE_MAX) {
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

static void set_label(struct plugin_copy *copy, const char *path)
{
        const char *slash = strrchr(path, '/');
        (void)snprintf(copy->label, sizeof(copy->label), "%.255s", slash ? slash + 1 : path);
}

/* An installer that uses cp instead of rename may still be writing. */
static int check_unchanged(
        int fd, const struct stat *before, uint64_t size_bytes, const char *path, struct error *error)
{
        struct stat after;
        if (fstat(fd, &after) < 0 || !same_stat(before, &after) || (uint64_t)after.st_size != size_bytes)
                return error_set(error, -ETXTBSY,
                        "plugin %s: it changed while it was read; install it by rename (mv), not by cp", path);
        return 0;
}

int plugin_copy_hash(const char *path, enum plugin_copy_source source, uint64_t *ret_hash, struct error *error)
{
        struct stat before = { 0 };
        uint64_t hash;
        uint64_t size_bytes;
        int fd = open_original(path, source, &before, error);
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

int plugin_copy_make(const char *path, enum plugin_copy_source source, const char *folder, struct plugin_copy *ret,
        struct error *error)
{
        struct plugin_copy copy = { 0 };
        struct stat before = { 0 };
        char temporary[4096 + 64];
        int r = check_folder(folder, error);
        if (r < 0)
                return r;
        int from = open_original(path, source, &before, error);
        if (from < 0)
                return from;
        set_label(&copy, path);
        (void)snprintf(temporary, sizeof(temporary), "%s/.staging-XXXXXX", folder);
        int to = mkostemp(temporary, O_CLOEXEC);
        if (to < 0) {
                r = error_set(error, -errno, "state folder %s: cannot write to it: %s", folder, strerror(errno));
                (void)close(from);
                return r;
        }
        r = copy_bytes(from, to, &copy.hash, &copy.size_bytes);
        if (r < 0) {
                (void)error_set(error, r, "plugin %s: cannot copy it to %s: %s", path, folder, strerror(-r));
                goto out;
        }
        r = check_unchanged(from, &before, copy.size_bytes, path, error);
        if (r < 0)
                goto out;
        /* The name is cut: with the hash before it, the longest file name would exceed NAME_MAX. */
        (void)snprintf(copy.path, sizeof(copy.path), "%s/%016" PRIx64 "-%s-%.200s", folder, copy.hash,
                strrchr(temporary, '-') + 1, copy.label);
        /* Readable by all, in a folder that only we can enter.  A runner that changes its user opens the copy before,
         * but loads it through /proc/self/fd, which checks the mode again. */
        if (fchmod(to, 0555) < 0 || rename(temporary, copy.path) < 0) {
                r = error_set(error, -errno, "state folder %s: %s", folder, strerror(errno));
                goto out;
        }
        *ret = copy;
out:
        if (r < 0)
                (void)unlink(temporary);
        (void)close(to);
        (void)close(from);
        return r;
}

void plugin_copy_remove(const struct plugin_copy *copy)
{
        (void)unlink(copy->path);
}

int plugin_copy_make_temporary(
        const char *path, enum plugin_copy_source source, struct plugin_copy *ret, struct error *error)
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
        int r = plugin_copy_make(path, source, folder, ret, error);
        if (r < 0)
                (void)rmdir(folder);
        return r;
}

void plugin_copy_remove_temporary(const struct plugin_copy *copy)
{
        char folder[sizeof(copy->path)];
        plugin_copy_remove(copy);
        (void)snprintf(folder, sizeof(folder), "%s", copy->path);
        char *slash = strrchr(folder, '/');
        if (slash) {
                *slash = 0;
                (void)rmdir(folder);
        }
}
