/* Appends a worker's report about a task to the shard's control list. */
#include <errno.h>

#include "store/sqlite/sqlite.h"

/* Reads the task's recorded start and its remaining time; false: the report is about another start. */
static bool start_find(struct sqlite_store *s, const struct sqlite_shard_row *shard, struct store_report *report)
{
        struct arena_chunk **arena = request_arena(&report->request);
        struct flight flight;
        struct store_task task;
        if (!flight_get(s, shard, report->seq, arena, &flight) ||
                row_read(s, shard->shard, report->seq, flight.task, arena, &task, NULL) ||
                !span_is(task.envelope.id, report->id))
                return false;
        store_task_note(&task, flight.note, s->now_ms);
        report->left_ms = task.busy_ms;
        return report_is_current(report, &task.note);
}

void sqlite_report(struct sqlite_store *s, struct store_request *request)
{
        struct store_report *report = (struct store_report *)request;
        uint32_t number = 0;
        (void)task_id_check(report->id, &number, NULL);
        struct sqlite_shard_row *shard = shard_write(s, number);
        report->left_ms = 0;
        report->is_put = false;
        if (!start_find(s, shard, report)) {
                report_refuse(report, -ESTALE);
                return;
        }
        if (report->verb == CONTROL_HEARTBEAT && report->enough_ms && report->left_ms > report->enough_ms)
                return;
        if (shard->controls >= STORE_REPORTS_MAX) {
                report_refuse(report, -EDQUOT);
                return;
        }
        control_add(s, shard, report->verb, report->start, report->data, report->id, report->seq);
        report->is_put = true;
}
