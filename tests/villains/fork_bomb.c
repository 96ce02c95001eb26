/* RETRY once its limit refuses; the children it leaves behind are gone when its runner is. */
#include <sys/types.h>
#include <unistd.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        for (int i = 0; i < 200; i++) {
                pid_t child = fork();
                if (child < 0) {
                        qv_errorf(task, "fork refused after %d", i);
                        return QV_RETRY;
                }
                if (child == 0)
                        for (;;)
                                (void)pause();
        }
        return QV_DONE;
}

QV_PLUGIN("fork_bomb", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
