/* CRASHED with SIGSEGV: recurses until its stack is gone; the fault handler has one of its own. */
#include <quiver/plugin.h>

static int32_t deeper(volatile char *above)
{
        volatile char here[4096];
        here[0] = above[0];
        return deeper(here) + here[1];
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        volatile char top[1] = { 0 };
        return deeper(top);
}

QV_PLUGIN("stack_overflow", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
