/* Prepares its process once, whatever the number of seats, and says so.  No villain, but built like them. */
#include <stdatomic.h>
#include <unistd.h>

#include <quiver/plugin.h>

static _Atomic int loads, inits, closes;
static const struct qv_host *loaded_with;

static int32_t load(const struct qv_host *host)
{
        const char *why = host->config(host, "refuse");
        loaded_with = host;
        loads++;
        qv_logf(host, QV_LOG_INFO, "load %d after %d inits", loads, inits);
        return why ? qv_init_errorf(host, "%s", why) : 0;
}

static void unload(void)
{
        qv_logf(loaded_with, QV_LOG_INFO, "unload after %d of %d closes", closes, inits);
}

static int32_t init(const struct qv_host *host, void **ret_self)
{
        uint64_t ms;
        uint64_t bytes;
        int64_t number;
        *ret_self = NULL;
        inits++;
        if (qv_config_duration(host, "pause", 0, 0, 60000, &ms) ||
                qv_config_size(host, "room", 1024, 1, 1 << 20, &bytes) ||
                qv_config_number(host, "depth", 3, 1, 10, &number))
                return -1;
        qv_logf(host, QV_LOG_INFO, "pause %llu ms, room %llu bytes, depth %lld", (unsigned long long)ms,
                (unsigned long long)bytes, (long long)number);
        return 0;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        char text[32];
        int size = snprintf(text, sizeof(text), "loads %d, has next_id %d", loads, QV_HAS(task->host, next_id));
        (void)task->host->result(task->host, task, text, (size_t)size);
        return QV_DONE;
}

static void close_seat(void *self)
{
        (void)self;
        closes++;
}

QV_PLUGIN_EX(.flags = QV_THREADS, .name = "loads", .version = "1.0", .init = init, .handle = handle,
        .close = close_seat, .load = load, .unload = unload)
