/* noop: does nothing.  For measuring what is around it.
 *
 *         config = { latencies = "FILE"; };    a payload that begins with a number is the time at which it was
 * submitted, CLOCK_MONOTONIC ns; how long it took from there goes into the file */
#include <fcntl.h>
#include <quiver/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct noop {
        int fd; /* -1: nothing is written */
};

static int32_t noop_init(const struct qv_host *host, void **ret_self)
{
        struct noop *noop = malloc(sizeof(*noop));
        const char *path = qv_config(host, "latencies", "");
        if (!noop)
                return qv_init_errorf(host, "out of memory");
        noop->fd = *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
        *ret_self = noop;
        return 0;
}

static int32_t noop_handle(void *self, const struct qv_task *task)
{
        const struct noop *noop = self;
        struct timespec now;
        char line[32];
        if (noop->fd < 0)
                return QV_DONE;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        long long sent = strtoll((const char *)task->payload, NULL, 10);
        int size = snprintf(line, sizeof(line), "%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec - sent);
        return write(noop->fd, line, (size_t)size) == size ? QV_DONE : QV_RETRY;
}

static void noop_handle_many(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        for (uint32_t i = 0; i < count; i++)
                outcomes[i] = noop_handle(self, tasks[i]);
}

static void noop_close(void *self)
{
        const struct noop *noop = self;
        if (noop->fd >= 0)
                (void)close(noop->fd);
        free(self);
}

QV_PLUGIN("noop", "1.0", QV_THREADS, noop_init, noop_handle, noop_close, noop_handle_many)
