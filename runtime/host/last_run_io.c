/* last_run_io.c: the file STATE/NAME.last. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/last_run.h"

#define FILE_MAX 256
#define SUFFIX   ".last"

void last_run_read_boot_id(char ret_id[64])
{
        FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
        if (!f || !fgets(ret_id, 64, f))
                ret_id[0] = 0;
        if (f)
                (void)fclose(f);
        ret_id[strcspn(ret_id, "\n")] = 0;
}

static const char *name_file(char file[FILE_MAX], const char *name, const char *suffix)
{
        (void)snprintf(file, FILE_MAX, "%.200s%s", name, suffix);
        return file;
}

/* Anybody else who can write the file could make us end other sessions and leases. */
static int check_file(int fd, struct error *error)
{
        struct stat st;
        if (fstat(fd, &st) < 0)
                return error_set(error, -errno, "%s", strerror(errno));
        if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
                return error_set(error, -EPERM, "it is not a file that only this user can write");
        if (st.st_size > (off_t)LAST_RUN_MAX)
                return error_set(error, -EFBIG, "it has more than %u bytes", LAST_RUN_MAX);
        return 0;
}

int last_run_read(int folder_fd, const char *name, struct last_run *ret, struct error *error)
{
        char file[FILE_MAX];
        struct buffer text = { 0 };
        int fd = openat(folder_fd, name_file(file, name, SUFFIX), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return error_set(error, -errno, "%s", strerror(errno));
        int r = check_file(fd, error);
        ssize_t n = r < 0 ? 0 : pread(fd, buffer_reserve(&text, LAST_RUN_MAX), LAST_RUN_MAX, 0);
        if (n < 0)
                r = error_set(error, -errno, "%s", strerror(errno));
        (void)close(fd);
        if (r == 0)
                r = last_run_parse((struct span){ (const char *)text.data, (size_t)n }, ret, error);
        if (text.data)
                explicit_bzero(text.data, text.room);
        buffer_free(&text);
        return r;
}

/* No fsync: the file is of no use after another boot. */
static int write_file(int folder_fd, const char *file, const struct buffer *text)
{
        int fd = openat(folder_fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        ssize_t n = fchmod(fd, 0600) < 0 ? -1 : write(fd, text->data, text->size);
        int r = n < 0 ? -errno : (size_t)n < text->size ? -ENOSPC : 0;
        (void)close(fd);
        return r;
}

int last_run_write(int folder_fd, const char *name, const struct last_run *run, struct error *error)
{
        char file[FILE_MAX];
        char next[FILE_MAX];
        struct buffer text = { 0 };
        int r = last_run_put(&text, run);
        if (r < 0)
                return error_set(error, r, "%s", strerror(-r));
        (void)name_file(next, name, SUFFIX ".new");
        r = write_file(folder_fd, next, &text);
        if (r == 0 && renameat(folder_fd, next, folder_fd, name_file(file, name, SUFFIX)) < 0)
                r = -errno;
        if (r < 0)
                (void)unlinkat(folder_fd, next, 0);
        explicit_bzero(text.data, text.size);
        buffer_free(&text);
        return r < 0 ? error_set(error, r, "%s", strerror(-r)) : 0;
}

void last_run_remove(int folder_fd, const char *name)
{
        char file[FILE_MAX];
        (void)unlinkat(folder_fd, name_file(file, name, SUFFIX), 0);
}
