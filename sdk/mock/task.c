/* task.c: a task from its first start to its last outcome. */
#include "internal.h"

struct qv_mock_task *qv_mock_new_task_bytes(struct qv_mock *mock, const char *key, const void *payload, size_t size)
{
        const char *problem = key ? qv_mock_check_key(key) : NULL;
        if (problem)
                qv_mock_wrong("task with key \"%s\": the key %s", key, problem);
        if (size > QV_MOCK_PAYLOAD_MAX)
                qv_mock_wrong("task with a payload of %zu bytes, at most %u are taken", size, QV_MOCK_PAYLOAD_MAX);
        struct record *record = qv_mock_keep(&mock->kept, sizeof(*record));
        char id[32];
        (void)snprintf(id, sizeof(id), "mock-%llu",
                (unsigned long long)__atomic_add_fetch(&mock->first->tasks_made, 1, __ATOMIC_RELAXED));
        record->task.id = qv_mock_keep_text(&mock->kept, id);
        record->task.key = key ? qv_mock_keep_text(&mock->kept, key) : record->task.id;
        record->task.handler = mock->plugin.name;
        record->task.attempt = 1;
        record->task.attempts_max = 4;
        record->task.submitted_ms = qv_mock_now_ms(mock);
        record->task.outcome = -1;
        record->task.retry_after_ms = -1;
        record->payload = qv_mock_keep_bytes(&mock->kept, payload, size);
        record->payload_size = size;
        return &record->task;
}

struct qv_mock_task *qv_mock_new_task(struct qv_mock *mock, const char *key, const char *payload)
{
        return qv_mock_new_task_bytes(mock, key, payload, strlen(payload));
}

void qv_mock_header_bytes(
        struct qv_mock *mock, struct qv_mock_task *task, const char *name, const void *value, size_t size)
{
        struct record *record = (struct record *)task;
        struct qv_header2 *headers = qv_mock_keep(&mock->kept, (record->headers_count + 1) * sizeof(*headers));
        if (record->headers_count)
                memcpy(headers, record->headers, record->headers_count * sizeof(*headers));
        headers[record->headers_count++] = (struct qv_header2){ .name = qv_mock_keep_text(&mock->kept, name),
                .value = qv_mock_keep_bytes(&mock->kept, value, size),
                .value_size = size,
                .is_bytes = qv_mock_is_bytes(value, size) };
        record->headers = headers;
}

void qv_mock_header(struct qv_mock *mock, struct qv_mock_task *task, const char *name, const char *value)
{
        qv_mock_header_bytes(mock, task, name, value, strlen(value));
}

void qv_mock_set_id(struct qv_mock *mock, struct qv_mock_task *task, const char *id)
{
        const char *problem = qv_mock_check_key(id);
        if (problem)
                qv_mock_wrong("the id of a task %s", problem);
        if (task->outcome != -1)
                qv_mock_wrong("task %s was started: its id stays", task->id);
        bool is_key = task->key == task->id;
        task->id = qv_mock_keep_text(&mock->kept, id);
        if (is_key)
                task->key = task->id;
}

static void lend_headers(struct block **loans, const struct record *record, struct qv_task *task)
{
        struct qv_header *texts = qv_mock_keep(loans, record->headers_count * sizeof(*texts));
        struct qv_header2 *all = qv_mock_keep(loans, record->headers_count * sizeof(*all));
        task->headers = texts;
        task->headers2 = all;
        task->headers2_count = record->headers_count;
        task->headers2_stride = sizeof(*all);
        for (size_t i = 0; i < record->headers_count; i++) {
                all[i] = record->headers[i];
                all[i].name = qv_mock_keep_text(loans, all[i].name);
                all[i].value = qv_mock_keep_bytes(loans, all[i].value, all[i].value_size);
                if (!all[i].is_bytes)
                        texts[task->headers_count++] = (struct qv_header){ all[i].name, all[i].value };
        }
}

