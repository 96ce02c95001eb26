/* refused, naming both versions: built for a host of another major version. */
#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

extern QV_EXPORT const struct qv_plugin quiver_plugin;
const struct qv_plugin quiver_plugin = { sizeof(struct qv_plugin), QV_ABI_MAJOR - 1, 7, 0, "old_abi", "1.0", NULL,
        handle, NULL, NULL, NULL, NULL };
