/* Appends a worker's report about a task to the shard's control list. */
#include <errno.h>

#include "store/redis/redis_store.h"

static void report_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_report *report = (struct store_report *)call->op->request;
        const redisReply *verdict = reply_at(reply, 0);
        if (!verdict || verdict->type != REDIS_REPLY_INTEGER || verdict->integer < -2 || verdict->integer > 1) {
                op_bad_answer(call->op);
                return;
        }
        report->left_ms = answer_number(call->op, reply_at(reply, 1), STORE_START_MAX_MS, "time");
        report->is_put = verdict->integer == 1;
        if (report->is_put)
                bell_own_write(call->op->s, call->shard);
        if (verdict->integer >= 0)
                return;
        report_refuse(report, verdict->integer == -1 ? -ESTALE : -EDQUOT);
}

void redis_report(struct redis_store *s, struct store_request *request)
{
        struct store_report *report = (struct store_report *)request;
        uint32_t shard = 0;
        (void)task_id_check(report->id, &shard, NULL);
        report->left_ms = 0;
        report->is_put = false;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_report, shard, 7);
        call->answer = report_answer;
        call_put_number(call, report->verb);
        call_put(call, report->id);
        call_put_number(call, report->seq);
        call_put(call, report->start);
        call_put(call, report->data);
        call_put_number(call, report->enough_ms);
        call_put_number(call, STORE_REPORTS_MAX);
        call_send(call);
}
