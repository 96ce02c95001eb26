/* DONE for each service by name, with what it answered as the result.  No villain, but built like them. */
#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>

#include <quiver/plugin.h>

static int32_t init(const struct qv_host *host, void **ret_self)
{
        (void)ret_self;
        (void)qv_config(host, "known", "");
        return 0;
}

__attribute__((format(printf, 2, 3))) static int32_t say(const struct qv_task *task, const char *format, ...)
{
        char text[64];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        return task->host->result(task->host, task, text, strlen(text)) ? QV_RETRY : QV_DONE;
}

static int32_t lock(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        uint64_t token = 0;
        int32_t locked = host->trylock(host, "l", 60000, &token);
        int32_t unlocked = host->unlock(host, "l", token);
        return say(task, "trylock %" PRId32 ", unlock %" PRId32, locked, unlocked);
}

static int32_t ids(const struct qv_task *task)
{
        uint64_t id = 0;
        return say(task, "next_id %" PRId32, task->host->next_id(task->host, &id));
}

static int32_t room(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        uint64_t first = 0;
        uint64_t second = 0;
        if (!QV_HAS(host, room_append))
                return say(task, "no room_append");
        int32_t r = host->room_append(host, "news", "a\0b", 3, &first);
        int32_t again = host->room_append(host, "news", NULL, 0, &second);
        int32_t wrong = host->room_append(host, "a\nb", "x", 1, &second);
        return say(task, "room_append %" PRId32 " %" PRId32 " %" PRId32 ", next %d", r, again, wrong,
                (int)(second == first + 1));
}

/* A thousand, each larger than the one before: the first and the last. */
static int32_t many_ids(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        uint64_t first = 0;
        uint64_t last = 0;
        for (unsigned i = 0; i < 1000; i++) {
                uint64_t id = 0;
                int32_t r = host->next_id(host, &id);
                if (r < 0 || id <= last)
                        return say(task, "next_id %" PRId32 " after %u", r, i);
                first = first ? first : id;
                last = id;
        }
        return say(task, "%" PRIu64 " %" PRIu64, first, last);
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

/* What the task came with. */
static int32_t seen(const struct qv_task *task)
{
        const char *name = task->headers_count ? task->headers[task->headers_count - 1].name : "-";
        const char *value = task->headers_count ? task->headers[task->headers_count - 1].value : "-";
        return say(task, "%" PRIu32 " of %" PRIu32 ", %.*s, %zu %s=%s", task->attempt, task->attempts_max,
                (int)task->checkpoint_size, task->checkpoint_size ? (const char *)task->checkpoint : "",
                task->headers_count, name, value);
}

static int32_t wait_for_stop(const struct qv_task *task)
{
        while (!qv_stop(task))
                (void)usleep(1000);
        return qv_errorf(task, "told to stop"), QV_RETRY;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        const struct qv_host *host = task->host;
        const char *what = task->payload;
        if (!strcmp(what, "lock"))
                return lock(task);
        if (!strcmp(what, "seen"))
                return seen(task);
        if (!strcmp(what, "wait"))
                return wait_for_stop(task);
        if (!strcmp(what, "ids"))
                return ids(task);
        if (!strcmp(what, "many ids"))
                return many_ids(task);
        if (!strcmp(what, "room"))
                return room(task);
        if (!strcmp(what, "submit"))
                return follow_up(task);
        if (!strcmp(what, "progress"))
                return host->progress(host, task, 1, 2) ? QV_RETRY : QV_DONE;
        if (!strcmp(what, "later"))
                return host->retry_after(host, task, 2500) ? QV_DONE : QV_RETRY;
        if (!strcmp(what, "not now"))
                return host->retry_after(host, task, 2500) ? QV_DONE : (qv_errorf(task, "it is away"), QV_LATER);
        if (!strcmp(what, "checkpoint"))
                return host->checkpoint(host, task, "half", 4) ? QV_DONE : QV_RETRY;
        if (!strcmp(what, "unavailable"))
                return QV_UNAVAILABLE;
        if (!strcmp(what, "reject"))
                return qv_errorf(task, "never"), QV_REJECT;
        /* Anything else: how it arrived. */
        return say(task, "%zu bytes, ends with %d", task->payload_size,
                task->payload_size ? ((const unsigned char *)task->payload)[task->payload_size - 1] : 0);
}

QV_PLUGIN("services", "1.0", 0, init, handle, NULL, NULL)
