/* Checks a shard while others work on it: slice by slice, each of which is consistent in itself.  Repair is the same
 * with another script, which does nothing while somebody owns the shard. */
#include <errno.h>
#include <inttypes.h>

#include "store/redis/redis_store.h"

#define REPORT_LINES 64u
#define PARTS_MAX    64u

struct checking {
        struct redis_op op; /* first */
        struct buffer report;
        struct span cursor;
        uint64_t part;
        uint64_t parts;
};

static void slice(struct checking *c);

static void slice_answer(struct redis_call *call, const redisReply *reply)
{
        struct checking *c = (struct checking *)call->op;
        struct store_fsck *fsck = (struct store_fsck *)call->op->request;
        const redisReply *lines = reply_at(reply, 2);
        if (span_is(reply_span(reply), SPAN_TEXT("HELD"))) {
                op_fail(call->op, -EAGAIN, "fsck: a host works on shard %" PRIu32 "; stop all hosts of the app first",
                        fsck->shard);
                return;
        }
        if (reply_count(reply) != 5) {
                op_bad_answer(call->op);
                return;
        }
        fsck->tasks += answer_number(call->op, reply->element[1], TASK_NUMBER_MAX, "count");
        fsck->mended += (uint32_t)answer_number(call->op, reply->element[4], UINT32_MAX, "count");
        for (size_t i = 0; i < reply_count(lines); i++) {
                struct span line = reply_span(lines->element[i]);
                if (fsck->problems++ < REPORT_LINES || fsck->is_repair)
                        buffer_printf(&c->report, "shard %" PRIu32 ": %.*s\n", fsck->shard, (int)line.size, line.data);
        }
        struct span next = reply_span(reply->element[0]);
        c->cursor = next.size ? arena_copy(request_arena(call->op->request), next) : SPAN_TEXT("0");
        c->part += !next.size;
        c->parts = answer_number(call->op, reply->element[3], PARTS_MAX, "parts");
}

static void after_slice(struct redis_op *op)
{
        struct checking *c = (struct checking *)op;
        struct store_fsck *fsck = (struct store_fsck *)op->request;
        if (!op->request->status && c->part <= c->parts) {
                slice(c);
                return;
        }
        fsck->report =
                arena_copy(request_arena(op->request), (struct span){ (const char *)c->report.data, c->report.size });
        buffer_free(&c->report);
        request_finish(op->request, op->request->status);
}

static void slice(struct checking *c)
{
        struct store_fsck *fsck = (struct store_fsck *)c->op.request;
        struct redis_call *call = call_script(&c->op, fsck->is_repair ? SCRIPT_repair : SCRIPT_fsck, fsck->shard, 2);
        call->answer = slice_answer;
        call_put_number(call, c->part);
        call_put(call, c->cursor);
        call_send(call);
}

void redis_fsck(struct redis_store *s, struct store_request *request)
{
        struct store_fsck *fsck = (struct store_fsck *)request;
        struct checking *c = arena_take(request_arena(request), sizeof(*c));
        fsck->tasks = fsck->problems = fsck->mended = 0;
        c->op = (struct redis_op){ .s = s, .request = request, .after = after_slice };
        c->cursor = SPAN_TEXT("0");
        c->part = 1;
        slice(c);
}
