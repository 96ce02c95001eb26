/* CRASHED for the one bad task of a batch, once it ran alone; TIMED_OUT for one that hangs; DONE for the rest. */
#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (!strcmp(task->payload, "bad"))
                *(volatile int *)NULL = 1;
        for (volatile unsigned long i = 0; !strcmp(task->payload, "hang"); i++)
                ;
        return QV_DONE;
}

static void handle_many(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        for (uint32_t i = 0; i < count; i++)
                outcomes[i] = handle(self, tasks[i]);
}

QV_PLUGIN("bad_batch", "1.0", QV_THREADS, NULL, handle, NULL, handle_many)
