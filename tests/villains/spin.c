/* TIMED_OUT with the place where it stood: never looks at the stop flag. */
#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        for (volatile unsigned long i = 0;; i++)
                ;
}

QV_PLUGIN("spin", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
