/* CRASHED with SIGABRT: overwrites the allocator's own records, and glibc notices when it is freed. */
#include <stdlib.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        volatile char *first = malloc(2000);
        volatile char *second = malloc(2000);
        for (int i = 0; i < 2064; i++)
                first[i] = second[i] = (char)0xff;
        free((void *)second);
        free((void *)first);
        free(malloc(100000));
        return QV_DONE;
}

QV_PLUGIN("heap_overflow", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
