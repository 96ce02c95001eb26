/* CRASHED, or DONE if it is never noticed: closes every descriptor of its process. */
#include <unistd.h>

#include <quiver/plugin.h>

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        for (int fd = 0; fd < 4096; fd++)
                (void)close(fd);
        return QV_DONE;
}

QV_PLUGIN("closes_descriptors", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
