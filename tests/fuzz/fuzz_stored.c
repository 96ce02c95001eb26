/* Any bytes as a row of a SQLite file, or a task or a note as a store keeps it, under any seq: what is read is in
 * range, a window takes it, and it is the same once it is stored again. */
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/sqlite.h"

#define SHARDS 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_true)
{
        if (!is_true)
                abort();
}

/* No store is opened: only what reads its rows is meant. */
const struct store_driver sqlite_driver = { .scheme = "sqlite" }, redis_driver = { .scheme = "redis" };

static struct sqlite_store store = { .store = { .shards = SHARDS, .payload_max = 4096 } };

static void check_task(const struct store_task *t, uint32_t shard, uint64_t seq)
{
        const struct envelope *e = &t->envelope;
        uint32_t named = SHARDS;
        demand(t->seq == seq && seq <= STORE_SEQ_MAX && e->lane == STORE_SEQ_LANE(seq));
        demand(task_id_check(e->id, &named, NULL) == 0 && named == shard);
        demand(task_handler_check(e->handler, NULL) == 0 && e->payload.size <= store.store.payload_max);
        demand(span_is(t->key, e->key.size ? e->key : e->id));
        demand(!e->key.size || (task_key_check(e->key, NULL) == 0 && shard_of_key(e->key, SHARDS) == shard));
        demand(e->reply_ms <= TASK_NUMBER_MAX && e->timeout_ms <= TASK_NUMBER_MAX && e->unique_ms <= TASK_NUMBER_MAX);
        demand(e->not_before_ms <= TASK_NUMBER_MAX);
}

/* What can be read is packed and read again; what cannot is kept as it came. */
static void check_again(struct span bytes, uint32_t shard, uint64_t seq, const struct store_task *t)
{
        struct arena_chunk *arena = NULL;
        struct store_task back;
        struct span stored = row_from(&store, shard, bytes, &arena);
        if (t) {
                demand(row_read(&store, shard, seq, stored, &arena, &back, NULL) == 0);
                demand(span_is(back.envelope.payload, t->envelope.payload) && span_is(back.key, t->key));
                demand(span_is(back.envelope.id, t->envelope.id));
        } else if (seq <= STORE_SEQ_MAX) {
                demand(span_is(row_bytes(stored), bytes));
        }
        arena_free(arena);
}

static void check_note(struct span bytes)
{
        struct task_note note;
        struct buffer scratch = { 0 };
        struct buffer again = { 0 };
        struct note_event event;
        if (note_parse(bytes.data, bytes.size, &note))
                return;
        demand(note.checkpoint.size <= NOTE_CHECKPOINT_MAX && note.started_epoch <= TASK_NUMBER_MAX);
        for (unsigned cost = COST_NONE; cost <= COST_INTERRUPTION; cost++)
                note_charge(&note, &scratch, 1, (enum task_cost)cost, SPAN_TEXT("why"));
        for (struct span events = note.events; note_event_next(&events, &event);)
                demand(event.kind.size <= bytes.size + 16);
        note_put(&again, &note);
        demand(note_parse(again.data, again.size, &note) == 0);
        buffer_free(&scratch);
        buffer_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint64_t seq = 0;
        if (size < 9)
                return 0;
        memcpy(&seq, data, sizeof(seq));
        uint32_t shard = data[8] % SHARDS;
        /* Mostly a seq that there may be. */
        if (data[8] & 0x80)
                seq &= STORE_SEQ_MAX >> 1;
        struct span bytes = { (const char *)data + 9, size - 9 };
        struct arena_chunk *arena = NULL;
        struct store_task task;
        struct error error = { "" };
        bool is_text = bytes.size && bytes.data[0] == 'q';
        if (row_read(&store, shard, seq, bytes, &arena, &task, &error) == 0) {
                check_task(&task, shard, seq);
                if (is_text)
                        check_again(bytes, shard, seq, &task);
        } else {
                demand(error.text[0]);
                if (is_text)
                        check_again(bytes, shard, seq, NULL);
        }
        check_note(bytes);
        arena_free(arena);
        return 0;
}
