/* services.c: what plugin.h promises a plugin, done in memory. */
#include <errno.h>

#include "internal.h"

static const char *const names[SERVICES] = {
        [SERVICE_LOG] = "log",
        [SERVICE_CONFIG] = "config",
        [SERVICE_ERROR] = "error",
        [SERVICE_RESULT] = "result",
        [SERVICE_SUBMIT] = "submit",
        [SERVICE_RETRY_AFTER] = "retry_after",
        [SERVICE_PROGRESS] = "progress",
        [SERVICE_CHECKPOINT] = "checkpoint",
        [SERVICE_TRYLOCK] = "trylock",
        [SERVICE_UNLOCK] = "unlock",
        [SERVICE_NEXT_ID] = "next_id",
        [SERVICE_ROOM_APPEND] = "room_append",
        [SERVICE_EXT] = "ext",
};

enum service qv_mock_service(const char *name)
{
        for (int i = 0; i < SERVICES; i++)
                if (!strcmp(names[i], name))
                        return (enum service)i;
        qv_mock_wrong("there is no service \"%s\"", name);
}

size_t qv_mock_calls(struct qv_mock *mock, const char *service)
{
        return __atomic_load_n(&mock->calls[qv_mock_service(service)], __ATOMIC_ACQUIRE);
}

static struct qv_mock *mock_of(const struct qv_host *host)
{
        return ((const struct seat *)host)->mock;
}

/* Logs what the plugin did wrong and returns `r`. */
__attribute__((format(printf, 4, 5))) static int32_t refuse(
        struct qv_mock *mock, enum service service, int32_t r, const char *format, ...)
{
        char text[QV_LOG_MAX];
        int n = snprintf(text, sizeof(text), "%s: ", names[service]);
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
        va_end(args);
        qv_mock_put_log(mock, QV_LOG_ERROR, text);
        return r;
}

/* Every service but log begins here: 0, or what it has to return. */
static int32_t enter(struct qv_mock *mock, enum service service)
{
        if (!pthread_equal(mock->thread, pthread_self()))
                return refuse(mock, service, -EINVAL, "called from another thread than the seat's");
        (void)__atomic_add_fetch(&mock->calls[service], 1, __ATOMIC_RELEASE);
        if (mock->hook)
                mock->hook(mock, names[service], mock->hook_arg);
        if (mock->failures[service] == -ENOTSUP) {
                char text[96];
                (void)snprintf(
                        text, sizeof(text), "%s is not supported by this host; it returns -ENOTSUP", names[service]);
                qv_mock_put_log(mock, QV_LOG_WARN, text);
        }
        return mock->failures[service];
}

/* The same for a service that takes a task, which has to be running: its record, or NULL and what to return. */
static struct record *enter_task(
        struct qv_mock *mock, enum service service, const struct qv_task *task, int32_t *ret_error)
{
        int32_t r = enter(mock, service);
        for (uint32_t i = 0; !r && i < mock->running_count; i++)
                if (mock->running[i]->lent == task)
                        return mock->running[i];
        *ret_error = r ? r : refuse(mock, service, -EINVAL, "the task is not being handled");
        return NULL;
}

static void service_log(const struct qv_host *host, int32_t level, const char *text)
{
        struct qv_mock *mock = mock_of(host);
        (void)__atomic_add_fetch(&mock->calls[SERVICE_LOG], 1, __ATOMIC_RELEASE);
        if (text)
                qv_mock_put_log(mock, level, text);
}

static const char *service_config(const struct qv_host *host, const char *name)
{
        struct qv_mock *mock = mock_of(host);
        if (enter(mock, SERVICE_CONFIG) < 0 || !name)
                return NULL;
        for (struct setting *setting = mock->settings; setting; setting = setting->next) {
                if (strcmp(setting->name, name) != 0)
                        continue;
                if (mock->is_in_init)
                        setting->is_read = true;
                return setting->lent;
        }
        return NULL;
}

