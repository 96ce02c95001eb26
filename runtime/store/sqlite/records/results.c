/* Results, which wait for a consumer. */
#include <string.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

_Static_assert(STORE_RESULT_NUMBER_MAX < UINT64_C(1) << SHARD_SHIFT, "a number reaches into the next shard's rows");

/* Most old results that a call removes. */
#define TRIM_MAX 64

static void remove_row(struct sqlite_store *s, uint64_t id)
{
        struct query q = query(&s->db, STATEMENT_RESULT_REMOVE);
        bind_number(&q, id);
        (void)query_run(&q);
}

/* Removes the oldest results beyond the limits of number and age, even if a consumer holds them: a stuck consumer must
 * not lift a limit. */
static void trim(struct sqlite_store *s, struct sqlite_shard_row *shard, uint32_t max)
{
        while (shard->results && max-- && !s->db.failure) {
                struct query q = query(&s->db, STATEMENT_RESULT_OLDEST);
                bind_number(&q, shard_id(shard->shard, 0));
                bind_number(&q, shard_id(shard->shard + 1, 0));
                bool is_there = query_row(&q);
                uint64_t id = is_there ? column_number(&q, 0) : 0;
                uint64_t at_ms = is_there ? column_number(&q, 1) : 0;
                query_end(&q);
                bool is_old = at_ms + s->store.results_age_ms <= s->now_ms;
                if (!is_there || (shard->results <= s->store.results_max && !is_old))
                        return;
                remove_row(s, id);
                shard->results--;
                shard->results_dropped++;
        }
}

void result_put(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_ref *task, struct span data,
        struct span note)
{
        shard->results++;
        struct query q = query(&s->db, STATEMENT_RESULT_PUT);
        bind_number(&q, shard_id(shard->shard, ++shard->last_result));
        bind_number(&q, s->now_ms);
        bind_text(&q, task->id);
        bind_span(&q, task->key);
        bind_text(&q, task->handler);
        bind_span(&q, data);
        if (note.size)
                bind_span(&q, note);
        else
                bind_null(&q);
        (void)query_run(&q);
        trim(s, shard, 2);
}

static uint64_t leased(struct sqlite_store *s, uint32_t shard)
{
        struct query q = query(&s->db, STATEMENT_RESULT_LEASED);
        bind_number(&q, shard_id(shard, 0));
        bind_number(&q, shard_id(shard + 1, 0));
        bind_number(&q, s->now_ms);
        bind_number(&q, STORE_RESULTS_LEASED_MAX);
        uint64_t count = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        return count;
}

void sqlite_consume(struct sqlite_store *s, struct store_request *request)
{
        struct store_consume *consume = (struct store_consume *)request;
        struct arena_chunk **arena = request_arena(request);
        struct sqlite_shard_row *shard = shard_write(s, consume->shard);
        consume->results = arena_take(arena, consume->results_max * sizeof(*consume->results));
        consume->results_count = 0;
        trim(s, shard, TRIM_MAX);
        uint64_t held = shard->results ? leased(s, consume->shard) : STORE_RESULTS_LEASED_MAX;
        uint64_t max = STORE_RESULTS_LEASED_MAX - held;
        struct query q = query(&s->db, STATEMENT_RESULT_FREE);
        bind_number(&q, shard_id(consume->shard, 0));
        bind_number(&q, shard_id(consume->shard + 1, 0));
        bind_number(&q, s->now_ms);
        bind_number(&q, min_u64(max, consume->results_max));
        while (query_row(&q)) {
                struct store_result *result = &consume->results[consume->results_count++];
                *result = (struct store_result){
                        .number = shard_number(column_number(&q, 0)),
                        .at_ms = column_number(&q, 1),
                        .id = arena_copy(arena, column_span(&q, 2)),
                        .key = arena_copy(arena, column_span(&q, 3)),
                        .handler = arena_copy(arena, column_span(&q, 4)),
                        .data = arena_copy(arena, column_span(&q, 5)),
                };
                struct span note = arena_copy(arena, column_span(&q, 6));
                if (note_parse(note.data, note.size, &result->note))
                        result->note = (struct task_note){ 0 };
        }
        query_end(&q);
        for (uint32_t i = 0; i < consume->results_count; i++) {
                q = query(&s->db, STATEMENT_RESULT_LEASE);
                bind_number(&q, shard_id(consume->shard, consume->results[i].number));
                bind_span(&q, (struct span){ (const char *)consume->consumer, STORE_NONCE_SIZE });
                bind_number(&q, s->now_ms + consume->lease_ms);
                (void)query_run(&q);
        }
}

void sqlite_commit(struct sqlite_store *s, struct store_request *request)
{
        struct store_commit *commit = (struct store_commit *)request;
        struct sqlite_shard_row *shard = shard_write(s, commit->shard);
        commit->refused = 0;
        for (uint32_t i = 0; i < commit->numbers_count; i++) {
                struct query q = query(&s->db, STATEMENT_RESULT_COMMIT);
                bind_number(&q, shard_id(commit->shard, commit->numbers[i]));
                bind_span(&q, (struct span){ (const char *)commit->consumer, STORE_NONCE_SIZE });
                commit->held[i] = query_run(&q) == 1;
                if (commit->held[i])
                        shard->results--;
                else
                        commit->refused++;
        }
}
