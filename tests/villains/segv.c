/* CRASHED with SIGSEGV, address and backtrace: writes through a null pointer. */
#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        *(volatile int *)NULL = 1;
        return QV_DONE;
}

QV_PLUGIN("segv", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
