/* Controls: persons' requests and workers' reports on their way to a shard's owner. */
#include "store/sqlite/sqlite.h"

#include "base/numbers.h"

void control_add(struct sqlite_store *s, struct sqlite_shard_row *shard, enum store_control_verb verb, struct span key,
        struct span reason, struct span id, uint64_t seq)
{
        shard->controls++;
        struct query q = query(&s->db, STATEMENT_CONTROL_ADD);
        bind_number(&q, shard_id(shard->shard, ++shard->last_control));
        bind_number(&q, verb);
        bind_span(&q, key);
        bind_span(&q, reason);
        bind_text(&q, id);
        bind_number(&q, seq);
        (void)query_run(&q);
        ring_holder(s, shard);
}

/* Makes the head of a side queue dead. */
static void skip(struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key)
{
        struct arena_chunk *arena = NULL;
        struct query q = query(&s->db, STATEMENT_SIDE_HEAD);
        bind_number(&q, key->id);
        bind_number(&q, 1);
        bool is_there = query_row(&q);
        uint64_t seq = is_there ? column_number(&q, 0) : 0;
        struct span task = { 0 };
        struct span note = { 0 };
        if (is_there) {
                task = arena_copy(&arena, column_span(&q, 1));
                note = arena_copy(&arena, column_span(&q, 2));
        }
        query_end(&q);
        if (is_there) {
                side_remove(s, shard, key, seq);
                dead_put_bytes(s, shard, seq, SPAN_TEXT("skipped"), (struct span){ 0 }, task, note);
        }
        arena_free(arena);
}

void control_apply(struct sqlite_store *s, struct sqlite_shard_row *shard, enum store_control_verb verb,
        struct span name, struct span reason)
{
        struct key key;
        bool is_there = key_get(s, shard, name, &key);
        if (verb == CONTROL_HOLD) {
                key_set_state(s, shard, name, &key, KEY_HELD, 0, reason);
                key_save(s, shard, &key);
                return;
        }
        if (!is_there || key.state < KEY_PARKED || (verb == CONTROL_UNHOLD && key.state != KEY_HELD))
                return;
        if (verb == CONTROL_SKIP)
                skip(s, shard, &key);
        /* The next task is due now, also after a skip: only the old head had to wait. */
        key_set_state(s, shard, name, &key, KEY_PARKED, s->now_ms, reason);
        key_save(s, shard, &key);
}

void control_return(struct sqlite_store *s, struct sqlite_shard_row *shard)
{
        if (!shard->returned)
                return;
        struct query q = query(&s->db, STATEMENT_CONTROL_RETURN);
        bind_number(&q, shard_id(shard->shard, 0));
        bind_number(&q, shard_id(shard->shard + 1, 0));
        (void)query_run(&q);
        shard->controls += shard->returned;
        shard->returned = 0;
}

/* A row of the control list.  `call`: 0: applied but never returned; STORE_NEVER: not even applied. */
struct row {
        uint64_t id;
        struct store_control control;
        struct span reason;
        uint64_t call;
};

static bool is_report(enum store_control_verb verb)
{
        return verb == CONTROL_HEARTBEAT || verb == CONTROL_OUTCOME;
}

/* A report uses the columns of a request: its start is stored as the key, its data as the reason. */
static void row_to_report(struct row *row)
{
        row->control.start = row->control.key;
        row->control.data = row->reason;
        row->control.key = row->reason = (struct span){ 0 };
}

