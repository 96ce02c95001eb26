/* RETRY with an error that says so: returns a number that is no outcome. */
#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        return 1000;
}

QV_PLUGIN("returns_1000", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
