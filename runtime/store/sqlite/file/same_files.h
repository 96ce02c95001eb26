/* same_files.h: whether the files that a process has open are still those that their names stand for.
 *
 * A database that is moved, restored or removed under a running process stays open, and takes writes that nobody finds
 * again; if its log (-wal) or the memory that its users share (-shm) is removed, the next process to open it makes new
 * ones, and the two destroy the file between them.  So each transaction looks first. */
#ifndef QUIVER_STORE_SQLITE_FILE_SAME_FILES_H
#define QUIVER_STORE_SQLITE_FILE_SAME_FILES_H

#include <sys/stat.h>

#include "base/error.h"

struct same_files {
        struct {
                dev_t device;
                ino_t inode;
        } files[3];       /* the database, -wal, -shm */
        const char *path; /* as the configuration has it */
        const char *real; /* the same without symbolic links: what the names of the others begin with */
};

/* To be called while the database is open and has been read.  Keeps both names. */
int same_files_note(struct same_files *same, const char *path, const char *real, struct error *error);
/* 0, or -ESTALE: the text names the file and says what to do. */
int same_files_check(const struct same_files *same, struct error *error);

#endif
