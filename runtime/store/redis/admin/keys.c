/* Keys, for people: what one waits for, and what to do about it. */
#include <errno.h>

#include "store/redis/redis_store.h"

static void keys_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_keys *keys = (struct store_keys *)call->op->request;
        const redisReply *rows = reply_at(reply, 2);
        struct redis_op *op = call->op;
        keys->cursor.major = answer_number(op, reply_at(reply, 0), TASK_NUMBER_MAX, "cursor");
        keys->is_end = answer_bool(op, reply_at(reply, 1), "end");
        keys->keys = arena_take(request_arena(&keys->request), reply_count(rows) * sizeof(*keys->keys));
        for (size_t i = 0; i < reply_count(rows); i++) {
                const redisReply *row = rows->element[i];
                keys->keys[keys->keys_count++] = (struct store_key_info){
                        .shard = keys->shard,
                        .key = reply_span(reply_at(row, 0)),
                        .state = (enum store_key_state)answer_number(op, reply_at(row, 1), KEY_STATES - 1, "state"),
                        .since_ms = answer_number(op, reply_at(row, 2), TASK_NUMBER_MAX, "time"),
                        .tasks = answer_number(op, reply_at(row, 3), TASK_NUMBER_MAX, "count"),
                        .due_in_ms = answer_number(op, reply_at(row, 4), TASK_NUMBER_MAX, "due time"),
                        .reason = reply_span(reply_at(row, 5)),
                        .head = reply_span(reply_at(row, 6)),
                        .name = reply_span(reply_at(row, 8)),
                        .head_age_ms = answer_number(op, reply_at(row, 7), TASK_NUMBER_MAX, "age"),
                };
        }
}

void redis_keys(struct redis_store *s, struct store_request *request)
{
        struct store_keys *keys = (struct store_keys *)request;
        keys->keys_count = 0;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_keys, keys->shard, 4);
        call->answer = keys_answer;
        call_put(call, keys->key);
        call_put_number(call, keys->cursor.major);
        call_put_number(call, keys->page_keys);
        call_put_number(call, s->store.record.created_ms);
        call_send(call);
}

static void act_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_key_act *act = (struct store_key_act *)call->op->request;
        if (reply->type != REDIS_REPLY_INTEGER) {
                op_bad_answer(call->op);
        } else if (reply->integer < 0) {
                op_fail(call->op, -ENOENT, "key %.*s: neither parked nor held, nor does it wait for a name",
                        (int)act->key.size, act->key.data);
        } else {
                act->is_pending = reply->integer == 1;
                bell_own_write(call->op->s, call->shard);
        }
}

void redis_key_act(struct redis_store *s, struct store_request *request)
{
        struct store_key_act *act = (struct store_key_act *)request;
        uint32_t shard = shard_of_key(act->key, s->store.shards);
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_key_act, shard, 3);
        act->is_pending = false;
        call->answer = act_answer;
        call_put_number(call, act->verb);
        call_put(call, act->key);
        call_put(call, act->reason);
        call_send(call);
}
