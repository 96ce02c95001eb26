#include "runner/constructors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int kept_out = -1, kept_err = -1; /* the real descriptors while the output is captured */
static int printed_fd = -1;
static uint32_t threads_before;

static uint32_t count_threads(void)
{
        uint32_t count = 0;
        DIR *dir = opendir("/proc/self/task");
        for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
                count += entry->d_name[0] != '.';
        if (dir)
                (void)closedir(dir);
        return count;
}

void constructors_begin(void)
{
        threads_before = count_threads();
        printed_fd = memfd_create("constructors", MFD_CLOEXEC);
        kept_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        kept_err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        if (printed_fd < 0 || kept_out < 0 || kept_err < 0)
                return;
        (void)dup2(printed_fd, STDOUT_FILENO);
        (void)dup2(printed_fd, STDERR_FILENO);
}

static void close_all(void)
{
        int *const fds[] = { &kept_out, &kept_err, &printed_fd };
        for (size_t i = 0; i < 3; i++) {
                if (*fds[i] >= 0)
                        (void)close(*fds[i]);
                *fds[i] = -1;
        }
}

void constructors_end(struct rehearsal *ret)
{
        char text[512];
        uint32_t threads = count_threads();
        ret->constructor_threads = threads > threads_before ? threads - threads_before : 0;
        ret->constructor_bytes = 0;
        (void)fflush(stdout);
        if (printed_fd >= 0 && kept_out >= 0 && kept_err >= 0) {
                (void)dup2(kept_out, STDOUT_FILENO);
                (void)dup2(kept_err, STDERR_FILENO);
                (void)lseek(printed_fd, 0, SEEK_SET);
                for (ssize_t n; (n = read(printed_fd, text, sizeof(text))) > 0;) {
                        ret->constructor_bytes += (uint64_t)n;
                        ssize_t written = write(STDERR_FILENO, text, (size_t)n);
                        (void)written;
                }
        }
        close_all();
}
