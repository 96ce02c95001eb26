/* log.h: a file of records that many processes append to and all read in the same order, without a lock.
 *
 * Nobody ever waits for somebody else here, so a process that is stopped at any moment harms nobody: an append is one
 * write(2) to a file opened with O_APPEND, which the kernel does in one piece.  A record that was cut short (its writer
 * was killed, or the disk was full) is passed over: it has the wrong checksum, and what follows begins with the mark
 * that the file has for itself.
 *
 * A log that has grown too long is sealed by a last record; whoever sees that writes what is still true into the next
 * file, and the first to give it its name wins.  Records after a seal are void.
 *
 *         log-1   log-2 …     the one with the highest number is current */
#ifndef QUIVER_COORD_LOCAL_LOG_H
#define QUIVER_COORD_LOCAL_LOG_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"

#define LOG_MARK_SIZE 8u

struct log {
        int dir_fd; /* borrowed */
        int fd;     /* -1: not open */
        unsigned number;
        uint8_t mark[LOG_MARK_SIZE];
        uint64_t at;          /* where `read` begins in the file */
        struct buffer read;   /* bytes of the file */
        size_t from;          /* what is before it in `read` has been returned */
        uint64_t first_bytes; /* how much of it was written when it was made */
};

/* A file to come: records are gathered in `bytes`. */
struct log_draft {
        uint8_t mark[LOG_MARK_SIZE];
        struct buffer bytes;
};

void log_draft_init(struct log_draft *draft);
void log_draft_add(struct log_draft *draft, const struct buffer *payload);
/* Writes it, gives it its number, frees the draft.  0 also if another process was first. */
int log_draft_publish(struct log_draft *draft, int dir_fd, unsigned number, struct error *error);

/* The number of the newest log in the folder; 0: none. */
int log_newest(int dir_fd, unsigned *ret_number, struct error *error);
/* Opens it for reading from its beginning.  -ENOENT: not there (any more); -EPROTO: not one of ours. */
int log_open(struct log *log, int dir_fd, unsigned number, struct error *error);
void log_close(struct log *log);
/* Whether the file is still there under its name.  -ENOENT, or -ESTALE if another has its name. */
int log_check(const struct log *log, const char *folder);

/* The next record's payload, borrowed until the next call; false at the end (or on failure: *ret_status). */
bool log_next(struct log *log, struct span *ret_payload, int *ret_status);
/* Appends one record.  -ENOSPC and the like: nobody will ever see it. */
int log_append(struct log *log, const struct buffer *payload, struct error *error);
/* What was read so far is what it began with. */
void log_begins_here(struct log *log);
/* What was appended is safe from a power failure. */
int log_sync(struct log *log, struct error *error);
bool log_is_long(const struct log *log);

#endif
