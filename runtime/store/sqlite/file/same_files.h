/* same_files.h: whether the files that a process has open are still the ones at their paths.
 *
 * A database that is moved, restored or removed under a running process stays open and takes writes that nobody finds
 * again.  If its -wal or -shm file is removed, the next process to open it creates new ones, and the two processes
 * corrupt the database.  So each transaction checks first. */
#ifndef QUIVER_STORE_SQLITE_FILE_SAME_FILES_H
#define QUIVER_STORE_SQLITE_FILE_SAME_FILES_H

#include <sys/stat.h>

#include "base/error.h"

struct same_files {
        struct {
                dev_t device;
                ino_t inode;
        } files[3];       /* the database, -wal, -shm */
        const char *path; /* as configured */
        const char *real; /* without symbolic links: the prefix of the -wal and -shm names */
};

/* Call it while the database is open and has been read.  Borrows both paths. */
int same_files_note(struct same_files *same, const char *path, const char *real, struct error *error);
/* 0, or -ESTALE with a text that names the file and says what to do. */
int same_files_check(const struct same_files *same, struct error *error);

#endif
