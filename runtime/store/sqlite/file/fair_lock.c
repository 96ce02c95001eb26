#include "store/sqlite/file/fair_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/sqlite/file/lock_holder.h"

#define PATIENCE_NS (5 * NS_PER_S)
#define SAID_NS     NS_PER_S /* transactions last milliseconds, so this means a hung process, not load */

static void nap_us(long us)
{
        struct timespec t = { .tv_nsec = us * 1000 };
        (void)nanosleep(&t, NULL);
}

int fair_lock_open(struct fair_lock *lock, const char *path, struct error *error)
{
        *lock = (struct fair_lock){ .patience_ns = PATIENCE_NS };
        /* The mode is left to the umask, as for the database: users of the file may also wait for it. */
        lock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (lock->fd < 0)
                return error_set(error, -errno, "%s: %s", path,
                        errno == ELOOP ? "a symbolic link; the file is made here, so remove the link"
                                       : strerror(errno));
        return 0;
}

void fair_lock_close(struct fair_lock *lock)
{
        if (lock->fd >= 0)
                (void)close(lock->fd);
        lock->fd = -1;
}

static int refuse_to_open(const struct fair_lock *lock, struct error *error)
{
        char turn[4200], text[512];
        struct lock_holder holder;
        (void)snprintf(turn, sizeof(turn), "%s-turn", lock->path);
        lock_holder_of_flock(turn, &holder);
        return error_set(error, -EBUSY, "%s: another process has been opening the store for too long: %s", lock->path,
                lock_holder_text(&holder, text, sizeof(text)));
}

int fair_lock_open_alone(struct fair_lock *lock, struct error *error)
{
        uint64_t end_ns = clock_boot_ns() + lock->patience_ns;
        while (flock(lock->fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return error_set(error, -errno, "%s: cannot lock the file: %s", lock->path, strerror(errno));
                if (clock_boot_ns() > end_ns || __atomic_load_n(lock->is_stopping, __ATOMIC_RELAXED))
                        return refuse_to_open(lock, error);
                nap_us(500);
        }
        return 0;
}

void fair_lock_opened(struct fair_lock *lock)
{
        (void)flock(lock->fd, LOCK_UN);
}

static void flock_range(struct fair_lock *lock, short type)
{
        struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };
        (void)fcntl(lock->fd, F_OFD_SETLK, &l);
}

static void say_held(struct fair_lock *lock)
{
        struct lock_holder holder;
        char text[512];
        lock_holder_of_writing(lock->path, &holder);
        log_event(LEVEL_ERROR, "store-held", "store=%s pid=%d process=%s text=%s", LOG_QUOTE(lock->path),
                (int)holder.pid, LOG_QUOTE(holder.name), LOG_QUOTE(lock_holder_text(&holder, text, sizeof(text))));
        lock->is_held_said = true;
        lock->held_since_ns = lock->waiting_since_ns;
}

int fair_lock_busy(void *data, int count)
{
        struct fair_lock *lock = data;
        uint64_t now_ns = clock_boot_ns();
        if (!lock->is_waiting) {
                lock->is_waiting = true;
                lock->waiting_since_ns = now_ns;
                flock_range(lock, F_RDLCK);
        }
        if (now_ns - lock->waiting_since_ns > lock->patience_ns || __atomic_load_n(lock->is_stopping, __ATOMIC_RELAXED))
                return 0;
        if (lock->is_host && !lock->is_held_said && now_ns - lock->waiting_since_ns > SAID_NS)
                say_held(lock);
        /* Jitter keeps several waiting processes from polling in step. */
        nap_us(40 + (long)((now_ns >> 10) % (count < 4 ? 80 : 250)));
        return 1;
}

void fair_lock_waited(struct fair_lock *lock, bool is_got)
{
        if (is_got && lock->is_held_said) {
                log_event(LEVEL_INFO, "store-free", "store=%s after_ms=%" PRIu64, LOG_QUOTE(lock->path),
                        (clock_boot_ns() - lock->held_since_ns) / NS_PER_MS);
                lock->is_held_said = false;
        }
        if (!lock->is_waiting)
                return;
        lock->is_waiting = false;
        flock_range(lock, F_UNLCK);
}

void fair_lock_yield(struct fair_lock *lock)
{
        struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        if (fcntl(lock->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK)
                nap_us(350);
}
