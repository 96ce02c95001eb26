#include "host/control_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG       16
#define LOCK_TRIES    100
#define LOCK_PAUSE_NS 10000000L

bool control_socket_is_name(const char *file)
{
        size_t size = strlen(file);
        size_t suffix = strlen(CONTROL_SUFFIX);
        return size > suffix && !strcmp(file + size - suffix, CONTROL_SUFFIX);
}

static int set_address(struct sockaddr_un *address, int folder_fd, const char *file)
{
        *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        int n = snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", folder_fd, file);
        return n < 0 || (size_t)n >= sizeof(address->sun_path) ? -ENAMETOOLONG : 0;
}

int control_socket_connect(int folder_fd, const char *file)
{
        struct sockaddr_un address;
        int r = set_address(&address, folder_fd, file);
        if (r < 0)
                return r;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
                r = -errno;
                (void)close(fd);
                return r;
        }
        return fd;
}

/* Whether the file is the socket of a dead host: a socket that refuses connections.  The type is checked because other
 * files refuse connections too, and must not be removed. */
static bool is_left_behind(int folder_fd, const char *file)
{
        struct stat found;
        if (fstatat(folder_fd, file, &found, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISSOCK(found.st_mode))
                return false;
        int fd = control_socket_connect(folder_fd, file);
        if (fd >= 0)
                (void)close(fd);
        return fd == -ECONNREFUSED;
}

static void sweep(int folder_fd)
{
        int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        if (!folder) {
                if (fd >= 0)
                        (void)close(fd);
                return;
        }
        for (const struct dirent *entry; (entry = readdir(folder));)
                if (control_socket_is_name(entry->d_name) && is_left_behind(folder_fd, entry->d_name))
                        (void)unlinkat(folder_fd, entry->d_name, 0);
        (void)closedir(folder);
}

static int listen_as(struct control_socket *s, const char *name)
{
        struct sockaddr_un address;
        (void)snprintf(s->file, sizeof(s->file), "%.*s%s", CONTROL_NAME_MAX, name, CONTROL_SUFFIX);
        int r = set_address(&address, s->folder_fd, s->file);
        if (r < 0)
                return r;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* fchmod() comes before bind(): the file gets the socket's mode, so it is never open to others. */
        if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
                listen(fd, BACKLOG) < 0 || fstatat(s->folder_fd, s->file, &s->made, AT_SYMLINK_NOFOLLOW) < 0) {
                r = -errno;
                (void)close(fd);
                return r;
        }
        s->fd = fd;
        return 0;
}

/* Lets one host at a time sweep and bind: otherwise two hosts could choose the same free name, or one could remove the
 * other's socket between bind() and listen().  The folder itself is locked, which needs no file.  The wait is bounded,
 * because the holder may be a stopped process. */
static bool lock(int folder_fd)
{
        static const struct timespec pause = { 0, LOCK_PAUSE_NS };
        for (int i = 0; i < LOCK_TRIES; i++) {
                if (flock(folder_fd, LOCK_EX | LOCK_NB) == 0)
                        return true;
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return false;
                (void)nanosleep(&pause, NULL);
        }
        return false;
}

int control_socket_open(
        struct control_socket *s, const char *folder, const char *name, const char *second, struct error *error)
{
        *s = (struct control_socket){ .fd = -1 };
        s->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->folder_fd < 0)
                return error_set(error, -errno, "state folder %s: %s", folder, strerror(errno));
        bool is_locked = lock(s->folder_fd);
        if (is_locked)
                sweep(s->folder_fd);
        int r = is_locked ? listen_as(s, name) : -EADDRINUSE;
        if (r == -EADDRINUSE)
                r = listen_as(s, second);
        if (is_locked)
                (void)flock(s->folder_fd, LOCK_UN);
        if (r < 0) {
                (void)close(s->folder_fd);
                return error_set(error, r, "control socket %s/%s: %s", folder, s->file, strerror(-r));
        }
        return 0;
}

void control_socket_remove(struct control_socket *s)
{
        struct stat found;
        if (fstatat(s->folder_fd, s->file, &found, AT_SYMLINK_NOFOLLOW) == 0 && found.st_ino == s->made.st_ino &&
                found.st_dev == s->made.st_dev)
                (void)unlinkat(s->folder_fd, s->file, 0);
        (void)close(s->folder_fd);
}
