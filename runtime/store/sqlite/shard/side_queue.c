/* Keys that are not free, and their side queues, in which their tasks wait. */
#include <errno.h>
#include <inttypes.h>

#include "store/sqlite/sqlite.h"

enum store_key_state column_key_state(struct query *q, int column)
{
        uint64_t state = column_number(q, column);
        return state > KEY_FREE && state < KEY_STATES ? (enum store_key_state)state : KEY_PARKED;
}

uint64_t side_first(struct sqlite_store *s, const struct key *key)
{
        struct query q = query(&s->db, STATEMENT_SIDE_HEAD);
        bind_number(&q, key->id);
        bind_number(&q, 1);
        uint64_t seq = query_row(&q) ? column_number(&q, 0) : UINT64_MAX;
        query_end(&q);
        return seq;
}

/* A key with waiting tasks is not free, whatever its row says. */
static bool has_tasks(struct sqlite_store *s, const struct key *key)
{
        return side_first(s, key) != UINT64_MAX;
}

static void bind_due(struct query *q, const struct key *key)
{
        if (key->state == KEY_HELD || key->state == KEY_NAMED)
                bind_null(q);
        else
                bind_number(q, key->due_ms);
}

bool key_get(struct sqlite_store *s, const struct sqlite_shard_row *shard, struct span name, struct key *ret_key)
{
        *ret_key = (struct key){ 0 };
        if (!shard->keys)
                return false;
        struct query q = query(&s->db, STATEMENT_KEY_GET);
        bind_number(&q, shard->shard);
        bind_span(&q, name);
        bool is_there = query_row(&q);
        if (is_there)
                *ret_key = (struct key){ .id = column_number(&q, 0),
                        .state = column_key_state(&q, 1),
                        .due_ms = column_number(&q, 2),
                        .since_ms = column_number(&q, 3),
                        .tasks = column_number(&q, 4) };
        query_end(&q);
        return is_there;
}

static void key_add(
        struct sqlite_store *s, struct sqlite_shard_row *shard, struct span name, struct key *key, struct span reason)
{
        key->id = shard_id(shard->shard, ++shard->last_key);
        shard->keys++;
        struct query q = query(&s->db, STATEMENT_KEY_ADD);
        bind_number(&q, key->id);
        bind_number(&q, shard->shard);
        bind_span(&q, name);
        bind_number(&q, key->state);
        bind_due(&q, key);
        bind_number(&q, key->since_ms);
        bind_number(&q, key->tasks);
        bind_span(&q, reason);
        (void)query_run(&q);
}

void key_set_state(struct sqlite_store *s, struct sqlite_shard_row *shard, struct span name, struct key *key,
        enum store_key_state state, uint64_t due_ms, struct span reason)
{
        key->state = state;
        key->due_ms = due_ms;
        key->since_ms = s->now_ms;
        if (!key->id) {
                key_add(s, shard, name, key, reason);
                return;
        }
        struct query q = query(&s->db, STATEMENT_KEY_REASON);
        bind_number(&q, key->id);
        bind_span(&q, reason);
        (void)query_run(&q);
}

void key_set_name(struct sqlite_store *s, struct sqlite_shard_row *shard, struct span key_name, struct key *key,
        struct span name, struct span reason)
{
        key_set_state(s, shard, key_name, key, KEY_NAMED, 0, reason);
        struct query q = query(&s->db, STATEMENT_KEY_NAME);
        bind_number(&q, key->id);
        bind_text(&q, name);
        bind_number(&q, key->since_ms);
        (void)query_run(&q);
}

void key_save(struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key)
{
        if (!key->tasks && has_tasks(s, key))
                key->tasks = 1;
        bool is_free = !key->tasks && key->state != KEY_HELD;
        struct query q = query(&s->db, is_free ? STATEMENT_KEY_REMOVE : STATEMENT_KEY_SET);
        bind_number(&q, key->id);
        if (is_free) {
                count_down(&shard->keys);
                key->id = 0;
        } else {
                bind_number(&q, key->state);
                bind_due(&q, key);
                bind_number(&q, key->since_ms);
                bind_number(&q, key->tasks);
        }
        (void)query_run(&q);
}

