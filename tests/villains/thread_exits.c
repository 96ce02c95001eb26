/* CRASHED with the backtrace of the exit(): a thread that the plugin started ends the process. */
#include <pthread.h>
#include <stdlib.h>

#include <quiver/plugin.h>

static void *helper(void *argument)
{
        (void)argument;
        exit(3);
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        pthread_t thread;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        if (pthread_create(&thread, NULL, helper, NULL) != 0)
                return QV_RETRY;
        (void)pthread_join(thread, NULL);
        return QV_DONE;
}

QV_PLUGIN("thread_exits", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
