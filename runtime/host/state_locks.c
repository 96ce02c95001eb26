#include "host/state_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/file_lock.h"
#include "base/file/file_system.h"

#define FILE_MAX 256

static int open_file(int folder_fd, const char *name, const char *suffix)
{
        char file[FILE_MAX];
        (void)snprintf(file, sizeof(file), "%.200s%s", name, suffix);
        int fd = openat(folder_fd, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

/* 0: the pid cannot be read. */
static long read_pid(int fd)
{
        char text[24] = "";
        return pread(fd, text, sizeof(text) - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
}

static void write_pid(int fd)
{
        char text[24];
        int size = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
        /* The pid is for people only; the lock decides. */
        if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)size, 0) < 0)
                return;
}

static int lock_host(struct state_locks *l, const char *folder, const char *name, struct error *error)
{
        l->host_fd = open_file(l->folder_fd, name, ".host");
        if (l->host_fd < 0)
                return error_set(
                        error, l->host_fd, "state folder %s: %s.host: %s", folder, name, strerror(-l->host_fd));
        int r = file_lock_take(l->host_fd, FILE_LOCK_EXCLUSIVE, STATE_LOCKS_WAIT_MS);
        if (r == -EAGAIN)
                return error_set(error, -EADDRINUSE,
                        "a host called %s already runs on the state folder %s (pid %ld); stop that one, or give this "
                        "one another name: quiver run --name NAME",
                        name, folder, read_pid(l->host_fd));
        if (r == 0)
                write_pid(l->host_fd);
        else
                l->why_not = "the file system of the state folder has no locks";
        return 0;
}

static int lock_alive(struct state_locks *l, const char *folder, const char *name, struct error *error)
{
        struct stat st;
        struct statfs fs;
        if (l->why_not)
                return 0;
        l->alive_fd = open_file(l->folder_fd, name, ".alive");
        if (l->alive_fd < 0 || fstat(l->alive_fd, &st) < 0) {
                int r = l->alive_fd < 0 ? l->alive_fd : -errno;
                return error_set(error, r, "state folder %s: %s.alive: %s", folder, name, strerror(-r));
        }
        l->alive_id[0] = st.st_dev;
        l->alive_id[1] = st.st_ino;
        if (fstatfs(l->folder_fd, &fs) < 0 || file_system_network_name((unsigned long)fs.f_type))
                l->why_not = "the state folder is on a network file system";
        else if (file_lock_take(l->alive_fd, FILE_LOCK_EXCLUSIVE, STATE_LOCKS_WAIT_MS) < 0)
                l->why_not = "a process of it is still there, its guard or one that a plugin started";
        l->is_alone = !l->why_not;
        return 0;
}

void state_locks_init(struct state_locks *l)
{
        *l = (struct state_locks){ .folder_fd = -1, .host_fd = -1, .alive_fd = -1 };
}

int state_locks_open(struct state_locks *l, const char *folder, const char *name, struct error *error)
{
        l->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (l->folder_fd < 0)
                return error_set(error, -errno, "state folder %s: %s", folder, strerror(errno));
        int r = lock_host(l, folder, name, error);
        return r < 0 ? r : lock_alive(l, folder, name, error);
}

void state_locks_share(struct state_locks *l)
{
        if (l->alive_fd >= 0)
                file_lock_drop(l->alive_fd);
}

static void close_one(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd);
        *fd = -1;
}

void state_locks_close(struct state_locks *l)
{
        close_one(&l->alive_fd);
        close_one(&l->host_fd);
        close_one(&l->folder_fd);
}
