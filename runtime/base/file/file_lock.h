/* file_lock.h: locks on whole files that belong to an open file (OFD locks), not to a process.
 *
 * Such a lock is inherited with the descriptor over fork and exec, and ends when the last descriptor of the same open
 * file is closed, also when the process that holds it is killed. */
#ifndef QUIVER_BASE_FILE_FILE_LOCK_H
#define QUIVER_BASE_FILE_FILE_LOCK_H

#include <stdint.h>

enum file_lock_kind { FILE_LOCK_SHARED, FILE_LOCK_EXCLUSIVE };

/* Takes the lock, or changes the one that `fd` has.  Blocks for at most `wait_ms`.  0; -EAGAIN: others hold it; or
 * -errno: the file system has no such locks. */
int file_lock_take(int fd, enum file_lock_kind kind, uint64_t wait_ms);
void file_lock_drop(int fd);

/* Opens the file of `fd` again, for reading, and takes the shared lock, for one child process to inherit.  Returns the
 * new descriptor (CLOEXEC), or -errno. */
int file_lock_share(int fd);

#endif
