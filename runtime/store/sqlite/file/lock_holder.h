/* lock_holder.h: finds the process that holds a lock, and says what a person can do about it. */
#ifndef QUIVER_STORE_SQLITE_FILE_LOCK_HOLDER_H
#define QUIVER_STORE_SQLITE_FILE_LOCK_HOLDER_H

#include <stddef.h>
#include <sys/types.h>

struct lock_holder {
        pid_t pid;     /* 0: unknown: it runs in another container, or has just released the lock */
        char name[32]; /* the program's name */
        char state;    /* as in /proc/PID/stat: 'T' is stopped */
};

/* The holder of SQLite's write lock on the database at `path`. */
void lock_holder_of_writing(const char *path, struct lock_holder *ret_holder);
/* The holder of a flock() on the file at `path`. */
void lock_holder_of_flock(const char *path, struct lock_holder *ret_holder);

/* "process 71 (quiver) is stopped …; let it go on: kill -CONT 71, or end it: kill -KILL 71".  Returns `text`. */
const char *lock_holder_text(const struct lock_holder *holder, char *text, size_t size);

#endif
