/* Keys that wait: listing them, and acting on them for a person. */
#include <errno.h>

#include "store/sqlite/sqlite.h"

static void head_fill(struct sqlite_store *s, struct store_key_info *info, uint64_t key, struct arena_chunk **arena)
{
        struct store_task task = { 0 };
        struct query q = query(&s->db, STATEMENT_SIDE_HEAD);
        bind_number(&q, key);
        bind_number(&q, 1);
        if (query_row(&q)) {
                struct span bytes = arena_copy(arena, column_span(&q, 1));
                (void)row_read(s, info->shard, column_number(&q, 0), bytes, arena, &task, NULL);
        }
        query_end(&q);
        uint64_t submitted_ms = task.envelope.submitted_ms;
        info->head = task.envelope.id;
        info->head_age_ms = store_age_ms(s->store.record.created_ms, submitted_ms, s->now_ms);
}

static void info_fill(
        struct sqlite_store *s, struct store_key_info *info, struct query *q, int at, struct arena_chunk **arena)
{
        info->state = column_key_state(q, at);
        uint64_t due_ms = column_number(q, at + 1);
        info->since_ms = column_number(q, at + 2);
        info->tasks = column_number(q, at + 3);
        info->reason = arena_copy(arena, column_span(q, at + 4));
        info->name = arena_copy(arena, column_span(q, at + 5));
        info->due_in_ms =
                info->state != KEY_HELD && info->state != KEY_NAMED && due_ms > s->now_ms ? due_ms - s->now_ms : 0;
}

static void one_key(struct sqlite_store *s, struct store_keys *keys, struct arena_chunk **arena)
{
        struct query q = query(&s->db, STATEMENT_KEY_GET);
        uint64_t id = 0;
        bind_number(&q, keys->shard);
        bind_span(&q, keys->key);
        keys->keys[0].key = keys->key;
        if (query_row(&q)) {
                id = column_number(&q, 0);
                info_fill(s, &keys->keys[0], &q, 1, arena);
        }
        query_end(&q);
        keys->keys[0].shard = keys->shard;
        if (id)
                head_fill(s, &keys->keys[0], id, arena);
        keys->keys_count = 1;
        keys->is_end = true;
}

void sqlite_keys(struct sqlite_store *s, struct store_request *request)
{
        struct store_keys *keys = (struct store_keys *)request;
        struct arena_chunk **arena = request_arena(request);
        uint64_t *ids = arena_take(arena, keys->page_keys * sizeof(*ids));
        keys->keys = arena_take(arena, keys->page_keys * sizeof(*keys->keys));
        keys->keys_count = 0;
        if (keys->key.size) {
                one_key(s, keys, arena);
                return;
        }
        struct query q = query(&s->db, STATEMENT_KEY_PAGE);
        bind_number(&q, shard_id(keys->shard, keys->cursor.major));
        bind_number(&q, shard_id(keys->shard + 1, 0));
        bind_number(&q, keys->page_keys);
        while (query_row(&q)) {
                struct store_key_info *info = &keys->keys[keys->keys_count];
                ids[keys->keys_count++] = column_number(&q, 0);
                info->shard = keys->shard;
                info->key = arena_copy(arena, column_span(&q, 1));
                info_fill(s, info, &q, 2, arena);
        }
        query_end(&q);
        for (uint32_t i = 0; i < keys->keys_count; i++)
                head_fill(s, &keys->keys[i], ids[i], arena);
        if (keys->keys_count)
                keys->cursor.major = shard_number(ids[keys->keys_count - 1]);
        keys->is_end = keys->keys_count < keys->page_keys;
}

void sqlite_key_act(struct sqlite_store *s, struct store_request *request)
{
        struct store_key_act *act = (struct store_key_act *)request;
        struct sqlite_shard_row *shard = shard_write(s, shard_of_key(act->key, s->store.shards));
        struct key key;
        act->is_pending = shard->is_held;
        bool is_there = key_get(s, shard, act->key, &key);
        /* A hold may be on its way to the owner, so the key may not be held yet. */
        bool may_come = shard->is_held && shard->controls;
        if (act->verb != CONTROL_HOLD && !may_come && (!is_there || key.state < KEY_PARKED)) {
                operation_refuse(request, -ENOENT, "key %.*s: neither parked nor held, nor does it wait for a name",
                        (int)act->key.size, act->key.data);
                return;
        }
        if (shard->is_held)
                control_add(s, shard, act->verb, act->key, act->reason, (struct span){ 0 }, 0);
        else
                control_apply(s, shard, act->verb, act->key, act->reason);
}
