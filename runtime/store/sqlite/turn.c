#include "store/sqlite/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PATIENCE_NS (5 * NS_PER_S)

static void nap_us(long us)
{
        struct timespec t = { .tv_nsec = us * 1000 };
        (void)nanosleep(&t, NULL);
}

int turn_open(struct turn *turn, const char *path, struct error *error)
{
        *turn = (struct turn){ .patience_ns = PATIENCE_NS };
        /* Whoever may use the file may wait for it, so the mode is the umask's affair, as the database's own is. */
        turn->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (turn->fd < 0)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        return 0;
}

void turn_close(struct turn *turn)
{
        if (turn->fd >= 0)
                (void)close(turn->fd);
        turn->fd = -1;
}

int turn_open_alone(struct turn *turn, struct error *error)
{
        uint64_t end_ns = clock_boot_ns() + turn->patience_ns;
        while (flock(turn->fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return error_set(error, -errno, "cannot lock the store's turn file: %s", strerror(errno));
                if (clock_boot_ns() > end_ns || __atomic_load_n(turn->is_stopping, __ATOMIC_RELAXED))
                        return error_set(error, -EBUSY, "another process has been opening the store for too long");
                nap_us(500);
        }
        return 0;
}

void turn_opened(struct turn *turn)
{
        (void)flock(turn->fd, LOCK_UN);
}

static void lock(struct turn *turn, short type)
{
        struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };
        (void)fcntl(turn->fd, F_OFD_SETLK, &l);
}

int turn_busy(void *data, int count)
{
        struct turn *turn = data;
        uint64_t now_ns = clock_boot_ns();
        if (!turn->is_waiting) {
                turn->is_waiting = true;
                turn->waiting_since_ns = now_ns;
                lock(turn, F_RDLCK);
        }
        if (now_ns - turn->waiting_since_ns > turn->patience_ns || __atomic_load_n(turn->is_stopping, __ATOMIC_RELAXED))
                return 0;
        /* Jitter keeps several that wait from asking at the same moments. */
        nap_us(40 + (long)((now_ns >> 10) % (count < 4 ? 80 : 250)));
        return 1;
}

void turn_got(struct turn *turn)
{
        if (!turn->is_waiting)
                return;
        turn->is_waiting = false;
        lock(turn, F_UNLCK);
}

void turn_yield(struct turn *turn)
{
        struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        if (fcntl(turn->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK)
                nap_us(350);
}
