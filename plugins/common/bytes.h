/* bytes.h: a growing run of bytes.  Zero-initialised is empty.
 *
 * Without memory it turns broken and takes no more; look at `is_broken` once, at the end. */
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

/* Empties it, and gives back what a large task has left behind. */
void bytes_clear(struct bytes *b);

void bytes_put(struct bytes *b, const void *data, size_t size);
void bytes_put_text(struct bytes *b, const char *text);
__attribute__((format(printf, 2, 3))) void bytes_printf(struct bytes *b, const char *format, ...);

/* Removes the first `size` bytes. */
void bytes_drop(struct bytes *b, size_t size);

/* Appends what `fd`, which does not block, has now; up to `size` bytes.  The number of bytes; 0 at the end of the file;
 * -EAGAIN: nothing now; -ENOMEM; another -errno. */
long bytes_read(struct bytes *b, int fd, size_t size);

#endif