/* Reads controls; those that no call has returned yet only up to STORE_CALL_BYTES. */
static uint32_t rows_read(
        struct sqlite_store *s, uint32_t shard, struct arena_chunk **arena, struct row *rows, uint32_t max)
{
        uint32_t count = 0;
        uint64_t bytes = 0;
        struct query q = query(&s->db, STATEMENT_CONTROL_PAGE);
        bind_number(&q, shard_id(shard, 0));
        bind_number(&q, shard_id(shard + 1, 0));
        bind_number(&q, max);
        while (bytes < STORE_CALL_BYTES && query_row(&q)) {
                struct row *row = &rows[count];
                bool was_returned = !column_is_null(&q, 6) && column_number(&q, 6);
                bytes += was_returned ? 0 : column_span(&q, 3).size;
                if (bytes > STORE_CALL_BYTES && bytes > column_span(&q, 3).size)
                        break;
                count++;
                *row = (struct row){ .id = column_number(&q, 0) };
                uint64_t verb = column_number(&q, 1);
                row->control.verb = (enum store_control_verb)min_u64(verb, CONTROLS);
                row->control.key = arena_copy(arena, column_span(&q, 2));
                row->reason = arena_copy(arena, column_span(&q, 3));
                row->control.id = arena_copy(arena, column_span(&q, 4));
                row->control.seq = column_number(&q, 5);
                row->call = column_is_null(&q, 6) ? STORE_NEVER : column_number(&q, 6);
                if (row->control.verb == CONTROL_MOVE)
                        row->control.data = row->reason;
                if (is_report(row->control.verb))
                        row_to_report(row);
        }
        query_end(&q);
        return count;
}

static void row_take(
        struct sqlite_store *s, struct sqlite_shard_row *shard, const struct row *row, struct store_advance *advance)
{
        bool was_returned = row->call && row->call != STORE_NEVER;
        struct query q;
        if (was_returned) {
                q = query(&s->db, STATEMENT_CONTROL_REMOVE);
                bind_number(&q, row->id);
                (void)query_run(&q);
                count_down(&shard->returned);
                return;
        }
        if (advance->controls_count == STORE_CALL_CONTROLS)
                return;
        if (row->control.verb >= CONTROLS || row->control.seq > STORE_SEQ_MAX) {
                /* An invalid row: remove it. */
                q = query(&s->db, STATEMENT_CONTROL_REMOVE);
                bind_number(&q, row->id);
                (void)query_run(&q);
                count_down(&shard->controls);
                return;
        }
        if (row->call == STORE_NEVER && row->control.verb >= CONTROL_HOLD && row->control.verb <= CONTROL_SKIP)
                control_apply(s, shard, row->control.verb, row->control.key, row->reason);
        q = query(&s->db, STATEMENT_CONTROL_CALL);
        bind_number(&q, row->id);
        bind_number(&q, advance->call);
        (void)query_run(&q);
        count_down(&shard->controls);
        shard->returned++;
        advance->controls[advance->controls_count++] = row->control;
}

/* Number of controls that the last call returned, bounded. */
static uint32_t returned_max(const struct sqlite_shard_row *shard)
{
        return (uint32_t)min_u64(shard->returned, STORE_CALL_CONTROLS);
}

void control_take(struct sqlite_store *s, struct sqlite_shard_row *shard, struct store_advance *advance)
{
        struct arena_chunk **arena = request_arena(&advance->request);
        struct row rows[2 * STORE_CALL_CONTROLS];
        if (!shard->controls && !shard->returned)
                return;
        advance->controls = arena_take(arena, STORE_CALL_CONTROLS * sizeof(*advance->controls));
        uint32_t count = rows_read(s, shard->shard, arena, rows, returned_max(shard) + STORE_CALL_CONTROLS);
        for (uint32_t i = 0; i < count; i++)
                row_take(s, shard, &rows[i], advance);
}

void control_repeat(struct sqlite_store *s, const struct sqlite_shard_row *shard, struct store_advance *advance)
{
        struct arena_chunk **arena = request_arena(&advance->request);
        struct row rows[STORE_CALL_CONTROLS];
        if (!shard->returned)
                return;
        advance->controls = arena_take(arena, STORE_CALL_CONTROLS * sizeof(*advance->controls));
        uint32_t count = rows_read(s, shard->shard, arena, rows, returned_max(shard));
        for (uint32_t i = 0; i < count; i++)
                if (rows[i].call == advance->call)
                        advance->controls[advance->controls_count++] = rows[i].control;
}
