/* CRASHED for each task whose number ends in 00, DONE for all others, with eight seats at work. */
#include <stdlib.h>
#include <time.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        const struct timespec a_little = { .tv_nsec = 200000 };
        (void)nanosleep(&a_little, NULL);
        if (atol(task->payload) % 100 == 0)
                *(volatile int *)NULL = 1;
        return QV_DONE;
}

QV_PLUGIN("every_100th", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
