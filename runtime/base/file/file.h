/* file.h: reading a small file that somebody named, whatever it turns out to be; paths that are relative to one. */
#ifndef QUIVER_BASE_FILE_FILE_H
#define QUIVER_BASE_FILE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/file_trust.h"

/* Appends a regular file of at most `size_max` bytes to `b`; fills *ret_stat if not NULL, and *ret_trust if not NULL
 * (who else could have written the file).  Never blocks on a pipe or device.  0, or a negative errno with a text that
 * does not name the path. */
int file_read(const char *path, size_t size_max, struct buffer *b, struct stat *ret_stat, struct file_trust *ret_trust,
        struct error *error);

/* The absolute folder of `path`, with symbolic links resolved; the caller frees it.  If there is none, the nearest
 * guess. */
char *file_folder(const char *path);

/* `path`, made absolute from the absolute `folder`; the caller frees it. */
char *file_resolve(const char *folder, const char *path);

#endif
