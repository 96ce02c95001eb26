/* Which hosts want help. */
#include <errno.h>

#include "store/redis/redis_store.h"

static struct redis_call *wanting_call(struct redis_op *op, enum script_number script, unsigned args)
{
        struct redis_call *call = call_script_keys(op, script, 3, args);
        call_put(call, key_of_app(op, "wanting"));
        call_put(call, key_of_app(op, "wantingends"));
        call_put(call, key_of_app(op, "wantingset"));
        return call;
}

static void set_answer(struct redis_call *call, const redisReply *reply)
{
        const struct store_wanting_set *set = (const struct store_wanting_set *)call->op->request;
        bool is_set = answer_bool(call->op, reply, "verdict");
        if (!is_set && !call->op->request->status)
                op_fail(call->op, -E2BIG, "wanting: %u records are the most", STORE_WANTING_MAX);
        else if (is_set && set->tasks)
                bell_own_wanting(call->op->s);
}

void redis_wanting_set(struct redis_store *s, struct store_request *request)
{
        const struct store_wanting_set *set = (const struct store_wanting_set *)request;
        char nonce[2 * STORE_NONCE_SIZE + 1];
        nonce_text(set->nonce, nonce);
        struct redis_call *call = wanting_call(op_begin(s, request), SCRIPT_wanting_set, 5);
        call->answer = set_answer;
        call_put(call, set->handler);
        call_printf(call, "%s", nonce);
        call_put_number(call, set->tasks);
        call_put_number(call, set->keep_ms);
        call_put_number(call, STORE_WANTING_MAX);
        call_send(call);
}

#define RECORD_VALUES 4

static void list_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_wanting_list *list = (struct store_wanting_list *)call->op->request;
        size_t count = reply_count(reply) / RECORD_VALUES;
        list->items = arena_take(request_arena(&list->request), count * sizeof(*list->items));
        for (size_t i = 0; i < count && list->items_count < STORE_WANTING_MAX; i++) {
                redisReply *const *row = &reply->element[i * RECORD_VALUES];
                struct store_wanting *item = &list->items[list->items_count];
                item->handler = reply_span(row[0]);
                item->tasks = answer_number(call->op, row[2], TASK_NUMBER_MAX, "tasks");
                item->since_ms = answer_number(call->op, row[3], TASK_NUMBER_MAX, "time");
                /* Whatever somebody has put there under another name is no host's. */
                if (nonce_read(reply_span(row[1]), item->nonce) && !task_handler_check(item->handler, NULL))
                        list->items_count++;
        }
}

void redis_wanting_list(struct redis_store *s, struct store_request *request)
{
        const struct store_wanting_list *list = (const struct store_wanting_list *)request;
        struct redis_call *call = wanting_call(op_begin(s, request), SCRIPT_wanting_list, 2);
        call->answer = list_answer;
        call_put(call, list->handler);
        call_put_number(call, STORE_WANTING_MAX);
        call_send_tracked(call);
}
