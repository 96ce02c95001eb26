/* log.h: a file of records that many processes append to and all read in the same order, without a lock.
 *
 * No process waits for another, so a process that is stopped at any moment blocks nobody: an append is one write(2) to
 * a file opened with O_APPEND, which the kernel does in one piece.  A record that was cut short (its writer was killed,
 * or the disk was full) is skipped: its checksum is wrong, and the next record begins with the file's own mark.
 *
 * A log that has grown too long is sealed by a last record; every process that sees the seal writes the current state
 * to the next file, and the first to link it under its number wins.  Records after a seal are void.
 *
 * log-1 log-2 …: the one with the highest number is current. */
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
        size_t from;          /* everything before this offset of `read` has been returned */
        uint64_t first_bytes; /* size of the state that the file began with */
};

/* A new log file: its records are collected in `bytes`. */
struct log_draft {
        uint8_t mark[LOG_MARK_SIZE];
        struct buffer bytes;
};

void log_draft_init(struct log_draft *draft);
void log_draft_add(struct log_draft *draft, const struct buffer *payload);
/* Writes the file, links it under its number, and frees the draft.  0 also if another process was first. */
int log_draft_publish(struct log_draft *draft, int dir_fd, unsigned number, struct error *error);

/* The number of the newest log in the folder; 0: none. */
int log_newest(int dir_fd, unsigned *ret_number, struct error *error);
/* Opens the log for reading from its beginning.  -ENOENT: it does not exist (any more); -EPROTO: it is not one of
 * ours. */
int log_open(struct log *log, int dir_fd, unsigned number, struct error *error);
void log_close(struct log *log);
/* Whether the file still exists under its name: 0, -ENOENT, or -ESTALE if another file has the name. */
int log_check(const struct log *log, const char *folder);

/* The next record's payload, borrowed until the next call; false at the end (or on failure: *ret_status). */
bool log_next(struct log *log, struct span *ret_payload, int *ret_status);
/* Appends one record.  After an error such as -ENOSPC nobody will ever see it. */
int log_append(struct log *log, const struct buffer *payload, struct error *error);
/* Everything read so far is the state that the file began with. */
void log_begins_here(struct log *log);
/* Makes appended records safe from a power failure. */
int log_sync(struct log *log, struct error *error);
bool log_is_long(const struct log *log);

#endif