/* What the plugin sees is copied for each start and freed at its end: it was only lent. */
static void lend(struct qv_mock *mock, struct record *record)
{
        struct block **loans = &record->loans;
        struct qv_mock_task *from = &record->task;
        struct qv_task *task = qv_mock_keep(loans, sizeof(*task));
        task->size = sizeof(*task);
        task->attempt = from->attempt;
        task->attempts_max = from->attempts_max;
        task->crashes = from->crashes;
        task->submitted_ms = from->submitted_ms;
        task->lane = from->lane;
        task->host = &mock->seat->host;
        task->id = qv_mock_keep_text(loans, from->id);
        task->key = qv_mock_keep_text(loans, from->key);
        task->handler = qv_mock_keep_text(loans, from->handler);
        task->payload = qv_mock_keep_bytes(loans, record->payload, record->payload_size);
        task->payload_size = record->payload_size;
        task->fence_epoch = from->fence_epoch = mock->zombie_epoch ? mock->zombie_epoch : mock->fence_epoch;
        task->fence_start = from->fence_start = mock->zombie_epoch ? mock->zombie_start : ++mock->fence_start;
        lend_headers(loans, record, task);
        if (from->checkpoint) {
                task->checkpoint = qv_mock_keep_bytes(loans, from->checkpoint, from->checkpoint_size);
                task->checkpoint_size = from->checkpoint_size;
        }
        task->stop_word = &mock->stop_word;
        task->stop_value = 1;
        if (from->timeout_ms) {
                uint64_t deadline_ms = qv_mock_now_ms(mock) + from->timeout_ms;
                task->deadline_ns = deadline_ms * 1000000;
                if (deadline_ms < __atomic_load_n(&mock->deadline_ms, __ATOMIC_RELAXED))
                        __atomic_store_n(&mock->deadline_ms, deadline_ms, __ATOMIC_RELEASE);
        }
        record->lent = task;
}

static void start(struct qv_mock *mock, struct record *const *records, uint32_t count)
{
        if (!mock->seat)
                qv_mock_wrong("there is no instance: call qv_mock_init() first, and see that it returns 0");
        if (mock->running_count)
                qv_mock_wrong("a task is being handled: a seat has one call at a time");
        for (uint32_t i = 0; i < count; i++) {
                const struct qv_mock_task *task = &records[i]->task;
                if (task->outcome == QV_DONE || task->outcome == QV_REJECT)
                        qv_mock_wrong("task %s is over: a host does not start it again", task->id);
                bool is_follower = mock->is_same_key && i && !strcmp(records[i - 1]->task.key, task->key);
                for (uint32_t j = 0; j < i && !is_follower; j++)
                        if (!strcmp(records[j]->task.key, task->key))
                                qv_mock_wrong("two tasks of key %s in one batch%s: a host never does that", task->key,
                                        mock->is_same_key ? ", with others between them" : "");
        }
        __atomic_store_n(&mock->deadline_ms, UINT64_MAX, __ATOMIC_RELEASE);
        for (uint32_t i = 0; i < count; i++) {
                records[i]->staged = (struct staged){ .retry_after_ms = -1 };
                records[i]->task.progress_done = records[i]->task.progress_total = 0;
                lend(mock, records[i]);
        }
        qv_mock_set_running(mock, records, count);
}

static void settle(struct qv_mock *mock, struct record *record, int32_t outcome)
{
        struct qv_mock_task *task = &record->task;
        struct staged *staged = &record->staged;
        if (outcome == QV_MOCK_CRASHED) {
                staged->error = "crashed";
                task->crashes++;
        } else if (outcome == QV_LATER) {
                task->laters++;
        } else if (outcome != QV_LIMITED && (outcome < QV_DONE || outcome > QV_UNAVAILABLE)) {
                char text[96];
                (void)snprintf(text, sizeof(text), "the handler returned %d, which is no outcome%s", outcome,
                        outcome == QV_PENDING ? " yet (QV_PENDING is reserved)" : "");
                staged->error = qv_mock_keep_text(&mock->kept, text);
                outcome = QV_RETRY;
        }
        bool is_done = outcome == QV_DONE;
        task->outcome = outcome;
        task->starts++;
        task->attempt += outcome == QV_RETRY;
        task->error = is_done ? NULL : staged->error;
        task->result = is_done ? staged->result : NULL;
        task->result_size = is_done ? staged->result_size : 0;
        task->submits = is_done ? staged->submits : NULL;
        task->submits_count = is_done ? staged->submits_count : 0;
        bool has_delay = outcome == QV_RETRY || outcome == QV_LATER || outcome == QV_LIMITED;
        task->retry_after_ms = has_delay ? staged->retry_after_ms : -1;
        record->lent = NULL;
        qv_mock_drop(&record->loans);
}

/* A task of an ordered batch that was not to be started. */
static void leave_out(struct record *record, int32_t outcome)
{
        if (outcome == QV_DONE)
                qv_mock_wrong(
                        "task %s of key %s is said to be done, but the one of its key before it is not: it must not "
                        "be started then (qv_is_over), and would run again",
                        record->task.id, record->task.key);
        record->lent = NULL;
        qv_mock_drop(&record->loans);
}

