/* Keys that wait for a name: listing the names, and waking the keys. */
#include "store/sqlite/sqlite.h"

static struct span next_name(struct sqlite_store *s, uint32_t shard, struct span after, struct arena_chunk **arena)
{
        struct query q = query(&s->db, STATEMENT_KEY_NEXT_NAME);
        bind_number(&q, shard);
        bind_text(&q, after);
        struct span name = { 0 };
        if (query_row(&q))
                name = arena_copy(arena, column_span(&q, 0));
        query_end(&q);
        return name;
}

bool shard_has_names(struct sqlite_store *s, const struct sqlite_shard_row *shard)
{
        struct arena_chunk *arena = NULL;
        bool has = shard->keys && next_name(s, shard->shard, (struct span){ "", 0 }, &arena).size;
        arena_free(arena);
        return has;
}

void sqlite_names(struct sqlite_store *s, struct store_request *request)
{
        struct store_names *names = (struct store_names *)request;
        struct arena_chunk **arena = request_arena(request);
        names->names_count = 0;
        names->has_more = false;
        names->verdict = STORE_FENCED;
        if (!lease_is_ours(shard_read(s, names->lease.shard), &names->lease))
                return;
        names->verdict = STORE_OK;
        names->names = arena_take(arena, STORE_CALL_NAMES * sizeof(*names->names));
        struct span name = names->after.size ? names->after : (struct span){ "", 0 };
        while ((name = next_name(s, names->lease.shard, name, arena)).size) {
                if (names->names_count == STORE_CALL_NAMES) {
                        names->has_more = true;
                        return;
                }
                /* Another program may have written it: skip an invalid name, which fsck reports. */
                if (store_name_is_good(name))
                        names->names[names->names_count++] = name;
        }
}

/* The keys that have waited longest; fetches one more than `max`, which is not returned, to see whether there are
 * more. */
static uint32_t waiting_keys(struct sqlite_store *s, const struct store_wake *wake, uint32_t max, struct key *keys)
{
        uint32_t count = 0;
        struct query q = query(&s->db, STATEMENT_KEY_WAITS);
        bind_number(&q, wake->lease.shard);
        bind_text(&q, wake->name);
        bind_number(&q, max);
        while (query_row(&q))
                keys[count++] = (struct key){
                        .id = column_number(&q, 0), .since_ms = column_number(&q, 1), .tasks = column_number(&q, 2)
                };
        query_end(&q);
        return count;
}

void sqlite_wake(struct sqlite_store *s, struct store_request *request)
{
        struct store_wake *wake = (struct store_wake *)request;
        struct sqlite_shard_row *shard = shard_write(s, wake->lease.shard);
        struct key keys[STORE_CALL_TASKS + 1];
        wake->woken = 0;
        wake->has_more = false;
        wake->verdict = STORE_FENCED;
        enum fence fence = fence_check(shard, &wake->lease, wake->call);
        if (fence == FENCE_FENCED)
                return;
        wake->verdict = STORE_OK;
        uint32_t max = fence == FENCE_REPEAT ? 0 : wake->max;
        uint32_t count = waiting_keys(s, wake, max + 1, keys);
        wake->has_more = count > max;
        for (uint32_t i = 0; i < count && i < max; i++) {
                keys[i].state = KEY_WAITING;
                keys[i].due_ms = s->now_ms;
                key_save(s, shard, &keys[i]);
                wake->woken++;
        }
        shard->call = wake->call;
        shard->last_count = 0;
}
