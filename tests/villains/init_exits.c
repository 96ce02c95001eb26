/* refused: calls _exit in init, so that nothing catches it. */
#include <unistd.h>

#include <quiver/plugin.h>

static int32_t init(const struct qv_host *host, void **ret_self)
{
        (void)host;
        (void)ret_self;
        _exit(3);
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

QV_PLUGIN("init_exits", "1.0", QV_THREADS, init, handle, NULL, NULL)
