/* refused after the time that init has: init never returns. */
#include <unistd.h>

#include <quiver/plugin.h>

static int32_t init(const struct qv_host *host, void **ret_self)
{
        (void)ret_self;
        while (host)
                (void)pause();
        return 0;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

QV_PLUGIN("init_hangs", "1.0", QV_THREADS, init, handle, NULL, NULL)
