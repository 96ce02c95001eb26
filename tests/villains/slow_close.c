/* DONE, and its runner is killed once the grace is over: close never returns. */
#include <unistd.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

static void close_it(void *self)
{
        (void)self;
        for (;;)
                (void)pause();
}

QV_PLUGIN("slow_close", "1.0", QV_THREADS, NULL, handle, close_it, NULL)
