#include "base/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/units.h"

static int read_all(int fd, size_t size_max, struct buffer *b, struct error *error)
{
        size_t size = 0;
        for (;;) {
                uint8_t *at = buffer_reserve(b, 16384);
                ssize_t n = read(fd, at, 16384);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_set(error, -errno, "cannot read: %s", strerror(errno));
                if (!n)
                        return 0;
                b->size += (size_t)n;
                size += (size_t)n;
                if (size > size_max) {
                        char most[UNITS_TEXT_MAX];
                        return error_set(error, -EFBIG, "larger than %s", units_format_bytes(most, size_max));
                }
        }
}

/* O_NONBLOCK: opening a pipe without a writer must not block. */
static int open_plain(const char *path, struct error *error)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return fd < 0 ? error_set(error, -errno, "cannot open: %s", strerror(errno)) : fd;
}

int file_read(const char *path, size_t size_max, struct buffer *b, struct stat *ret_stat, struct file_trust *ret_trust,
        struct error *error)
{
        struct stat st;
        int fd = ret_trust ? file_trust_open(path, FILE_TRUST_OF_FILE, ret_trust, error) : open_plain(path, error);
        if (fd < 0)
                return fd;
        int r = 0;
        if (fstat(fd, &st) < 0)
                r = error_set(error, -errno, "cannot open: %s", strerror(errno));
        else if (S_ISDIR(st.st_mode))
                r = error_set(error, -EISDIR, "is a folder, not a file");
        else if (!S_ISREG(st.st_mode))
                r = error_set(error, -EINVAL, "is not a regular file");
        else
                r = read_all(fd, size_max, b, error);
        (void)close(fd);
        if (!r && ret_stat)
                *ret_stat = st;
        return r;
}

char *file_folder(const char *path)
{
        char *copy = text_copy(path);
        const char *name = dirname(copy);
        char *folder = realpath(name, NULL);
        if (!folder)
                folder = text_copy(name[0] == '/' ? name : "/");
        free(copy);
        return folder;
}

char *file_resolve(const char *folder, const char *path)
{
        if (path[0] == '/')
                return text_copy(path);
        /* `folder` has no symbolic links, so each leading ".." removes its last name. */
        size_t size = strlen(folder);
        for (;;) {
                if (!strncmp(path, "./", 2)) {
                        path += 2;
                } else if (!strncmp(path, "../", 3) || !strcmp(path, "..")) {
                        while (size && folder[size - 1] != '/')
                                size--;
                        if (size)
                                size--;
                        path += path[2] ? 3 : 2;
                } else {
                        break;
                }
                path += strspn(path, "/");
        }
        if (size && folder[size - 1] == '/')
                size--;
        if (!*path || !strcmp(path, "."))
                return size ? text_copy_part(folder, size) : text_copy("/");
        return text_printf("%.*s/%s", (int)size, folder, path);
}
