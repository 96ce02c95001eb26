/* refused: crashes while it is being loaded, before anything of it could be checked. */
#include <quiver/plugin.h>

static int *volatile nowhere;

__attribute__((constructor)) static void before_anything(void)
{
        *nowhere = 1;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

QV_PLUGIN("constructor_crashes", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
