/* DONE, and nothing is left: a thread of its own goes on after close. */
#include <pthread.h>

#include <quiver/plugin.h>

static volatile unsigned long counter;

static void *go_on(void *unused)
{
        (void)unused;
        for (;;)
                counter++;
        return NULL;
}

static int32_t init(const struct qv_host *host, void **ret_self)
{
        pthread_t thread;
        (void)ret_self;
        return pthread_create(&thread, NULL, go_on, NULL) ? qv_init_errorf(host, "no thread") : 0;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        return QV_DONE;
}

static void close_it(void *self)
{
        (void)self;
}

QV_PLUGIN("thread_after_close", "1.0", QV_THREADS, init, handle, close_it, NULL)
