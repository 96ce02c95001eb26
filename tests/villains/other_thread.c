/* Calls a service on a thread of its own. */
#include <pthread.h>

#include <quiver/plugin.h>

static void *say(void *argument)
{
        const struct qv_task *task = argument;
        (void)task->host->result(task->host, task, "x", 1);
        (void)task->host->error(task->host, task, "x");
        return NULL;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        pthread_t thread;
        if (pthread_create(&thread, NULL, say, (void *)task) != 0)
                return QV_RETRY;
        (void)pthread_join(thread, NULL);
        return QV_DONE;
}

QV_PLUGIN("other_thread", "1.0", 0, NULL, handle, NULL, NULL)
