#include "cli/lock/front.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/lock/descendants.h"
#include "cli/options.h"

#define SWEEP_NS 5000000 /* between two looks at what is still there */

static sigset_t handled(void)
{
        sigset_t set;
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        (void)sigaddset(&set, SIGCHLD);
        return set;
}

void front_unblock(void)
{
        sigset_t set = handled();
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* The guard was killed: its children are ours now. */
static void end_everything(void)
{
        pid_t nobody = 0;
        int status;
        while (!descendants_reap(&nobody, &status)) {
                (void)descendants_kill();
                (void)nanosleep(&(struct timespec){ .tv_nsec = SWEEP_NS }, NULL);
        }
}

static int stand_by(pid_t guard, const char *what)
{
        sigset_t set = handled();
        int status = 0;
        while (guard) {
                int number = sigwaitinfo(&set, NULL);
                if (number == SIGCHLD)
                        (void)descendants_reap(&guard, &status);
                else if (number > 0)
                        (void)kill(guard, number);
        }
        if (WIFEXITED(status))
                return WEXITSTATUS(status);
        (void)fprintf(stderr, "quiver %s: the process that held it was killed by signal %d, so the command is killed\n",
                what, WTERMSIG(status));
        end_everything();
        return EXIT_FAILED;
}

bool front_split(struct front *front, const char *what, int *ret_code)
{
        int ends[2];
        sigset_t set = handled();
        *front = (struct front){ .pid = getpid(), .group = getpgrp(), .fd = -1 };
        (void)fflush(NULL);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        descendants_adopt();
        pid_t guard = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();
        if (guard < 0) {
                (void)fprintf(stderr, "quiver %s: cannot start a process to hold it: %s\n", what, strerror(errno));
                *ret_code = EXIT_FAILED;
                return false;
        }
        (void)close(ends[guard ? 0 : 1]);
        if (guard) {
                /* Our end is open for as long as we live. */
                *ret_code = stand_by(guard, what);
                return false;
        }
        /* A reaper is not inherited.  A group of its own, so that what is meant for the front's misses it. */
        descendants_adopt();
        (void)setpgid(0, 0);
        (void)prctl(PR_SET_NAME, "quiver: guard");
        front->fd = ends[0];
        return true;
}

bool front_is_stopped(const struct front *front)
{
        char path[64], text[512];
        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)front->pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return false;
        size_t size = fread(text, 1, sizeof(text) - 1, file);
        (void)fclose(file);
        text[size] = 0;
        const char *end = strrchr(text, ')');
        return end && strlen(end) > 2 && strchr("Tt", end[2]) != NULL;
}
