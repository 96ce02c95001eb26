#include "base/process/stray_mark.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/hash.h"

/* The mark is among the first variables of a runner; only a plugin makes an environment larger than this. */
#define ENVIRONMENT_MAX 131072

void stray_run(char run[STRAY_RUN_MAX], const void *nonce, size_t size)
{
        (void)snprintf(run, STRAY_RUN_MAX, "%016" PRIx64, hash_bytes(HASH_START, nonce, size));
}

void stray_mark_put(char mark[STRAY_MARK_MAX], const char *run, uint64_t number)
{
        (void)snprintf(mark, STRAY_MARK_MAX, STRAY_VARIABLE "%.16s.%" PRIu64, run, number);
}

bool stray_mark_find(const char *environment, size_t size, const char *run, uint64_t *ret_number)
{
        const size_t name_size = sizeof(STRAY_VARIABLE) - 1;
        const size_t run_size = strlen(run);
        for (size_t at = 0; at < size;) {
                const char *variable = environment + at;
                size_t length = strnlen(variable, size - at);
                at += length + 1;
                if (length < name_size + run_size + 2 || at > size || strncmp(variable, STRAY_VARIABLE, name_size) != 0)
                        continue;
                const char *value = variable + name_size;
                if (strncmp(value, run, run_size) != 0 || value[run_size] != '.' ||
                        !isdigit((unsigned char)value[run_size + 1]))
                        continue;
                *ret_number = strtoull(value + run_size + 1, NULL, 10);
                return true;
        }
        return false;
}

bool stray_mark_read(pid_t pid, const char *run, uint64_t *ret_number)
{
        static char text[ENVIRONMENT_MAX + 1];
        char path[40];
        size_t used = 0;
        ssize_t n = 0;
        (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        while (used < ENVIRONMENT_MAX && (n = read(fd, text + used, ENVIRONMENT_MAX - used)) > 0)
                used += (size_t)n;
        (void)close(fd);
        text[used] = 0;
        return stray_mark_find(text, used + 1, run, ret_number);
}

/* Opens the pidfd before reading the mark, so that the process killed is the one that has the mark, even if the pid is
 * reused. */
static bool kill_if_marked(pid_t pid, const char *run)
{
        uint64_t number;
        int pidfd = pidfd_open(pid, 0);
        if (pidfd < 0)
                return false;
        bool is_marked = stray_mark_read(pid, run, &number) && pidfd_send_signal(pidfd, SIGKILL, NULL, 0) == 0;
        (void)close(pidfd);
        return is_marked;
}

unsigned stray_mark_kill(const char *run)
{
        unsigned found = 0;
        DIR *all = opendir("/proc");
        for (const struct dirent *entry; all && (entry = readdir(all));) {
                pid_t pid = isdigit((unsigned char)*entry->d_name) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
                if (pid > 0 && pid != getpid())
                        found += kill_if_marked(pid, run);
        }
        if (all)
                (void)closedir(all);
        return found;
}
