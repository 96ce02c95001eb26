/* CRASHED with SIGSEGV: allocates until its limit refuses, and does not look. */
#include <stdlib.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        for (int i = 0; i < 4096; i++)
                *(volatile char *)malloc(1 << 20) = 1;
        return QV_DONE;
}

QV_PLUGIN("allocate_and_trust", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
