/* Dead tasks: kept with their history until someone requeues or drops them. */
#include <string.h>

#include "store/sqlite/sqlite.h"

static struct span note_of_death(
        struct sqlite_store *s, enum task_cost cost, struct span text, struct span before, struct buffer *bytes)
{
        struct task_note note;
        struct buffer scratch = { 0 };
        if (note_parse(before.data, before.size, &note))
                note = (struct task_note){ 0 };
        note_clear_start(&note);
        if (cost == COST_NONE)
                note_add_event(&note, &scratch, s->now_ms, "dead", text);
        else
                note_charge(&note, &scratch, s->now_ms, cost, text);
        note_put(bytes, &note);
        buffer_free(&scratch);
        return (struct span){ (const char *)bytes->data, bytes->size };
}

void dead_add(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct sqlite_dead_row *row)
{
        struct span error = store_dead_line(row->text);
        shard->dead++;
        struct query q = query(&s->db, STATEMENT_DEAD_PUT);
        bind_number(&q, shard_id(shard->shard, ++shard->last_dead));
        bind_text(&q, row->id);
        bind_text(&q, row->handler);
        bind_number(&q, row->lane);
        bind_number(&q, row->at_ms);
        bind_text(&q, row->reason);
        bind_span(&q, row->bytes);
        bind_span(&q, row->note);
        bind_text(&q, error);
        (void)query_run(&q);
        dead_group_count(s, shard->shard, row->handler, row->reason, error, 1);
}

void dead_put(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_ref *task, struct span reason,
        struct span text, enum task_cost cost, struct span bytes, struct span note)
{
        struct buffer scratch = { 0 };
        struct span after = note_of_death(s, cost, text, note, &scratch);
        dead_add(s, shard,
                &(struct sqlite_dead_row){ .id = task->id,
                        .handler = task->handler,
                        .lane = STORE_SEQ_LANE(task->seq),
                        .at_ms = s->now_ms,
                        .reason = reason,
                        .text = text,
                        .bytes = bytes,
                        .note = after });
        if (task->reply_ms)
                reply_put(s, task, REPLY_DEAD, false, (struct span){ 0 }, reason, after);
        buffer_free(&scratch);
}

void dead_put_bytes(struct sqlite_store *s, struct sqlite_shard_row *shard, uint64_t seq, struct span reason,
        struct span text, struct span bytes, struct span note)
{
        struct arena_chunk *arena = NULL;
        /* A number out of range identifies nothing: use the number of its death instead. */
        if (seq > STORE_SEQ_MAX)
                seq = lane_seq(LANE_NORMAL, shard->last_dead + 1);
        struct store_task task = { .seq = seq };
        /* Keep what can be read; an id that names another shard would only mislead. */
        if (row_read(s, shard->shard, seq, bytes, &arena, &task, NULL))
                (void)row_read(s, shard->shard, seq, SPAN_TEXT("qv1\nkey:\nhandler:unknown\n\n"), &arena, &task, NULL);
        struct store_ref ref = { .seq = seq,
                .id = task.envelope.id,
                .key = task.key,
                .handler = task.envelope.handler,
                .reply_ms = task.envelope.reply_ms };
        dead_put(s, shard, &ref, reason, text, COST_NONE, bytes, note);
        arena_free(arena);
}

/* --- requeue and drop --- */

/* Requeues a dead task with fresh budgets; history and checkpoint stay. */
static void requeue(
        struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane, struct span bytes, struct span before)
{
        struct task_note note;
        struct buffer scratch = { 0 };
        struct buffer after = { 0 };
        if (note_parse(before.data, before.size, &note))
                note = (struct task_note){ 0 };
        note.attempts = note.crashes = note.interruptions = note.laters = 0;
        note.is_suspect = false;
        note_add_event(&note, &scratch, s->now_ms, "requeued", (struct span){ 0 });
        note_put(&after, &note);
        shard_append(s, shard, lane, bytes, (struct span){ (const char *)after.data, after.size });
        buffer_free(&scratch);
        buffer_free(&after);
}

static void act(struct sqlite_store *s, struct sqlite_shard_row *shard, struct store_dead *dead, uint64_t id)
{
        struct arena_chunk **arena = request_arena(&dead->request);
        struct query q = query(&s->db, STATEMENT_DEAD_GET);
        bind_number(&q, id);
        bool is_there = query_row(&q);
        bool is_long = is_there && span_is(column_span(&q, 3), SPAN_TEXT("too long"));
        enum lane lane = is_there ? column_lane(&q, 0) : LANE_NORMAL;
        struct span bytes = { 0 };
        struct span note = { 0 };
        struct span reason = { 0 };
        struct span handler = { 0 };
        struct span error = { 0 };
        if (is_there) {
                reason = arena_copy(arena, column_span(&q, 3));
                handler = arena_copy(arena, column_span(&q, 4));
                error = arena_copy(arena, column_span(&q, 5));
        }
        if (is_there && dead->verb == DEAD_REQUEUE) {
                bytes = arena_copy(arena, column_span(&q, 1));
                note = arena_copy(arena, column_span(&q, 2));
        }
        query_end(&q);
        if (!is_there)
                return;
        if (is_long && dead->verb == DEAD_REQUEUE) {
                dead->refused++;
                return;
        }
        if (dead->verb == DEAD_REQUEUE)
                requeue(s, shard, lane, bytes, note);
        else
                shard->dropped++;
        q = query(&s->db, STATEMENT_DEAD_REMOVE);
        bind_number(&q, id);
        (void)query_run(&q);
        count_down(&shard->dead);
        dead_group_count(s, shard->shard, handler, reason, error, -1);
        dead->acted++;
}

static uint64_t id_find(struct sqlite_store *s, uint32_t shard, struct span id)
{
        struct query q = query(&s->db, STATEMENT_DEAD_BY_ID);
        bind_text(&q, id);
        bind_number(&q, shard_id(shard, 0));
        bind_number(&q, shard_id(shard + 1, 0));
        uint64_t found = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        return found;
}

void sqlite_dead(struct sqlite_store *s, struct store_request *request)
{
        struct store_dead *dead = (struct store_dead *)request;
        struct sqlite_shard_row *shard = shard_read(s, dead->shard);
        dead->acted = dead->looked = dead->unreadable = dead->refused = 0;
        dead->last = shard->last_dead;
        if (dead->ids_count || dead->numbers_count)
                shard = shard_write(s, dead->shard);
        for (uint32_t i = 0; i < dead->ids_count; i++) {
                uint64_t id = id_find(s, dead->shard, dead->ids[i]);
                if (id)
                        act(s, shard, dead, id);
        }
        for (uint32_t i = 0; i < dead->numbers_count; i++, dead->looked++)
                if (dead->numbers[i] && dead->numbers[i] <= dead->last)
                        act(s, shard, dead, shard_id(dead->shard, dead->numbers[i]));
}
