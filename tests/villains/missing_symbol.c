/* refused, naming the symbol: needs a function that nobody has. */
#include <quiver/plugin.h>

extern int32_t nobody_has_this(void);

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return nobody_has_this();
}

QV_PLUGIN("missing_symbol", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
