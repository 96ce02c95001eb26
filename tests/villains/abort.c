/* CRASHED with SIGABRT: calls abort(). */
#include <stdlib.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        abort();
}

QV_PLUGIN("abort", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