/* Counter of parked tasks of the seq's lane; NULL for `normal`, which is the rest. */
static uint64_t *lane_counter(struct sqlite_shard_row *shard, uint64_t seq)
{
        enum lane lane = STORE_SEQ_LANE(seq);
        return lane == LANE_HIGH ? &shard->parked_high : lane == LANE_LOW ? &shard->parked_low : NULL;
}

void side_put(struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key, uint64_t seq, struct span task,
        struct span note)
{
        key->tasks++;
        shard->parked++;
        if (lane_counter(shard, seq))
                (*lane_counter(shard, seq))++;
        struct query q = query(&s->db, STATEMENT_SIDE_PUT);
        bind_number(&q, key->id);
        bind_number(&q, seq);
        bind_span(&q, task);
        if (note.size)
                bind_span(&q, note);
        else
                bind_null(&q);
        (void)query_run(&q);
}

void side_remove(struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key, uint64_t seq)
{
        struct query q = query(&s->db, STATEMENT_SIDE_REMOVE);
        bind_number(&q, key->id);
        bind_number(&q, seq);
        (void)query_run(&q);
        count_down(&key->tasks);
        count_down(&shard->parked);
        if (lane_counter(shard, seq))
                count_down(lane_counter(shard, seq));
}

/* False if the log has another task under that number. */
static bool log_put(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct stray *row)
{
        struct query q = query(&s->db, STATEMENT_LOG_PUT_FREE);
        bind_number(&q, log_id(shard->shard, row->seq));
        bind_span(&q, row->task);
        if (row->note.size)
                bind_span(&q, row->note);
        else
                bind_null(&q);
        if (!query_run(&q))
                return false;
        shard->in_flight++;
        return true;
}

/* Puts a task into the log and the claim; -errno with the reason in `row` if it is malformed. */
static int back_in_flight(
        struct sqlite_store *s, struct sqlite_shard_row *shard, struct claim *claim, struct stray *row)
{
        if (!seq_is_taken(shard, row->seq))
                return error_set(&row->error, -EBADMSG,
                        "a side queue had it under %" PRIu64 ", a number that was never given to a task", row->seq);
        int r = claim_add(s, claim, shard, row->seq, row->task, row->note, &row->error);
        if (r || s->db.failure || log_put(s, shard, row))
                return r;
        claim->count--;
        return error_set(
                &row->error, -EBADMSG, "a side queue had it under %" PRIu64 ", another task's number", row->seq);
}

void side_take(
        struct sqlite_store *s, struct sqlite_shard_row *shard, struct key *key, uint32_t max, struct claim *claim)
{
        uint32_t from = claim->count;
        uint32_t count = 0;
        if (max > claim->room - claim->count)
                max = claim->room - claim->count;
        struct query q = query(&s->db, STATEMENT_SIDE_HEAD);
        bind_number(&q, key->id);
        bind_number(&q, max);
        struct stray *rows = arena_take(claim->arena, max * sizeof(*rows));
        /* Read all rows first: the queue must not change under the statement that reads it. */
        while (query_row(&q))
                rows[count++] = (struct stray){ .seq = column_number(&q, 0),
                        .task = arena_copy(claim->arena, column_span(&q, 1)),
                        .note = arena_copy(claim->arena, column_span(&q, 2)) };
        query_end(&q);
        for (uint32_t i = 0; i < count; i++) {
                side_remove(s, shard, key, rows[i].seq);
                rows[i].why = back_in_flight(s, shard, claim, &rows[i]);
                if (!rows[i].why)
                        continue;
                stray_bury(s, shard, &rows[i]);
                claim->set_aside++;
        }
        /* If nothing could be claimed, the key is due again at once: no outcome would refill it. */
        bool is_next = claim->count == from && (count || !max);
        key->state = KEY_WAITING;
        key->due_ms = s->now_ms + (is_next ? 0 : STORE_WAITING_MS);
        key_save(s, shard, key);
}
