/* DONE, and 5000 bytes larger with every task: nobody frees what it allocates. */
#include <stdlib.h>

#include <quiver/plugin.h>

static void *volatile last;

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        last = malloc(5000);
        if (last)
                memset(last, 1, 5000);
        return QV_DONE;
}

QV_PLUGIN("leaks", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
