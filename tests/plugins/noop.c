/* noop: does nothing.  For measuring what is around it.
 *
 *         config = { latencies = "FILE"; };    a payload that begins with a number is the time at which it was
 *                                              submitted, CLOCK_MONOTONIC ns; how long it took from there goes into the
 *                                              file
 *         config = { retry_every = 1000; };    so many tasks make one that fails at its first attempt
 *         config = { sleep_us = 1000; };       each call, of one task or of many, takes this long and no CPU */
#include <fcntl.h>
#include <quiver/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct noop {
        int fd; /* -1: nothing is written */
        long sleep_us;
        uint32_t retry_every; /* 0: none */
        uint32_t first;       /* tasks at their first attempt since one failed */
};

static int32_t noop_init(const struct qv_host *host, void **ret_self)
{
        struct noop *noop = malloc(sizeof(*noop));
        const char *path = qv_config(host, "latencies", "");
        if (!noop)
                return qv_init_errorf(host, "out of memory");
        noop->fd = *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
        noop->retry_every = (uint32_t)qv_config_int(host, "retry_every", 0);
        noop->first = 0;
        noop->sleep_us = (long)qv_config_int(host, "sleep_us", 0);
        (void)prctl(
                PR_SET_TIMERSLACK, 1ul); /* of this seat's thread: it sleeps as long as it was told, not 50 us more */
        *ret_self = noop;
        return 0;
}

static int32_t record(struct noop *noop, const struct qv_task *task)
{
        if (noop->retry_every && task->attempt == 1 && ++noop->first == noop->retry_every) {
                noop->first = 0;
                return QV_RETRY;
        }
        struct timespec now;
        char line[32];
        long long sent = noop->fd < 0 ? 0 : strtoll((const char *)task->payload, NULL, 10);
        if (sent <= 0)
                return QV_DONE;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        int size = snprintf(line, sizeof(line), "%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec - sent);
        return write(noop->fd, line, (size_t)size) == size ? QV_DONE : QV_RETRY;
}

static void take_time(const struct noop *noop)
{
        struct timespec time = { noop->sleep_us / 1000000, noop->sleep_us % 1000000 * 1000 };
        if (noop->sleep_us)
                (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int32_t noop_handle(void *self, const struct qv_task *task)
{
        int32_t outcome = record(self, task);
        take_time(self);
        return outcome;
}

static void noop_handle_many(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        for (uint32_t i = 0; i < count; i++)
                if (!qv_is_over(tasks, i, outcomes))
                        outcomes[i] = record(self, tasks[i]);
        take_time(self);
}

static void noop_close(void *self)
{
        const struct noop *noop = self;
        if (noop->fd >= 0)
                (void)close(noop->fd);
        free(self);
}

QV_PLUGIN("noop", "1.0", QV_THREADS, noop_init, noop_handle, noop_close, noop_handle_many)
