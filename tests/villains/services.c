/* DONE for each service by name: what `quiver try` offers a handler.  No villain, but built like them. */
#include <inttypes.h>

#include <quiver/plugin.h>

static int32_t init(const struct qv_host *host, void **ret_self)
{
        (void)ret_self;
        (void)qv_config(host, "known", "");
        return 0;
}

static int32_t say(const struct qv_task *task, const char *format, uint64_t a, uint64_t b)
{
        char text[64];
        (void)snprintf(text, sizeof(text), format, a, b);
        return task->host->result(task->host, task, text, strlen(text)) ? QV_RETRY : QV_DONE;
}

static int32_t lock(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        uint64_t first = 0;
        uint64_t again = 0;
        if (host->trylock(host, "l", 60000, &first) != 0 || host->trylock(host, "l", 60000, &again) != 0)
                return QV_RETRY;
        if (host->unlock(host, "l", first + 1) != -ENOENT || host->unlock(host, "l", first) != 0)
                return QV_REJECT;
        return say(task, "%" PRIu64 " %" PRIu64, first, again);
}

static int32_t ids(const struct qv_task *task)
{
        uint64_t first = 0;
        uint64_t second = 0;
        if (task->host->next_id(task->host, &first) != 0 || task->host->next_id(task->host, &second) != 0)
                return QV_RETRY;
        return second > first ? say(task, "%" PRIu64 " %" PRIu64, first, second) : QV_REJECT;
}

static int32_t follow_up(const struct qv_task *task)
{
        struct qv_submit submit = QV_SUBMIT_INIT;
        submit.handler = "next";
        submit.key = "k2";
        submit.lane = 1;
        submit.delay_ms = 1500;
        submit.payload = "more";
        submit.payload_size = 4;
        return task->host->submit(task->host, task, &submit) ? QV_RETRY : QV_DONE;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        const struct qv_host *host = task->host;
        const char *what = task->payload;
        if (!strcmp(what, "lock"))
                return lock(task);
        if (!strcmp(what, "ids"))
                return ids(task);
        if (!strcmp(what, "submit"))
                return follow_up(task);
        if (!strcmp(what, "progress"))
                return host->progress(host, task, 1, 2) ? QV_RETRY : QV_DONE;
        if (!strcmp(what, "later"))
                return host->retry_after(host, task, 2500) ? QV_DONE : QV_RETRY;
        if (!strcmp(what, "checkpoint"))
                return host->checkpoint(host, task, "half", 4) ? QV_DONE : QV_RETRY;
        if (!strcmp(what, "unavailable"))
                return QV_UNAVAILABLE;
        if (!strcmp(what, "reject"))
                return qv_errorf(task, "never"), QV_REJECT;
        /* Anything else: how it arrived. */
        return say(task, "%" PRIu64 " bytes, ends with %" PRIu64, task->payload_size,
                task->payload_size ? ((const unsigned char *)task->payload)[task->payload_size - 1] : 0);
}

QV_PLUGIN("services", "1.0", 0, init, handle, NULL, NULL)
