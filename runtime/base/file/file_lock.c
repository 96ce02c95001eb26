#include "base/file/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PAUSE_NS 5000000L

int file_lock_take(int fd, enum file_lock_kind kind, uint64_t wait_ms)
{
        static const struct timespec pause = { 0, PAUSE_NS };
        uint64_t until_ms = clock_boot_ms() + wait_ms;
        struct flock lock = { .l_type = kind == FILE_LOCK_SHARED ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET };
        while (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
                if (errno != EAGAIN && errno != EACCES && errno != EINTR)
                        return -errno;
                if (clock_boot_ms() >= until_ms)
                        return -EAGAIN;
                (void)nanosleep(&pause, NULL);
        }
        return 0;
}

void file_lock_drop(int fd)
{
        struct flock lock = { .l_type = F_UNLCK, .l_whence = SEEK_SET };
        (void)fcntl(fd, F_OFD_SETLK, &lock);
}

int file_lock_share(int fd)
{
        char path[32];
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        int shared = open(path, O_RDONLY | O_CLOEXEC);
        if (shared < 0)
                return -errno;
        int r = file_lock_take(shared, FILE_LOCK_SHARED, 0);
        if (r == 0)
                return shared;
        (void)close(shared);
        return r;
}
