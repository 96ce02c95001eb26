/* DONE after the time in its payload, in milliseconds, unless it is told to stop: for those who kill, stop or replace
 * it meanwhile. */
#include <stdlib.h>
#include <time.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        qv_logf(task->host, QV_LOG_INFO, "asleep for %s ms", (const char *)task->payload);
        for (long left_ms = atol(task->payload); left_ms > 0; left_ms -= 1) {
                const struct timespec a_little = { .tv_nsec = 1000000 };
                if (qv_stop(task))
                        return QV_RETRY;
                (void)nanosleep(&a_little, NULL);
        }
        return QV_DONE;
}

QV_PLUGIN("sleeps", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
