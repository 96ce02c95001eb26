/* Keys that wait for a name: listing the names, and waking the keys. */
#include "store/redis/redis_store.h"

static void wake_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_wake *wake = (struct store_wake *)call->op->request;
        struct redis_shard *shard = &call->op->s->shards[call->shard];
        shard->is_watched = !reply_is_fenced(reply);
        if (reply_is_fenced(reply))
                return;
        wake->verdict = STORE_OK;
        wake->woken = (uint32_t)answer_number(call->op, reply_at(reply, 0), STORE_CALL_TASKS, "number of keys");
        wake->has_more = answer_bool(call->op, reply_at(reply, 1), "more keys");
}

void redis_wake(struct redis_store *s, struct store_request *request)
{
        struct store_wake *wake = (struct store_wake *)request;
        wake->verdict = STORE_FENCED;
        wake->woken = 0;
        wake->has_more = false;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_wake, wake->lease.shard, 4);
        call->answer = wake_answer;
        call_put_lease(call, &wake->lease);
        call_put_number(call, wake->call);
        call_put(call, wake->name);
        call_put_number(call, wake->max);
        call_send_tracked(call);
}

static void names_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_names *names = (struct store_names *)call->op->request;
        const redisReply *list = reply_at(reply, 1);
        if (reply_is_fenced(reply))
                return;
        names->verdict = STORE_OK;
        names->has_more = answer_bool(call->op, reply_at(reply, 0), "more names");
        if (!list || list->type != REDIS_REPLY_ARRAY || list->elements > STORE_CALL_NAMES) {
                op_bad_value(call->op, "names");
                return;
        }
        names->names = arena_take(request_arena(&names->request), list->elements * sizeof(*names->names));
        for (size_t i = 0; i < list->elements; i++) {
                struct span name = reply_span(list->element[i]);
                if (store_name_is_good(name))
                        names->names[names->names_count++] = arena_copy(request_arena(&names->request), name);
                else
                        op_bad_value(call->op, "name");
        }
}

void redis_names(struct redis_store *s, struct store_request *request)
{
        struct store_names *names = (struct store_names *)request;
        names->verdict = STORE_FENCED;
        names->names_count = 0;
        names->has_more = false;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_names, names->lease.shard, 3);
        call->answer = names_answer;
        call_put_lease(call, &names->lease);
        call_put(call, names->after);
        call_put_number(call, STORE_CALL_NAMES);
        call_send(call);
}