static void end_start(struct qv_mock *mock)
{
        qv_mock_lock_end(mock);
        qv_mock_set_running(mock, NULL, 0);
        __atomic_store_n(&mock->deadline_ms, UINT64_MAX, __ATOMIC_RELEASE);
        __atomic_store_n(&mock->stop_word, 0, __ATOMIC_RELEASE);
}

/* The process is gone, and with it what load and init made; neither close nor unload is called. */
static void lose_instance(struct qv_mock *mock)
{
        mock->loader = NULL;
        qv_mock_end_instance(mock);
}

/* Changes no local variable between setjmp and longjmp: their values would be lost. */
static int32_t call_handle(struct qv_mock *mock, const struct qv_task *task)
{
        if (setjmp(mock->crash_point))
                return QV_MOCK_CRASHED;
        int32_t outcome = mock->plugin.handle(mock->self, task);
        /* What a plugin returns is no crash of ours, whatever the number. */
        return outcome == QV_MOCK_CRASHED ? -1 : outcome;
}

int32_t qv_mock_handle(struct qv_mock *mock, struct qv_mock_task *task)
{
        struct record *record = (struct record *)task;
        start(mock, &record, 1);
        int32_t outcome = call_handle(mock, record->lent);
        end_start(mock);
        settle(mock, record, outcome);
        if (outcome == QV_MOCK_CRASHED)
                lose_instance(mock);
        return task->outcome;
}

int32_t qv_mock_handle_zombie(
        struct qv_mock *mock, struct qv_mock_task *task, uint64_t fence_epoch, uint64_t fence_start)
{
        struct qv_mock_task before = *task;
        bool is_older = fence_epoch < mock->fence_epoch ||
                        (fence_epoch == mock->fence_epoch && fence_start < mock->fence_start);
        if (!is_older || !fence_epoch || !fence_start)
                qv_mock_wrong("a zombie has an older fence than (%llu, %llu), not (%llu, %llu)",
                        (unsigned long long)mock->fence_epoch, (unsigned long long)mock->fence_start,
                        (unsigned long long)fence_epoch, (unsigned long long)fence_start);
        mock->zombie_epoch = fence_epoch;
        mock->zombie_start = fence_start;
        task->outcome = -1; /* it may be over by now: the zombie does not know */
        int32_t outcome = qv_mock_handle(mock, task);
        mock->zombie_epoch = mock->zombie_start = 0;
        *task = before;
        return outcome;
}

static bool call_handle_many(struct qv_mock *mock, const struct qv_task *const *lent, uint32_t count, int32_t *outcomes)
{
        if (setjmp(mock->crash_point))
                return false;
        mock->plugin.handle_many(mock->self, lent, count, outcomes);
        return true;
}

void qv_mock_set_same_key(struct qv_mock *mock, int is_same_key)
{
        mock->is_same_key = is_same_key != 0;
}

uint32_t qv_mock_handle_many(struct qv_mock *mock, struct qv_mock_task *const *tasks, uint32_t count)
{
        if (!mock->plugin.handle_many)
                qv_mock_wrong("the plugin has no handle_many");
        /* A block each, as the plugin only borrows them. */
        struct block *loans = NULL;
        struct record **records = qv_mock_keep(&loans, count * sizeof(struct record *));
        const struct qv_task **lent = qv_mock_keep(&loans, count * sizeof(struct qv_task *));
        int32_t *outcomes = qv_mock_keep(&loans, count * sizeof(*outcomes));
        for (uint32_t i = 0; i < count; i++)
                records[i] = (struct record *)tasks[i];
        start(mock, records, count);
        for (uint32_t i = 0; i < count; i++) {
                lent[i] = records[i]->lent;
                outcomes[i] = QV_RETRY;
        }
        bool is_alive = call_handle_many(mock, lent, count, outcomes);
        end_start(mock);
        uint32_t done = 0;
        bool is_over = false; /* of this key, one is not done */
        for (uint32_t i = 0; i < count; i++) {
                int32_t outcome = outcomes[i] == QV_MOCK_CRASHED ? -1 : outcomes[i];
                is_over &= i && !strcmp(records[i - 1]->task.key, records[i]->task.key);
                if (is_over && is_alive) {
                        leave_out(records[i], outcome);
                        continue;
                }
                is_over = outcome != QV_DONE;
                settle(mock, records[i], is_alive ? outcome : QV_MOCK_CRASHED);
                done += records[i]->task.outcome == QV_DONE;
        }
        if (!is_alive)
                lose_instance(mock);
        qv_mock_drop(&loans);
        return done;
}
