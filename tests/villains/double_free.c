/* CRASHED with SIGABRT and the C library's own words: frees a block twice. */
#include <stdlib.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        void *volatile block = malloc(2000);
        free(block);
        free(block);
        return QV_DONE;
}

QV_PLUGIN("double_free", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
