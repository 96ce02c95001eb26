#include "coord/local/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_trust.h"
#include "coord/local/identity.h"

bool folder_is_hopeless(int status)
{
        return status == -EACCES || status == -EPERM || status == -EPROTO || status == -EINVAL || status == -ENOTDIR ||
               status == -EROFS || status == -ENAMETOOLONG;
}

static int failed(struct error *error, const char *path)
{
        return error_set(error, -errno, "%s: %s", path, strerror(errno));
}

static int check_own(int fd, const char *path, struct error *error)
{
        struct stat st;
        if (fstat(fd, &st) < 0)
                return failed(error, path);
        if (st.st_uid != geteuid())
                return error_set(error, -EACCES,
                        "%s: belongs to user %u, and this is user %u; all hosts of an app run as one user", path,
                        st.st_uid, geteuid());
        if (st.st_mode & (S_IRWXG | S_IRWXO))
                return error_set(error, -EACCES, "%s: other users can enter it; chmod 0700 %s", path, path);
        return 0;
}

static int open_above(const char *where, struct error *error)
{
        struct file_trust trust;
        if (mkdir(where, 0700) < 0 && errno != EEXIST) {
                if (errno == ENOENT)
                        return error_set(
                                error, -EINVAL, "%s: the folder above it does not exist; make it first", where);
                return failed(error, where);
        }
        /* Anybody who can write to the parent folder could replace ours. */
        int fd = file_trust_open(where, FILE_TRUST_FOLDER_ABOVE, &trust, error);
        if (fd < 0)
                return error_prefix(error, fd, "%s", where);
        if (trust.verdict == FILE_TRUST_SOUND)
                return fd;
        (void)close(fd);
        return error_set(error, -EACCES, "%s: %s", where, trust.why.text);
}

int folder_open(struct folder *folder, const char *where, const char *app, struct error *error)
{
        char real[PATH_MAX];
        char name[80];
        folder->fd = -1;
        if (!where[0])
                return error_set(error, -EINVAL, "coordination url: local: names no folder");
        int above = open_above(where, error);
        if (above < 0)
                return above;
        (void)snprintf(name, sizeof(name), "coord-%s", app);
        int r = 0;
        if (!realpath(where, real) || (mkdirat(above, name, 0700) < 0 && errno != EEXIST))
                r = failed(error, where);
        else if (snprintf(folder->path, sizeof(folder->path), "%s/%s", real, name) >= (int)sizeof(folder->path))
                r = error_set(error, -ENAMETOOLONG, "%s: the path is too long", where);
        if (!r) {
                folder->fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = folder->fd < 0 ? failed(error, folder->path) : check_own(folder->fd, folder->path, error);
        }
        (void)close(above);
        if (r)
                folder_close(folder);
        return r;
}

void folder_close(struct folder *folder)
{
        if (folder->fd >= 0)
                (void)close(folder->fd);
        folder->fd = -1;
}

void folder_name(char name[FOLDER_NAME_MAX], const char *what, const uint8_t nonce[TREE_NONCE_SIZE])
{
        int at = snprintf(name, FOLDER_NAME_MAX, "%s-", what);
        for (unsigned i = 0; i < TREE_NONCE_SIZE; i++)
                at += snprintf(name + at, FOLDER_NAME_MAX - (size_t)at, "%02x", nonce[i]);
}

void folder_sweep(const struct folder *folder, const uint8_t nonce[TREE_NONCE_SIZE])
{
        char name[FOLDER_NAME_MAX];
        folder_name(name, "bell", nonce);
        (void)unlinkat(folder->fd, name, 0);
        folder_name(name, "session", nonce);
        (void)unlinkat(folder->fd, name, 0);
}

void folder_url(const struct folder *folder, const char *where, char *ret_url, size_t size)
{
        char real[PATH_MAX];
        char id[IDENTITY_ID_MAX];
        struct identity_facts facts;
        identity_read_facts(&facts);
        bool has_id = folder->fd >= 0 && identity_ensure(folder->fd, &facts, id);
        (void)snprintf(ret_url, size, "local:%s?machine=%s%s%s", realpath(where, real) ? real : where,
                *facts.machine_id ? facts.machine_id : facts.host_name, has_id ? "&id=" : "", has_id ? id : "");
}
