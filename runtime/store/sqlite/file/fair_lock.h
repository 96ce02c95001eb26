/* fair_lock.h: lets other processes have their turn at the file.
 *
 * SQLite's write lock has no queue: a process that releases it and takes it again at once starves the others, who poll.
 * So waiting processes hold a shared lock on FILE-turn, which the kernel drops if they die, and a process that has just
 * committed checks whether someone waits. */
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
        const bool *is_stopping; /* set to give up waiting */

        /* A host logs once that somebody holds the lock for too long, and when that is over. */
        bool is_host;
        bool is_held_said;
        uint64_t held_since_ns;
        const char *path; /* the database */
};

int fair_lock_open(struct fair_lock *lock, const char *path, struct error *error);
void fair_lock_close(struct fair_lock *lock);

/* Serialises openers: a change of the journal mode does not wait for other users of the file, it fails. */
int fair_lock_open_alone(struct fair_lock *lock, struct error *error);
void fair_lock_opened(struct fair_lock *lock);

/* SQLite's busy handler: sleeps for a fraction of a millisecond; 0 to give up. */
int fair_lock_busy(void *lock, int count);
/* Waiting for the write lock has ended: it was taken, or given up. */
void fair_lock_waited(struct fair_lock *lock, bool is_got);
/* Call after COMMIT: pauses for a moment if another process waits. */
void fair_lock_yield(struct fair_lock *lock);

#endif
