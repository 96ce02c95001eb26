/* DONE: prints 100 MB; few of the lines get through, and the rest is counted. */
#include <stdio.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        for (int i = 0; !strcmp(task->payload, "bad") && i < 1000000; i++)
                (void)printf("%-99d\n", i);
        return QV_DONE;
}

QV_PLUGIN("floods_stdout", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
