#include "host/handler/plugin_copies.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_trust.h"
#include "base/units.h"

#define PREFIX "staging-"
#define TRIES  100

/* Removes plain files only: a host puts nothing else there, and other things are not ours to remove. */
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

static void sweep(int state_fd)
{
        int fd = openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        if (!folder) {
                if (fd >= 0)
                        (void)close(fd);
                return;
        }
        for (const struct dirent *entry; (entry = readdir(folder));)
                if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
                        remove_if_dead(dirfd(folder), entry->d_name);
        (void)closedir(folder);
}

/* Makes and locks a new folder.  -EAGAIN: the name is taken, or another starting host swept it before it was locked. */
static int make(int state_fd, const char *state, char ret_path[PLUGIN_COPIES_PATH_MAX])
{
        struct stat found;
        uint8_t random[6];
        char name[sizeof(PREFIX) + 2 * sizeof(random)] = PREFIX;
        if (getrandom(random, sizeof(random), 0) != sizeof(random))
                return -EIO;
        (void)units_hex(name + strlen(PREFIX), random, sizeof(random));
        if (mkdirat(state_fd, name, 0700) < 0)
                return errno == EEXIST ? -EAGAIN : -errno;
        int fd = openat(state_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -EAGAIN : -errno;
        (void)snprintf(ret_path, PLUGIN_COPIES_PATH_MAX, "%s/%s", state, name);
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &found) == 0 && found.st_nlink > 0)
                return fd;
        (void)close(fd);
        return -EAGAIN;
}

int plugin_copies_open(const char *state, char ret_path[PLUGIN_COPIES_PATH_MAX], struct error *error)
{
        struct file_trust trust;
        int fd = -EAGAIN;
        *ret_path = 0;
        int state_fd = file_trust_open(state, FILE_TRUST_FOLDER, &trust, error);
        if (state_fd < 0)
                return error_prefix(error, state_fd, "state folder %s", state);
        if (trust.verdict != FILE_TRUST_SOUND) {
                (void)close(state_fd);
                return error_set(error, -EPERM, "state folder %s: %s", state, trust.why.text);
        }
        sweep(state_fd);
        for (int i = 0; i < TRIES && fd == -EAGAIN; i++)
                fd = make(state_fd, state, ret_path);
        (void)close(state_fd);
        if (fd >= 0)
                return fd;
        *ret_path = 0;
        return error_set(error, fd, "state folder %s: %s%s", state, strerror(-fd),
                fd == -EACCES ? "; start the host as the user that it belongs to, or change the setting state" : "");
}

void plugin_copies_close(const char *path, int fd)
{
        (void)rmdir(path);
        (void)close(fd);
}
