/* buffer.h: a byte array that grows, and a reader that never reads past its end.
 *
 * Messages between host and runner, and everything else that is packed by hand, go through these two.  Numbers are
 * in the machine's byte order: writer and reader run on the same machine. */
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
/* Empties the buffer and keeps its memory. */
void buffer_clear(struct buffer *b);
/* Makes room for `size` more bytes and returns where they start.  The caller adds what it wrote to b->size. */
uint8_t *buffer_reserve(struct buffer *b, size_t size);
void buffer_put(struct buffer *b, const void *data, size_t size);
void buffer_put_u32(struct buffer *b, uint32_t value);
void buffer_put_u64(struct buffer *b, uint64_t value);
/* Appends a length and the bytes. */
void buffer_put_block(struct buffer *b, const void *data, size_t size);
/* Appends a length, the text and a NUL, so that the reader can use the text in place.  NULL is written as "". */
void buffer_put_text(struct buffer *b, const char *text);
/* Appends formatted text, without a length or NUL. */
__attribute__((format(printf, 2, 3))) void buffer_printf(struct buffer *b, const char *format, ...);
/* The bytes as a C string: adds a NUL that is not counted in b->size.  Borrowed. */
const char *buffer_text(struct buffer *b);

/* Reads values in the order in which they were put.  After the first one that does not fit, `is_bad` stays set and
 * every later value reads as zero or empty, so one check at the end is enough. */
struct reader {
        const uint8_t *data;
        size_t size;
        bool is_bad;
};

void reader_init(struct reader *r, const void *data, size_t size);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);
/* Borrowed from the memory that is being read. */
const void *reader_block(struct reader *r, size_t *ret_size);
/* A text that buffer_put_text() wrote; never NULL.  A text with a NUL inside sets `is_bad`. */
const char *reader_text(struct reader *r);

#endif
