/* Keys whose tasks cannot simply be claimed, and the queues in which those tasks wait. */
#include "store/sqlite/sqlite.h"

static void bind_due(struct query *q, const struct key *key)
{
        if (key->state == KEY_HELD)
                bind_null(q);
        else
                bind_number(q, key->due_ms);
}

bool key_get(struct sqlite_store *s, const struct shard *shard, struct span name, struct key *ret_key)
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
                        .state = (enum store_key_state)column_number(&q, 1),
                        .due_ms = column_number(&q, 2),
                        .since_ms = column_number(&q, 3),
                        .tasks = column_number(&q, 4) };
        query_end(&q);
        return is_there;
}

static void key_add(struct sqlite_store *s, struct shard *shard, struct span name, struct key *key, struct span reason)
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

void key_set_state(struct sqlite_store *s, struct shard *shard, struct span name, struct key *key,
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

void key_save(struct sqlite_store *s, struct shard *shard, struct key *key)
{
        bool is_free = !key->tasks && key->state != KEY_HELD;
        struct query q = query(&s->db, is_free ? STATEMENT_KEY_REMOVE : STATEMENT_KEY_SET);
        bind_number(&q, key->id);
        if (is_free) {
                shard->keys--;
                key->id = 0;
        } else {
                bind_number(&q, key->state);
                bind_due(&q, key);
                bind_number(&q, key->since_ms);
                bind_number(&q, key->tasks);
        }
        (void)query_run(&q);
}

void side_put(
        struct sqlite_store *s, struct shard *shard, struct key *key, uint64_t seq, struct span task, struct span note)
{
        key->tasks++;
        shard->parked++;
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

static void back_in_flight(
        struct sqlite_store *s, struct shard *shard, struct key *key, uint64_t seq, struct span task, struct span note)
{
        struct query q = query(&s->db, STATEMENT_LOG_PUT);
        bind_number(&q, shard_id(shard->shard, seq));
        bind_span(&q, task);
        if (note.size)
                bind_span(&q, note);
        else
                bind_null(&q);
        (void)query_run(&q);
        q = query(&s->db, STATEMENT_SIDE_REMOVE);
        bind_number(&q, key->id);
        bind_number(&q, seq);
        (void)query_run(&q);
        key->tasks--;
        shard->parked--;
        shard->in_flight++;
}

void side_take(struct sqlite_store *s, struct shard *shard, struct key *key, uint32_t max, struct claim *claim)
{
        uint32_t from = claim->count;
        if (max > claim->room - claim->count)
                max = claim->room - claim->count;
        struct query q = query(&s->db, STATEMENT_SIDE_HEAD);
        bind_number(&q, key->id);
        bind_number(&q, max);
        struct span *tasks = arena_take(claim->arena, max * sizeof(*tasks));
        struct span *notes = arena_take(claim->arena, max * sizeof(*notes));
        /* First read, then move: the queue must not change under the statement that reads it. */
        while (query_row(&q)) {
                uint32_t i = claim->count - from;
                tasks[i] = arena_copy(claim->arena, column_span(&q, 1));
                notes[i] = arena_copy(claim->arena, column_span(&q, 2));
                if (!claim_add(s, claim, shard, column_number(&q, 0), tasks[i], notes[i], NULL))
                        break;
        }
        query_end(&q);
        for (uint32_t i = from; i < claim->count; i++)
                back_in_flight(s, shard, key, claim->tasks[i].seq, tasks[i - from], notes[i - from]);
        key->state = KEY_WAITING;
        key->due_ms = s->now_ms + STORE_WAITING_MS;
        key_save(s, shard, key);
}
