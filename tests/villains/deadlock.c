/* TIMED_OUT with the lock that it waits for: locks a mutex twice. */
#include <pthread.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        (void)pthread_mutex_lock(&lock);
        if (!strcmp(task->payload, "bad"))
                (void)pthread_mutex_lock(&lock);
        (void)pthread_mutex_unlock(&lock);
        return QV_DONE;
}

QV_PLUGIN("deadlock", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