static int32_t service_error(const struct qv_host *host, const struct qv_task *task, const char *text)
{
        struct qv_mock *mock = mock_of(host);
        int32_t r = 0;
        struct record *record = NULL;
        if (task)
                record = enter_task(mock, SERVICE_ERROR, task, &r);
        else
                r = enter(mock, SERVICE_ERROR);
        if (r)
                return r;
        if (!text)
                return refuse(mock, SERVICE_ERROR, -EINVAL, "text is NULL");
        if (!record && !mock->is_in_init)
                return refuse(mock, SERVICE_ERROR, -EINVAL, "task is NULL outside of init");
        const char *copy = qv_mock_keep_bytes(&mock->kept, text, strnlen(text, QV_ERROR_MAX));
        if (record)
                record->staged.error = copy;
        else
                mock->init_error = copy;
        return 0;
}

/* Bytes from the plugin: 0, or why they are refused. */
static int32_t check_bytes(
        struct qv_mock *mock, enum service service, const char *field, const void *data, size_t size, size_t max)
{
        if (!data && size)
                return refuse(mock, service, -EINVAL, "%s is NULL, its size is %zu", field, size);
        if (size > max)
                return refuse(mock, service, -EMSGSIZE, "%s of %zu bytes, at most %zu are taken", field, size, max);
        return 0;
}

static int32_t service_result(const struct qv_host *host, const struct qv_task *task, const void *data, size_t size)
{
        struct qv_mock *mock = mock_of(host);
        int32_t r = 0;
        struct record *record = enter_task(mock, SERVICE_RESULT, task, &r);
        if (!record)
                return r;
        r = check_bytes(mock, SERVICE_RESULT, "data", data, size, QV_MOCK_PAYLOAD_MAX);
        if (r)
                return r;
        record->staged.result = qv_mock_keep_bytes(&mock->kept, data, size);
        record->staged.result_size = size;
        return 0;
}

static int32_t service_submit(const struct qv_host *host, const struct qv_task *task, const struct qv_submit *submit)
{
        struct qv_mock *mock = mock_of(host);
        struct qv_submit known = { 0 };
        char problem[128] = "";
        int32_t r = 0;
        struct record *record = enter_task(mock, SERVICE_SUBMIT, task, &r);
        if (!record)
                return r;
        if (!submit || submit->size < offsetof(struct qv_submit, key))
                return refuse(mock, SERVICE_SUBMIT, -EINVAL, "size is too small; start from QV_SUBMIT_INIT");
        memcpy(&known, submit, submit->size < sizeof(known) ? submit->size : sizeof(known));
        if (record->staged.submits_count == QV_SUBMITS_MAX)
                return refuse(mock, SERVICE_SUBMIT, -E2BIG, "a task has at most %u follow-ups", QV_SUBMITS_MAX);
        r = qv_mock_check_submit(&known, problem, sizeof(problem));
        if (r)
                return refuse(mock, SERVICE_SUBMIT, r, "%s", problem);
        qv_mock_stage_submit(mock, &record->staged, &known);
        return 0;
}

static int32_t service_retry_after(const struct qv_host *host, const struct qv_task *task, uint64_t delay_ms)
{
        int32_t r = 0;
        struct record *record = enter_task(mock_of(host), SERVICE_RETRY_AFTER, task, &r);
        if (!record)
                return r;
        record->staged.retry_after_ms = delay_ms < INT64_MAX ? (int64_t)delay_ms : INT64_MAX;
        return 0;
}

static int32_t service_progress(const struct qv_host *host, const struct qv_task *task, uint64_t done, uint64_t total)
{
        int32_t r = 0;
        struct record *record = enter_task(mock_of(host), SERVICE_PROGRESS, task, &r);
        if (!record)
                return r;
        record->task.progress_done = done;
        record->task.progress_total = total;
        return 0;
}

static int32_t service_checkpoint(const struct qv_host *host, const struct qv_task *task, const void *data, size_t size)
{
        struct qv_mock *mock = mock_of(host);
        int32_t r = 0;
        struct record *record = enter_task(mock, SERVICE_CHECKPOINT, task, &r);
        if (!record)
                return r;
        r = check_bytes(mock, SERVICE_CHECKPOINT, "data", data, size, QV_CHECKPOINT_MAX);
        if (r)
                return r;
        record->task.checkpoint = qv_mock_keep_bytes(&mock->kept, data, size);
        record->task.checkpoint_size = size;
        return 0;
}

