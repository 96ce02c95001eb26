/* Loads tasks dumped from another store. */
#include "store/sqlite/sqlite.h"

static void put_dead(
        struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_moved *item, struct span bytes)
{
        struct task_note note;
        struct note_event event;
        struct span text = { 0 };
        struct span rest = { 0 };
        if (!note_parse(item->note.data, item->note.size, &note))
                rest = note.events;
        while (note_event_next(&rest, &event))
                text = event.text;
        dead_add(s, shard,
                &(struct sqlite_dead_row){ .id = item->id,
                        .handler = item->handler,
                        .lane = item->lane,
                        .at_ms = item->at_ms,
                        .reason = item->reason,
                        .text = text,
                        .bytes = bytes,
                        .note = item->note });
}

static uint64_t taken_get(struct sqlite_store *s, const struct store_import *import)
{
        struct query q = query(&s->db, STATEMENT_IMPORT_GET);
        bind_number(&q, import->shard);
        bind_text(&q, import->source);
        uint64_t taken = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        return taken;
}

static void taken_set(struct sqlite_store *s, const struct store_import *import)
{
        struct query q = query(&s->db, STATEMENT_IMPORT_SET);
        bind_number(&q, import->shard);
        bind_text(&q, import->source);
        bind_number(&q, import->number);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
        if (import->taken)
                return;
        q = query(&s->db, STATEMENT_IMPORT_TRIM);
        bind_number(&q, import->shard);
        bind_text(&q, import->source);
        bind_number(&q, STORE_SOURCES_MAX - 1);
        (void)query_run(&q);
}

void sqlite_import(struct sqlite_store *s, struct store_request *request)
{
        struct store_import *import = (struct store_import *)request;
        import->taken = taken_get(s, import);
        import->is_repeat = import->number && import->number <= import->taken;
        if (!import->number || import->is_repeat)
                return;
        if (import->taken < import->after) {
                import_refuse(import);
                return;
        }
        taken_set(s, import);
        for (uint32_t i = 0; i < import->names_count; i++)
                import->names_left += !idempotency_load(s, import->shard, &import->names[i]);
        struct sqlite_shard_row *shard = shard_write(s, import->shard);
        for (uint32_t i = 0; i < import->items_count; i++) {
                const struct store_moved *item = &import->items[i];
                struct span bytes = row_from(s, import->shard, item->bytes, request_arena(request));
                shard->submitted++;
                if (item->state == STATE_DEAD)
                        put_dead(s, shard, item, bytes);
                else if (item->state == STATE_DELAYED)
                        shard_delay(s, shard, item->lane, s->now_ms + item->due_in_ms, bytes, item->note);
                else
                        shard_append(s, shard, item->lane, bytes, item->note);
        }
}
