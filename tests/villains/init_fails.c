/* refused with the plugin's own words: init says no. */
#include <quiver/plugin.h>

static int32_t init(const struct qv_host *host, void **ret_self)
{
        (void)host;
        (void)ret_self;
        return qv_init_errorf(host, "no database at %s", qv_config(host, "db", "localhost"));
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

QV_PLUGIN("init_fails", "1.0", QV_THREADS, init, handle, NULL, NULL)
