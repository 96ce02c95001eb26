/* DONE: built for a later minor version, with a table that goes on behind what this host knows. */
#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

struct future_plugin {
        struct qv_plugin known;
        void (*handle_later)(void *self);
        const char *more[8];
};

static void handle_later(void *self)
{
        *(volatile int *)self = 1;
}

extern QV_EXPORT const struct future_plugin quiver_plugin;
const struct future_plugin quiver_plugin = { { sizeof(struct future_plugin), QV_ABI_MAJOR, QV_ABI_MINOR + 9, QV_THREADS,
                                                     "future_abi", "2.0", NULL, handle, NULL, NULL, NULL, NULL },
        handle_later, { "more" } };
