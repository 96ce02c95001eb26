/* fair_lock.h: lets other processes have their turn at the file.
 *
 * SQLite's write lock has no queue: whoever releases it and takes it again at once starves the others, who poll.  So
 * those who wait hold a shared lock on FILE-turn, which the kernel drops if they die, and who has just committed looks
 * whether someone does. */
#ifndef QUIVER_STORE_SQLITE_FILE_FAIR_LOCK_H
#define QUIVER_STORE_SQLITE_FILE_FAIR_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct fair_lock {
        int fd;
        bool is_waiting;
        uint64_t waiting_since_ns;
        uint64_t patience_ns;
        const bool *is_stopping; /* gives up waiting */

        /* A host says in its log that somebody does not let go: once, and when that is over. */
        bool is_host;
        bool is_held_said;
        uint64_t held_since_ns;
        const char *path; /* of the database */
};

int fair_lock_open(struct fair_lock *lock, const char *path, struct error *error);
void fair_lock_close(struct fair_lock *lock);

/* Alone among those who open the file: changing its journal mode does not wait for others, it fails. */
int fair_lock_open_alone(struct fair_lock *lock, struct error *error);
void fair_lock_opened(struct fair_lock *lock);

/* SQLite's busy handler: sleeps for a fraction of a millisecond; 0 to give up. */
int fair_lock_busy(void *lock, int count);
/* Waiting for the write lock is over: it was got, or given up. */
void fair_lock_waited(struct fair_lock *lock, bool is_got);
/* After COMMIT: stands back for a moment if another process waits. */
void fair_lock_yield(struct fair_lock *lock);

#endif
