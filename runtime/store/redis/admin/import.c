/* Tasks as another store had them. */
#include "store/redis/redis_store.h"

static void import_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_import *import = (struct store_import *)call->op->request;
        import->taken = answer_number(call->op, reply_at(reply, 0), TASK_NUMBER_MAX, "chunk");
        import->is_repeat = import->number && import->number <= import->taken;
        bool is_in = answer_bool(call->op, reply_at(reply, 1), "is in");
        if (import->number && !is_in && !import->is_repeat)
                import_refuse(import);
        if (is_in)
                bell_own_write(call->op->s, call->shard);
}

void redis_import(struct redis_store *s, struct store_request *request)
{
        const struct store_import *import = (const struct store_import *)request;
        unsigned args = 3 + 8 * import->items_count;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_import, import->shard, args);
        call->answer = import_answer;
        call_put(call, import->source);
        call_put_number(call, import->number);
        call_put_number(call, import->after);
        for (uint32_t i = 0; i < import->items_count; i++) {
                const struct store_moved *item = &import->items[i];
                call_put_number(call, item->state);
                call_put_number(call, item->lane);
                call_put(call, item->bytes);
                call_put(call, item->note);
                call_put_number(call, item->state == STATE_DEAD ? item->at_ms : item->due_in_ms);
                call_put(call, item->id);
                call_put(call, item->handler);
                call_put(call, item->reason);
        }
        call_send(call);
}
