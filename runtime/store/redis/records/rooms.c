/* Rooms: named logs that any process appends to and reads. */
#include <errno.h>

#include "store/redis/redis_store.h"

/* A script that is given the room's entries as its key, and, where slots move, one that never exists (call.c). */
static struct redis_call *room_call(struct redis_op *op, enum script_number script, struct span name, unsigned args)
{
        uint32_t shard = shard_of_key(name, op->s->store.shards);
        struct redis_call *call = call_script_keys(op, script, op->s->is_cluster ? 2 : 1, args);
        call->shard = shard;
        call_printf(call, "quiver:{%s:%u}:room:%.*s", op->s->store.app, shard, (int)name.size, name.data);
        if (op->s->is_cluster)
                call_put(call, key_of_shard(op, shard, "never"));
        return call;
}

static void set_answer(struct redis_call *call, const redisReply *reply)
{
        if (!answer_bool(call->op, reply, "verdict") && !call->op->request->status)
                room_refuse_more(call->op->request, call->shard);
}

void redis_room_set(struct redis_store *s, struct store_request *request)
{
        const struct store_room_set *set = (const struct store_room_set *)request;
        struct redis_call *call = room_call(op_begin(s, request), SCRIPT_room_set, set->name, 5);
        call->answer = set_answer;
        call_put_number(call, set->entries_max);
        call_put_number(call, set->bytes_max);
        call_put_number(call, set->age_ms);
        call_put_number(call, STORE_ROOMS_MAX);
        call_put_number(call, STORE_ROOM_PORTION);
        call_send(call);
}

static void append_answer(struct redis_call *call, const redisReply *reply)
{
        enum { REPEATED = 1, BEGINS_ELSEWHERE };
        struct store_room_append *append = (struct store_room_append *)call->op->request;
        append->number = answer_number(call->op, reply_at(reply, 0), TASK_NUMBER_MAX, "number");
        uint64_t verdict = answer_number(call->op, reply_at(reply, 1), BEGINS_ELSEWHERE, "verdict");
        append->is_repeat = verdict == REPEATED;
        if (verdict == BEGINS_ELSEWHERE)
                room_refuse_begin(append);
        else if (!append->number && !append->is_repeat && !append->request.status)
                room_refuse_more(&append->request, call->shard);
        else if (!append->is_repeat)
                bell_own_room(call->op->s, call->shard);
}

void redis_room_append(struct redis_store *s, struct store_request *request)
{
        const struct store_room_append *append = (const struct store_room_append *)request;
        uint32_t values = append->at_ms ? 2 : 1; /* of an entry */
        struct redis_call *call =
                room_call(op_begin(s, request), SCRIPT_room_append, append->name, 9 + values * append->entries_count);
        call->answer = append_answer;
        call_put(call, append->source);
        call_put_number(call, append->source_number);
        call_put_number(call, STORE_ROOM_ENTRIES);
        call_put_number(call, STORE_ROOM_BYTES);
        call_put_number(call, STORE_ROOM_AGE_MS);
        call_put_number(call, STORE_ROOMS_MAX);
        call_put_number(call, STORE_ROOM_SOURCES_MAX);
        call_put_number(call, append->begin);
        call_put_number(call, values);
        for (uint32_t i = 0; i < append->entries_count; i++) {
                call_put(call, append->entries[i]);
                if (append->at_ms)
                        call_put_number(call, append->at_ms[i]);
        }
        call_send(call);
}

#define READ_HEAD    4 /* values before the entries */
#define ENTRY_VALUES 3

static void read_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_room_read *read = (struct store_room_read *)call->op->request;
        read->is_there = answer_bool(call->op, reply_at(reply, 0), "verdict");
        read->last = answer_number(call->op, reply_at(reply, 1), TASK_NUMBER_MAX, "last number");
        uint64_t entries = answer_number(call->op, reply_at(reply, 2), read->last, "count");
        read->has_more = answer_bool(call->op, reply_at(reply, 3), "has more");
        read->first = read->last - entries + 1;
        read->is_gap = room_is_gap(read->from, read->first, read->last);
        read->entries = arena_take(request_arena(&read->request), read->entries_max * sizeof(*read->entries));
        for (size_t i = READ_HEAD; i + ENTRY_VALUES <= reply_count(reply) && read->entries_count < read->entries_max;
                i += ENTRY_VALUES)
                read->entries[read->entries_count++] = (struct store_room_entry){
                        .number = answer_number(call->op, reply->element[i], TASK_NUMBER_MAX, "number"),
                        .at_ms = answer_number(call->op, reply->element[i + 1], TASK_NUMBER_MAX, "time"),
                        .bytes = reply_span(reply->element[i + 2]),
                };
}

