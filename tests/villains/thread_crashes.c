/* CRASHED with the backtrace of a thread that the plugin started: it writes through a null pointer there. */
#include <pthread.h>

#include <quiver/plugin.h>

static void *helper(void *argument)
{
        *(volatile int *)argument = 1;
        return NULL;
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

QV_PLUGIN("thread_crashes", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
