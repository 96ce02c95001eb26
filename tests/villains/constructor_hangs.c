/* refused after the time that init has: hangs while it is being loaded. */
#include <unistd.h>

#include <quiver/plugin.h>

__attribute__((constructor)) static void before_anything(void)
{
        for (;;)
                (void)pause();
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

QV_PLUGIN("constructor_hangs", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
