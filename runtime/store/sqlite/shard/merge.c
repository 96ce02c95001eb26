/* MERGE: tasks end as merged into an earlier task of their key. */
#include "base/numbers.h"
#include "store/sqlite/sqlite.h"
#include "task/packed.h"

/* Remembers which task it was merged into, for the latest ones.  A request for its outcome is redirected there. */
static void merged_put(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_ref *task,
        const struct store_ref *into)
{
        shard->merged++;
        struct query q = query(&s->db, STATEMENT_MERGED_PUT);
        bind_number(&q, shard_id(shard->shard, shard->merged));
        bind_text(&q, task->id);
        bind_text(&q, into->id);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
        if (shard->merged > STORE_MERGED_KEPT) {
                q = query(&s->db, STATEMENT_MERGED_SWEEP);
                bind_number(&q, shard_id(shard->shard, 0));
                bind_number(&q, shard_id(shard->shard, shard->merged - STORE_MERGED_KEPT));
                (void)query_run(&q);
        }
        if (!task->reply_ms)
                return;
        /* The target may take longer to end than this task's reply was to be kept. */
        struct store_ref kept = *task;
        kept.reply_ms += STORE_MERGED_MS;
        reply_put(s, &kept, REPLY_MERGED, true, into->id, (struct span){ 0 }, (struct span){ 0 });
}

bool merged_find(struct sqlite_store *s, uint32_t shard, struct span id, struct arena_chunk **arena,
        struct span *ret_into, uint64_t *ret_at_ms)
{
        struct query q = query(&s->db, STATEMENT_MERGED_GET);
        bind_text(&q, id);
        bind_number(&q, shard_id(shard, 0));
        bind_number(&q, shard_id(shard + 1, 0));
        bool is_there = query_row(&q);
        if (is_there) {
                *ret_into = arena_copy(arena, column_span(&q, 0));
                *ret_at_ms = min_u64(column_number(&q, 1), TASK_NUMBER_MAX);
        }
        query_end(&q);
        return is_there && !task_id_check(*ret_into, NULL, NULL);
}

/* Writes bytes and note of the task that stays. */
static void flight_set(struct sqlite_store *s, const struct sqlite_shard_row *shard, uint64_t seq,
        const struct envelope *envelope, const struct task_note *note)
{
        struct buffer task = { 0 };
        struct buffer bytes = { 0 };
        packed_put_head(&task, envelope, shard->shard);
        buffer_put(&task, envelope->payload.data, envelope->payload.size);
        note_put(&bytes, note);
        struct query q = query(&s->db, STATEMENT_LOG_SET);
        bind_number(&q, log_id(shard->shard, seq));
        bind_span(&q, (struct span){ (const char *)task.data, task.size });
        bind_span(&q, (struct span){ (const char *)bytes.data, bytes.size });
        (void)query_run(&q);
        buffer_free(&task);
        buffer_free(&bytes);
}

static bool flight_read(struct sqlite_store *s, const struct sqlite_shard_row *shard, uint64_t seq,
        struct arena_chunk **arena, struct store_task *ret_task)
{
        struct flight flight;
        if (!flight_get(s, shard, seq, arena, &flight) ||
                row_read(s, shard->shard, seq, flight.task, arena, ret_task, NULL))
                return false;
        store_task_note(ret_task, flight.note, s->now_ms);
        return true;
}

bool settle_merge(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        struct arena_chunk **arena)
{
        struct store_task into = { 0 };
        struct store_task task = { 0 };
        if (!flight_read(s, shard, outcome->task.seq, arena, &into))
                return false;
        struct envelope merged = into.envelope;
        for (uint32_t i = 0; i < outcome->merged_count; i++) {
                if (!flight_read(s, shard, outcome->merged[i].seq, arena, &task))
                        return false;
                merged = envelope_merge(&merged, &task.envelope);
        }
        for (uint32_t i = 0; i < outcome->merged_count; i++) {
                (void)flight_remove(s, shard, outcome->merged[i].seq);
                merged_put(s, shard, &outcome->merged[i], &outcome->task);
        }
        note_merge(&into.note, s->now_ms, outcome->merged_count);
        flight_set(s, shard, outcome->task.seq, &merged, &into.note);
        return true;
}
