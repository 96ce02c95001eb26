#include "host/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "staging-"
#define TRIES  100

/* Plain files only: a host puts nothing else there, and what somebody else has put there is not ours to remove. */
static void empty(int folder_fd)
{
        int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        if (!folder) {
                if (fd >= 0)
                        (void)close(fd);
                return;
        }
        for (const struct dirent *entry; (entry = readdir(folder));)
                (void)unlinkat(folder_fd, entry->d_name, 0);
        (void)closedir(folder);
}

static void remove_if_dead(int state_fd, const char *name)
{
        int fd = openat(state_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
                empty(fd);
                (void)unlinkat(state_fd, name, AT_REMOVEDIR);
        }
        (void)close(fd);
}

static void sweep(const char *state)
{
        DIR *folder = opendir(state);
        if (!folder)
                return;
        for (const struct dirent *entry; (entry = readdir(folder));)
                if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
                        remove_if_dead(dirfd(folder), entry->d_name);
        (void)closedir(folder);
}

/* A new folder, locked.  -EAGAIN: another that started at the same moment found it before it was locked. */
static int make(const char *state, char ret_path[STAGING_PATH_MAX])
{
        struct stat found;
        (void)snprintf(ret_path, STAGING_PATH_MAX, "%s/" PREFIX "XXXXXX", state);
        if (!mkdtemp(ret_path))
                return -errno;
        int fd = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -EAGAIN : -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &found) == 0 && found.st_nlink > 0)
                return fd;
        (void)close(fd);
        return -EAGAIN;
}

int staging_open(const char *state, char ret_path[STAGING_PATH_MAX], struct error *error)
{
        int fd = -EAGAIN;
        sweep(state);
        for (int i = 0; i < TRIES && fd == -EAGAIN; i++)
                fd = make(state, ret_path);
        if (fd >= 0)
                return fd;
        *ret_path = 0;
        return error_set(error, fd, "state folder %s: %s", state, strerror(-fd));
}

void staging_close(const char *path, int fd)
{
        (void)rmdir(path);
        (void)close(fd);
}