static int32_t check_lock_name(struct qv_mock *mock, enum service service, const char *name)
{
        if (!name || !*name)
                return refuse(mock, service, -EINVAL, "name is %s", name ? "empty" : "NULL");
        if (strlen(name) > QV_LOCK_NAME_MAX)
                return refuse(mock, service, -EMSGSIZE, "name has more than %u bytes", QV_LOCK_NAME_MAX);
        if (name[0] == '.' ||
                name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@%+-")])
                return refuse(mock, service, -EINVAL,
                        "name \"%s\": only letters, digits and . _ : @ %% + -, no dot first", name);
        return 0;
}

static int32_t service_trylock(const struct qv_host *host, const char *name, uint64_t ttl_ms, uint64_t *ret_token)
{
        struct qv_mock *mock = mock_of(host);
        int32_t r = enter(mock, SERVICE_TRYLOCK);
        if (!r)
                r = check_lock_name(mock, SERVICE_TRYLOCK, name);
        if (r)
                return r;
        if (!ttl_ms || ttl_ms > QV_LOCK_TTL_MAX_MS || !ret_token)
                return refuse(mock, SERVICE_TRYLOCK, -EINVAL, "%s",
                        !ttl_ms     ? "ttl_ms is 0"
                        : ret_token ? "ttl_ms is more than QV_LOCK_TTL_MAX_MS"
                                    : "ret_token is NULL");
        return qv_mock_lock_take(mock, name, ttl_ms, ret_token);
}

static int32_t service_unlock(const struct qv_host *host, const char *name, uint64_t token)
{
        struct qv_mock *mock = mock_of(host);
        int32_t r = enter(mock, SERVICE_UNLOCK);
        if (!r)
                r = check_lock_name(mock, SERVICE_UNLOCK, name);
        return r ? r : qv_mock_lock_give(mock, name, token);
}

static int32_t service_next_id(const struct qv_host *host, uint64_t *ret_id)
{
        struct qv_mock *mock = mock_of(host);
        int32_t r = enter(mock, SERVICE_NEXT_ID);
        if (r)
                return r;
        if (!ret_id)
                return refuse(mock, SERVICE_NEXT_ID, -EINVAL, "ret_id is NULL");
        /* Milliseconds above, a count below, as in a real id. */
        struct qv_mock *shared = mock->first;
        uint64_t from_clock = qv_mock_now_ms(mock) << 22;
        (void)pthread_mutex_lock(&shared->shared_lock);
        shared->last_id = from_clock > shared->last_id ? from_clock : shared->last_id + 1;
        *ret_id = shared->last_id;
        (void)pthread_mutex_unlock(&shared->shared_lock);
        return 0;
}

static int32_t service_room_append(
        const struct qv_host *host, const char *room, const void *data, size_t size, uint64_t *ret_number)
{
        struct qv_mock *mock = mock_of(host);
        int32_t r = enter(mock, SERVICE_ROOM_APPEND);
        if (r)
                return r;
        if (!room || !*room || strlen(room) > 255)
                return refuse(mock, SERVICE_ROOM_APPEND, -EINVAL, "room is %s",
                        !room   ? "NULL"
                        : *room ? "longer than 255 bytes"
                                : "empty");
        for (const char *c = room; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 127)
                        return refuse(mock, SERVICE_ROOM_APPEND, -EINVAL, "room has a control character");
        if (!ret_number)
                return refuse(mock, SERVICE_ROOM_APPEND, -EINVAL, "ret_number is NULL");
        r = check_bytes(mock, SERVICE_ROOM_APPEND, "data", data, size, QV_ROOM_ENTRY_MAX);
        return r ? r : qv_mock_room_put(mock, room, data, size, ret_number);
}

static const void *service_ext(const struct qv_host *host, const char *name)
{
        (void)name;
        (void)enter(mock_of(host), SERVICE_EXT);
        return NULL;
}

void qv_mock_fill_services(struct qv_host *host)
{
        host->log = service_log;
        host->config = service_config;
        host->error = service_error;
        host->result = service_result;
        host->submit = service_submit;
        host->retry_after = service_retry_after;
        host->progress = service_progress;
        host->checkpoint = service_checkpoint;
        host->trylock = service_trylock;
        host->unlock = service_unlock;
        host->next_id = service_next_id;
        host->ext = service_ext;
        host->room_append = service_room_append;
}
