/* Starts the operation of reports.h: checks the request, then hands it to the driver. */
#include "store/reports.h"

#include <errno.h>
#include <string.h>

#include "store/request.h"

void store_report(struct store *store, struct store_report *report)
{
        struct store_request *request = &report->request;
        struct error error;
        uint32_t shard = 0;
        request_begin(store, request, OP_REPORT);
        report->left_ms = 0;
        report->is_put = false;
        if (task_id_check(report->id, &shard, &error))
                request_refuse(request, error.text);
        request_check_shard(request, shard);
        if (report->verb != CONTROL_HEARTBEAT && report->verb != CONTROL_OUTCOME)
                request_refuse(request, "no such verb");
        if (report->seq > STORE_SEQ_MAX || report->enough_ms > STORE_START_MAX_MS)
                request_refuse(request, "a number is out of range");
        if (!note_holder_is_good(report->start))
                request_refuse(request, "a start is named by 1 to 128 printable characters");
        if (!request->status && report->data.size > STORE_REPORT_MAX)
                request->status = error_set(&request->error, -EMSGSIZE, "report: %zu bytes, at most %u are allowed",
                        report->data.size, STORE_REPORT_MAX);
        request_start(request);
}

bool report_is_current(const struct store_report *report, const struct task_note *note)
{
        struct span start = report->start;
        struct span holder = note->holder;
        if (!note->started_epoch || holder.size < start.size || memcmp(holder.data, start.data, start.size) != 0)
                return false;
        return holder.size == start.size || start.data[start.size - 1] == '/';
}

void report_refuse(struct store_report *report, int status)
{
        int size = (int)report->id.size;
        report->request.status =
                status == -EDQUOT ? error_set(&report->request.error, status,
                                            "report: the shard of task %.*s has %u reports that no owner has read; "
                                            "try again later",
                                            size, report->id.data, STORE_REPORTS_MAX)
                                  : error_set(&report->request.error, status,
                                            "report: this is not the current start of task %.*s: it has ended, was "
                                            "interrupted, or runs elsewhere by now",
                                            size, report->id.data);
}
