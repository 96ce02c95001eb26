/* Limits that all hosts share.  A limit has a hash tag of its own: its home is one slot, and no shard's. */
#include <errno.h>
#include <inttypes.h>

#include "store/limit_share.h"
#include "store/redis/redis_store.h"

#define KEYS       3
#define ITEM_ARGS  4 /* value, want, keep, close */
#define ITEM_PARTS 7 /* granted, left, retry, is_full, has_waiting, closed, is_over */

static struct redis_call *limit_call(struct redis_op *op, enum script_number script, struct span name, unsigned args)
{
        static const char *const keys[KEYS] = { "limit", "values", "rest" };
        struct redis_call *call = call_script_keys(op, script, KEYS, args);
        for (unsigned i = 0; i < KEYS; i++)
                call_printf(call, "quiver:{%s:limit:%.*s}:%s", op->s->store.app, (int)name.size, name.data, keys[i]);
        return call;
}

static void take_answer(struct redis_call *call, const redisReply *reply)
{
        struct redis_op *op = call->op;
        struct store_limit_take *take = (struct store_limit_take *)op->request;
        if (reply_count(reply) != 1 + ITEM_PARTS * (size_t)take->items_count) {
                op_bad_answer(op);
                return;
        }
        if (!limit_read(reply_span(reply->element[0]), &take->used)) {
                op_bad_value(op, "definition");
                return;
        }
        for (uint32_t i = 0; i < take->items_count; i++) {
                struct store_limit_item *item = &take->items[i];
                redisReply *const *parts = &reply->element[1 + (size_t)ITEM_PARTS * i];
                item->granted = answer_number(op, parts[0], item->want, "share");
                item->left_ms = answer_number(op, parts[1], STORE_LIMIT_LEASE_MS, "lease");
                item->retry_ms = answer_number(op, parts[2], TASK_NUMBER_MAX, "time");
                item->is_full = answer_bool(op, parts[3], "state");
                item->has_waiting = answer_bool(op, parts[4], "state");
                item->closed_ms = answer_number(op, parts[5], STORE_LIMIT_LEASE_MS, "closure");
                item->is_over = answer_bool(op, parts[6], "state");
        }
}

void redis_limit_take(struct redis_store *s, struct store_request *request)
{
        struct store_limit_take *take = (struct store_limit_take *)request;
        struct redis_op *op = op_begin(s, request);
        struct redis_call *call =
                limit_call(op, SCRIPT_limit_take, take->limit.name, 4 + ITEM_ARGS * take->items_count);
        struct buffer definition = { 0 };
        char nonce[2 * STORE_NONCE_SIZE + 1];
        limit_put(&definition, &take->limit);
        nonce_text(take->holder, nonce);
        call->answer = take_answer;
        call_put(call,
                arena_copy(request_arena(request), (struct span){ (const char *)definition.data, definition.size }));
        call_printf(call, "%s", nonce);
        call_put_number(call, take->lease_ms);
        call_put_number(call, take->call);
        for (uint32_t i = 0; i < take->items_count; i++) {
                call_put(call, take->items[i].value);
                call_put_number(call, take->items[i].want);
                call_put_number(call, take->items[i].keep);
                call_put_number(call, take->items[i].close_ms);
        }
        buffer_free(&definition);
        call_send(call);
}

static void look_answer(struct redis_call *call, const redisReply *reply)
{
        struct redis_op *op = call->op;
        struct store_limit_look *look = (struct store_limit_look *)op->request;
        const redisReply *page = reply_at(reply, 5);
        if (!reply_count(reply)) {
                op_fail(op, -ENOENT, "limit: nobody has used it yet");
                return;
        }
        if (!limit_read(reply_span(reply_at(reply, 0)), &look->limit)) {
                op_bad_value(op, "definition");
                return;
        }
        look->refused = answer_number(op, reply_at(reply, 1), TASK_NUMBER_MAX, "count");
        look->values_count = answer_number(op, reply_at(reply, 2), TASK_NUMBER_MAX, "count");
        uint64_t now_ms = answer_number(op, reply_at(reply, 3), TASK_NUMBER_MAX, "time");
        look->cursor = answer_number(op, reply_at(reply, 4), INT64_MAX, "cursor");
        look->is_end = !look->cursor;
        /* A page may have more than was asked for: a small hash comes as a whole. */
        look->values = arena_take(request_arena(op->request), (reply_count(page) / 2 + 1) * sizeof(*look->values));
        for (size_t i = 0; i + 1 < reply_count(page); i += 2) {
                struct store_limit_value *value = &look->values[look->listed++];
                *value = (struct store_limit_value){ .value = reply_span(page->element[i]) };
                limit_share_look(&look->limit, reply_span(page->element[i + 1]), now_ms, value);
        }
}

void redis_limit_look(struct redis_store *s, struct store_request *request)
{
        struct store_limit_look *look = (struct store_limit_look *)request;
        struct redis_op *op = op_begin(s, request);
        struct redis_call *call = limit_call(op, SCRIPT_limit_look, look->name, 2);
        call->answer = look_answer;
        call_put_number(call, look->cursor);
        call_put_number(call, look->page_values);
        call_send(call);
}
