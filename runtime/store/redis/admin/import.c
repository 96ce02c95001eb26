/* Tasks, and names of submits that may be repeated, as another store had them. */
#include "base/units.h"
#include "store/redis/redis_store.h"

static void import_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_import *import = (struct store_import *)call->op->request;
        import->taken = answer_number(call->op, reply_at(reply, 0), TASK_NUMBER_MAX, "chunk");
        import->is_repeat = import->number && import->number <= import->taken;
        bool is_in = answer_bool(call->op, reply_at(reply, 1), "is in");
        import->names_left = (uint32_t)answer_number(call->op, reply_at(reply, 2), import->names_count, "count");
        if (import->number && !is_in && !import->is_repeat)
                import_refuse(import);
        if (is_in)
                bell_own_write(call->op->s, call->shard);
}

void redis_import(struct redis_store *s, struct store_request *request)
{
        const struct store_import *import = (const struct store_import *)request;
        unsigned args = 4 + 4 * import->names_count + 8 * import->items_count;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_import, import->shard, args);
        call->answer = import_answer;
        call_put(call, import->source);
        call_put_number(call, import->number);
        call_put_number(call, import->after);
        call_put_number(call, import->names_count);
        for (uint32_t i = 0; i < import->names_count; i++) {
                const struct store_remembered *record = &import->names[i];
                char hex[2 * SHA256_SIZE + 1];
                call_put(call, record->scope);
                call_put_number(call, record->left_ms);
                call_printf(call, "%s", units_hex(hex, record->digest.data, SHA256_SIZE));
                call_put(call, record->id);
        }
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

#define RECORD_VALUES 4

static void list_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_remembered_list *list = (struct store_remembered_list *)call->op->request;
        struct arena_chunk **arena = request_arena(&list->request);
        list->is_end = answer_bool(call->op, reply_at(reply, 0), "is end");
        list->names = arena_take(arena, list->page_names * sizeof(*list->names));
        for (size_t i = 1, seen = 0; i + RECORD_VALUES <= reply_count(reply) && seen < list->page_names;
                i += RECORD_VALUES, seen++) {
                redisReply *const *row = &reply->element[i];
                struct store_remembered *record = &list->names[list->names_count];
                uint8_t *digest = arena_take(arena, SHA256_SIZE);
                struct span hex = reply_span(row[2]);
                bool is_read = units_hex_read(hex.data, hex.size, digest, SHA256_SIZE);
                *record = (struct store_remembered){ .scope = reply_span(row[0]),
                        .id = reply_span(row[3]),
                        .digest = { (const char *)digest, is_read ? SHA256_SIZE : 0 },
                        .left_ms = answer_number(call->op, row[1], TASK_NUMBER_MAX, "time") };
                list->next = record->scope;
                bool is_fit = idempotency_is_fit(record);
                list->names_count += is_fit;
                list->unreadable += !is_fit;
        }
}

void redis_remembered_list(struct redis_store *s, struct store_request *request)
{
        const struct store_remembered_list *list = (const struct store_remembered_list *)request;
        struct redis_call *call = call_script(op_begin(s, request), SCRIPT_remembered_list, list->shard, 2);
        call->answer = list_answer;
        call_put(call, list->after);
        call_put_number(call, list->page_names);
        call_send(call);
}
