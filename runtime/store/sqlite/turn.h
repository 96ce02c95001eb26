/* turn.h: lets other processes have their turn at the file.
 *
 * SQLite's write lock has no queue: whoever releases it and takes it again at once starves the others, who poll.  So
 * those who wait hold a shared lock on FILE-turn, which the kernel drops if they die, and who has just committed looks
 * whether someone does. */
#ifndef QUIVER_STORE_SQLITE_TURN_H
#define QUIVER_STORE_SQLITE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct turn {
        int fd;
        bool is_waiting;
        uint64_t waiting_since_ns;
        uint64_t patience_ns;
        const bool *is_stopping; /* gives up waiting */
};

int turn_open(struct turn *turn, const char *path, struct error *error);
void turn_close(struct turn *turn);

/* Alone among those who open the file: changing its journal mode does not wait for others, it fails. */
int turn_open_alone(struct turn *turn, struct error *error);
void turn_opened(struct turn *turn);

/* SQLite's busy handler: sleeps for a fraction of a millisecond; 0 to give up. */
int turn_busy(void *turn, int count);
/* The lock was got, or given up. */
void turn_got(struct turn *turn);
/* After COMMIT: stands back for a moment if another process waits. */
void turn_yield(struct turn *turn);

#endif
