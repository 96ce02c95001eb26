/* Packs outcomes as msgpack for lua/lib/outcomes.lua. */
#include "base/numbers.h"
#include "store/redis/msgpack.h"
#include "store/redis/redis_store.h"

static uint64_t bounded(uint64_t ms)
{
        return min_u64(ms, TASK_NUMBER_MAX / 4);
}

static void pack_follow_up(struct buffer *b, const struct store_prepared *f, uint32_t shard)
{
        msgpack_array(b, 5);
        msgpack_number(b, f->shard == shard ? 0 : f->shard + 1);
        msgpack_number(b, f->lane);
        msgpack_number(b, f->not_before_ms);
        msgpack_number(b, bounded(f->delay_ms));
        msgpack_bytes(b, f->bytes);
}

static void pack_outcome(struct buffer *b, const struct store_outcome *o)
{
        const struct store_ref *task = &o->task;
        struct span error = o->error;
        if (error.size > NOTE_TEXT_MAX)
                error.size = NOTE_TEXT_MAX;
        msgpack_array(b, o->merged_count || o->is_debounce ? 21 : 19);
        msgpack_number(b, o->kind);
        msgpack_number(b, task->seq);
        msgpack_bytes(b, task->id);
        msgpack_bytes(b, task->key);
        msgpack_bytes(b, task->handler);
        msgpack_number(b, task->reply_ms);
        msgpack_number(b, o->cost);
        msgpack_number(b, o->kind == STORE_MOVE ? o->lane : bounded(o->delay_ms));
        msgpack_number(b, o->refill);
        msgpack_number(b, o->is_suspect);
        msgpack_number(b, o->has_result);
        msgpack_bytes(b, o->reason);
        msgpack_bytes(b, error);
        msgpack_bytes(b, o->result);
        msgpack_bytes(b, o->checkpoint);
        msgpack_bytes(b, o->name);
        msgpack_bytes(b, o->holder);
        msgpack_number(b, min_u64(o->until_ms, STORE_START_MAX_MS));
        msgpack_array(b, o->follow_ups_count);
}

/* Optional last fields, which few outcomes have. */
static void pack_merged(struct buffer *b, const struct store_outcome *o)
{
        if (!o->merged_count && !o->is_debounce)
                return;
        msgpack_array(b, o->merged_count);
        for (uint32_t i = 0; i < o->merged_count; i++) {
                msgpack_array(b, 3);
                msgpack_number(b, o->merged[i].seq);
                msgpack_bytes(b, o->merged[i].id);
                msgpack_number(b, bounded(o->merged[i].reply_ms));
        }
        msgpack_number(b, o->is_debounce);
}

struct span outcomes_pack(const struct store *store, const struct store_advance *advance, struct arena_chunk **arena)
{
        struct buffer b = { 0 };
        const struct store_prepared *follow_up = advance->prepared;
        msgpack_array(&b, 3);
        msgpack_number(&b, store->results_max);
        msgpack_number(&b, store->results_age_ms);
        msgpack_array(&b, advance->outcomes_count);
        for (uint32_t i = 0; i < advance->outcomes_count; i++) {
                pack_outcome(&b, &advance->outcomes[i]);
                for (uint32_t j = 0; j < advance->outcomes[i].follow_ups_count; j++)
                        pack_follow_up(&b, follow_up++, advance->lease.shard);
                pack_merged(&b, &advance->outcomes[i]);
        }
        struct span packed = arena_copy(arena, (struct span){ (const char *)b.data, b.size });
        buffer_free(&b);
        return packed;
}
