/* log.c: the one part that any thread may enter. */
#include "internal.h"

void qv_mock_put_log(struct qv_mock *mock, int32_t level, const char *text)
{
        (void)pthread_mutex_lock(&mock->log_lock);
        if (mock->logs_count == mock->logs_room) {
                mock->logs_room = mock->logs_room ? 2 * mock->logs_room : 16;
                struct qv_mock_log **logs = realloc(mock->logs, mock->logs_room * sizeof(struct qv_mock_log *));
                if (!logs)
                        qv_mock_wrong("out of memory");
                mock->logs = logs;
        }
        struct qv_mock_log *log = qv_mock_keep(&mock->log_blocks, sizeof(*log));
        log->level = level;
        log->text = qv_mock_keep_bytes(&mock->log_blocks, text, strnlen(text, QV_LOG_MAX));
        if (mock->running_count == 1)
                log->task_id = mock->running[0]->task.id;
        mock->logs[mock->logs_count++] = log;
        (void)pthread_mutex_unlock(&mock->log_lock);
}

void qv_mock_set_running(struct qv_mock *mock, struct record *const *running, uint32_t count)
{
        (void)pthread_mutex_lock(&mock->log_lock);
        mock->running = running;
        mock->running_count = count;
        (void)pthread_mutex_unlock(&mock->log_lock);
}

const struct qv_mock_log *qv_mock_log_at(struct qv_mock *mock, size_t index)
{
        (void)pthread_mutex_lock(&mock->log_lock);
        const struct qv_mock_log *log = index < mock->logs_count ? mock->logs[index] : NULL;
        (void)pthread_mutex_unlock(&mock->log_lock);
        return log;
}

const struct qv_mock_log *qv_mock_logged(struct qv_mock *mock, int32_t level, const char *part)
{
        const struct qv_mock_log *log;
        for (size_t i = 0; (log = qv_mock_log_at(mock, i)); i++)
                if (log->level == level && strstr(log->text, part))
                        return log;
        return NULL;
}
