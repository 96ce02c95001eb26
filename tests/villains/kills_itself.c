/* CRASHED alone, after it was a suspect: dies of SIGKILL, which leaves no record, while seven others run. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        const struct timespec a_little = { .tv_nsec = 5000000 };
        (void)nanosleep(&a_little, NULL);
        if (!strcmp(task->payload, "bad"))
                (void)kill(getpid(), SIGKILL);
        return QV_DONE;
}

QV_PLUGIN("kills_itself", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
