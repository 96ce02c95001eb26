/* bytes.h: a byte array that grows.  Zero-initialised is empty.
 *
 * If memory runs out, `is_broken` is set and nothing more is added; one check at the end is enough. */
#ifndef QUIVER_PLUGINS_BYTES_H
#define QUIVER_PLUGINS_BYTES_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
        char *data;
        size_t size, room;
        bool is_broken;
};

void bytes_free(struct bytes *b);

/* Empties it, and frees its memory if it has grown large. */
void bytes_clear(struct bytes *b);

void bytes_put(struct bytes *b, const void *data, size_t size);
void bytes_put_text(struct bytes *b, const char *text);
__attribute__((format(printf, 2, 3))) void bytes_printf(struct bytes *b, const char *format, ...);

/* Removes the first `size` bytes. */
void bytes_drop(struct bytes *b, size_t size);

/* Appends up to `size` bytes that can be read from the non-blocking `fd` now.  Returns the number of bytes; 0 at the
 * end of the file; -EAGAIN if there is nothing to read; -ENOMEM; or another -errno. */
long bytes_read(struct bytes *b, int fd, size_t size);

#endif
