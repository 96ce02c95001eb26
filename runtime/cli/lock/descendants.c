#include "cli/lock/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void descendants_adopt(void)
{
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* 0: there is no such process. */
static pid_t parent_of(const char *pid)
{
        char path[64], text[512];
        (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return 0;
        size_t size = fread(text, 1, sizeof(text) - 1, file);
        (void)fclose(file);
        text[size] = 0;
        /* The name may hold anything; after its parenthesis come the state and the parent. */
        const char *end = strrchr(text, ')');
        return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : 0;
}

pid_t descendants_kill(void)
{
        pid_t ours = getpid(), immortal = 0;
        const struct dirent *entry;
        DIR *all = opendir("/proc");
        while (all && (entry = readdir(all))) {
                if (!isdigit((unsigned char)entry->d_name[0]) || parent_of(entry->d_name) != ours)
                        continue;
                /* A child of ours that nobody but us can reap: the number is still its own. */
                pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
                if (kill(pid, SIGKILL) < 0 && errno == EPERM)
                        immortal = pid;
        }
        if (all)
                (void)closedir(all);
        return immortal;
}

bool descendants_reap(pid_t *pid, int *ret_status)
{
        for (;;) {
                int status;
                pid_t ended = waitpid(-1, &status, WNOHANG);
                if (ended < 0 && errno == EINTR)
                        continue;
                if (ended <= 0)
                        return ended < 0;
                if (ended == *pid) {
                        *pid = 0;
                        *ret_status = status;
                }
        }
}
