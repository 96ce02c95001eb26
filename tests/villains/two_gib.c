/* CRASHED under a memory limit: allocates 2 GiB and does not look whether it got them. */
#include <stdlib.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        volatile char *block = malloc((size_t)2 << 30);
        block[0] = 1;
        free((void *)block);
        return QV_DONE;
}

QV_PLUGIN("two_gib", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
