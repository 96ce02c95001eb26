/* REJECT with the refusal it got: a result twice as large as is allowed. */
#include <stdlib.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        char *large = calloc(2, 1 << 20);
        int32_t r = task->host->result(task->host, task, large, 2 << 20);
        free(large);
        if (r == 0)
                return QV_DONE;
        qv_errorf(task, "result: %s", strerror(-r));
        return QV_REJECT;
}

QV_PLUGIN("large_result", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
