#include "base/process/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STAT_MAX        1024
#define GENERATIONS_MAX 4096 /* ancestors; the kernel has no limit */

int process_stat_parse(const char *text, struct process_stat *ret)
{
        struct process_stat found = { 0 };
        int parent;
        /* The name may contain anything, blanks and parentheses too, and ends at the last parenthesis. */
        const char *end = strrchr(text, ')');
        /* state parent group session terminal its-group flags minflt cminflt majflt cmajflt utime stime cutime cstime
         * priority nice threads itrealvalue starttime */
        if (!end ||
                sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                        &found.state, &parent, &found.started) != 3)
                return -EBADMSG;
        found.parent = (pid_t)parent;
        *ret = found;
        return 0;
}

int process_stat_read(pid_t pid, struct process_stat *ret)
{
        char path[40];
        char text[STAT_MAX];
        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        ssize_t n = read(fd, text, sizeof(text) - 1);
        int r = n < 0 ? -errno : 0;
        (void)close(fd);
        if (r < 0)
                return r == -ESRCH ? -ENOENT : r;
        text[n] = 0;
        return process_stat_parse(text, ret);
}

bool process_descends(pid_t pid, pid_t ancestor)
{
        struct process_stat stat = { 0 };
        for (unsigned i = 0; i < GENERATIONS_MAX; i++) {
                if (pid == ancestor)
                        return true;
                if (pid <= 1)
                        return false;
                if (process_stat_read(pid, &stat) < 0)
                        return true;
                pid = stat.parent;
        }
        return true;
}
