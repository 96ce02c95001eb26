/* CRASHED with exit status 0: calls exit(0) in the middle of a task. */
#include <stdlib.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        exit(0);
}

QV_PLUGIN("exit_zero", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