void redis_room_read(struct redis_store *s, struct store_request *request)
{
        const struct store_room_read *read = (const struct store_room_read *)request;
        struct redis_call *call = room_call(op_begin(s, request), SCRIPT_room_read, read->name, 3);
        call->answer = read_answer;
        call_put_number(call, read->from);
        call_put_number(call, read->entries_max);
        call_put_number(call, STORE_CALL_BYTES);
        if (read->follow_ms) {
                call_send_tracked(call);
                bell_want(s);
        } else {
                call_send(call);
        }
}

static void truncate_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_room_truncate *truncate = (struct store_room_truncate *)call->op->request;
        bool is_there = answer_bool(call->op, reply_at(reply, 0), "verdict");
        truncate->first = answer_number(call->op, reply_at(reply, 1), TASK_NUMBER_MAX, "number");
        truncate->has_more = answer_bool(call->op, reply_at(reply, 2), "has more");
        if (!is_there && !truncate->request.status)
                room_refuse_missing(&truncate->request, truncate->name);
}

void redis_room_truncate(struct redis_store *s, struct store_request *request)
{
        const struct store_room_truncate *truncate = (const struct store_room_truncate *)request;
        struct redis_call *call = room_call(op_begin(s, request), SCRIPT_room_truncate, truncate->name, 2);
        call->answer = truncate_answer;
        call_put_number(call, truncate->through);
        call_put_number(call, STORE_ROOM_PORTION);
        call_send(call);
}

static void delete_answer(struct redis_call *call, const redisReply *reply)
{
        const struct store_room_delete *delete_room = (const struct store_room_delete *)call->op->request;
        if (!answer_bool(call->op, reply, "verdict") && !call->op->request->status)
                room_refuse_missing(call->op->request, delete_room->name);
}

void redis_room_delete(struct redis_store *s, struct store_request *request)
{
        const struct store_room_delete *delete_room = (const struct store_room_delete *)request;
        struct redis_call *call = room_call(op_begin(s, request), SCRIPT_room_delete, delete_room->name, 0);
        call->answer = delete_answer;
        call_send(call);
}

#define ROOM_VALUES 7

static void list_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_room_list *list = (struct store_room_list *)call->op->request;
        struct redis_op *op = call->op;
        list->is_end = answer_bool(op, reply_at(reply, 0), "is end");
        list->rooms = arena_take(request_arena(&list->request), list->page_rooms * sizeof(*list->rooms));
        for (size_t i = 1; i + ROOM_VALUES <= reply_count(reply) && list->rooms_count < list->page_rooms;
                i += ROOM_VALUES) {
                redisReply *const *row = &reply->element[i];
                struct store_room *room = &list->rooms[list->rooms_count++];
                room->name = reply_span(row[0]);
                room->last = answer_number(op, row[1], TASK_NUMBER_MAX, "last number");
                room->first = room->last - answer_number(op, row[2], room->last, "count") + 1;
                room->bytes = answer_number(op, row[3], TASK_NUMBER_MAX, "bytes");
                room->entries_max = answer_number(op, row[4], TASK_NUMBER_MAX, "limit");
                room->bytes_max = answer_number(op, row[5], TASK_NUMBER_MAX, "limit");
                room->age_ms = answer_number(op, row[6], TASK_NUMBER_MAX, "age");
        }
}

void redis_room_list(struct redis_store *s, struct store_request *request)
{
        const struct store_room_list *list = (const struct store_room_list *)request;
        struct redis_op *op = op_begin(s, request);
        struct redis_call *call = call_script_keys(op, SCRIPT_room_list, 1, 2);
        call->answer = list_answer;
        call_put(call, key_of_shard(op, list->shard, "rooms"));
        call_put(call, list->after);
        call_put_number(call, list->page_rooms);
        call_send(call);
}
