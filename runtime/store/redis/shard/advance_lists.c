/* Claimed tasks that stay in their lane's list: an LRANGE behind the script fetches them. */
#include "base/numbers.h"
#include "store/redis/shard/advance_private.h"

/* Whether the server has executed the LRANGE right after the script.  A script that was sent again, to another server
 * or as text, may have been executed later. */
static bool is_in_order(const struct advance_op *self, const struct redis_call *call)
{
        const struct advance_list *list = &self->lists[call->number];
        return list->is_exact || (self->is_answered && self->is_sent_once && call->command.sends == 1);
}

static bool is_last(const struct redis_lane *lane, struct span bytes)
{
        struct span last = lane_last(lane);
        bytes.size = min_u64(bytes.size, LANE_LOOK_BYTES);
        return span_is(bytes, last);
}

static void list_answer(struct redis_call *call, const redisReply *reply)
{
        struct redis_op *op = call->op;
        struct advance_op *self = op->self;
        struct advance_list *list = &self->lists[call->number];
        struct redis_lane *lane = &op->s->shards[call->shard].lanes[call->number];
        /* An element that arrived between the script and the LRANGE did not ring: nobody had read the list since it was
         * trimmed. */
        if (list->call == call && self->rings && reply_count(reply) > list->count + list->has_last)
                bell_own_write(op->s, call->shard);
        if (list->call != call || !list->count || !is_in_order(self, call) || op->request->status)
                return;
        if (list->has_last && !is_last(lane, reply_span(reply_at(reply, 0)))) {
                self->is_changed = true;
                return;
        }
        uint32_t before = self->claim.count;
        for (uint32_t i = 0; i < list->count; i++) {
                const redisReply *task = reply_at(reply, i + list->has_last);
                if (!task || task->type != REDIS_REPLY_STRING) {
                        op_bad_value(op, "list of tasks");
                        return;
                }
                if (self->is_listed)
                        lane_add(lane, reply_span(task));
                lane_see(lane, reply_span(task));
                claimed_add(&self->claim, op, (uint64_t)call->number << STORE_SEQ_LANE_SHIFT | (list->first + i),
                        reply_span(task), (struct span){ 0 }, false);
        }
        lane_remember(lane, self->is_listed ? list->first + list->count - 1 : 0,
                self->is_listed ? reply_span(reply_at(reply, list->count - 1 + list->has_last)) : (struct span){ 0 });
        list->is_read = true;
        if (op->pending > 1)
                claimed_keep(&self->claim, op, before);
}

void advance_list_send(struct redis_op *op, uint32_t shard, unsigned lane)
{
        struct advance_op *self = op->self;
        struct advance_list *list = &self->lists[lane];
        struct redis_call *call = call_new(op, "LRANGE", 3);
        call->answer = list_answer;
        call->shard = shard;
        call->number = lane;
        call_put(call, key_of_lane(op->s, shard, (enum lane)lane));
        call_put_number(call, list->from - list->has_last);
        call_put_number(call, list->from + list->reads - !self->rings);
        list->call = call;
        if (((const struct store_advance *)op->request)->calls_again)
                call_send_untracked(call);
        else
                call_send(call);
}

bool advance_read_again(struct redis_op *op, uint32_t shard)
{
        struct advance_op *self = op->self;
        bool is_sent = false;
        for (unsigned lane = 0; lane < LANES; lane++) {
                struct advance_list *list = &self->lists[lane];
                if (!list->count || list->is_read)
                        continue;
                list->is_exact = is_sent = true;
                list->reads = list->count;
                advance_list_send(op, shard, lane);
        }
        return is_sent;
}
