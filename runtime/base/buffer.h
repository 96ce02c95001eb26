/* buffer.h: bytes that grow, and a reader that never runs past their end.
 *
 * Messages between host and runner, and everything else that is packed by hand, goes through these two.  Numbers are
 * in the machine's byte order: both ends are on one machine. */
#ifndef QUIVER_BASE_BUFFER_H
#define QUIVER_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is an empty buffer.  Running out of memory ends the process: nothing here is larger than a task. */
struct buffer {
        uint8_t *data;
        size_t size;
        size_t room;
};

void buffer_free(struct buffer *b);
/* Empties it and keeps the memory. */
void buffer_clear(struct buffer *b);
/* Room for `size` more bytes; returns where they start.  The caller adds to b->size. */
uint8_t *buffer_reserve(struct buffer *b, size_t size);
void buffer_put(struct buffer *b, const void *data, size_t size);
void buffer_put_u32(struct buffer *b, uint32_t value);
void buffer_put_u64(struct buffer *b, uint64_t value);
/* A length and the bytes. */
void buffer_put_block(struct buffer *b, const void *data, size_t size);
/* A length, the text and a NUL, so that the reader can use it in place.  NULL is written as "". */
void buffer_put_text(struct buffer *b, const char *text);
/* Appends formatted text, without a length or NUL. */
__attribute__((format(printf, 2, 3))) void buffer_printf(struct buffer *b, const char *format, ...);
/* The bytes as a C string: adds a NUL that does not count.  Borrowed. */
const char *buffer_text(struct buffer *b);

/* Reads what was put, in order.  After the first thing that does not fit, `is_bad` stays set and everything else reads
 * as zero or empty, so that one check at the end is enough. */
struct reader {
        const uint8_t *data;
        size_t size;
        bool is_bad;
};

void reader_init(struct reader *r, const void *data, size_t size);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);
/* Borrowed from the memory read. */
const void *reader_block(struct reader *r, size_t *ret_size);
/* As buffer_put_text wrote it; never NULL.  A text with a NUL inside is bad. */
const char *reader_text(struct reader *r);

#endif
