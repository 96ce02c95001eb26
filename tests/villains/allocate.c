/* RETRY: allocates until its limit refuses, and says so; takes nothing from anybody else. */
#include <stdlib.h>

#include <quiver/plugin.h>

/* Without a limit it would go on to 4 GiB; the test gives it 64 MiB. */
static size_t allocate_all(void **blocks, size_t count)
{
        size_t n = 0;
        while (n < count && (blocks[n] = malloc(1 << 20)))
                memset(blocks[n++], 1, 1 << 20);
        return n;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        static void *blocks[4096];
        size_t got = allocate_all(blocks, 4096);
        for (size_t i = 0; i < got; i++)
                free(blocks[i]);
        if (got == 4096)
                return QV_DONE;
        qv_errorf(task, "out of memory after %zu MiB", got);
        return QV_RETRY;
}

QV_PLUGIN("allocate", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
