/* Idempotency: a shard's records of submits that may be repeated. */
#include <errno.h>

#include "store/sqlite/sqlite.h"

#define COUNT_MAX (UINT64_C(1) << 40) /* more rows than any file has */

/* 1: no such record.  Otherwise the result of submission_repeat(). */
static int record_look(struct sqlite_store *s, const struct store_prepared *p, struct store_submission *item)
{
        struct query q = query(&s->db, STATEMENT_IDEMPOTENCY_GET);
        bind_number(&q, p->shard);
        bind_span(&q, p->idempotency);
        int r = 1;
        if (query_row(&q) && column_number(&q, 0) > s->now_ms)
                r = submission_repeat(item, p, column_span(&q, 1), column_span(&q, 2));
        query_end(&q);
        return r;
}

static uint64_t remove_rows(struct sqlite_store *s, enum statement statement, uint32_t shard, struct span scope)
{
        struct query q = query(&s->db, statement);
        bind_number(&q, shard);
        if (scope.size)
                bind_span(&q, scope);
        else
                bind_number(&q, s->now_ms);
        return query_run(&q);
}

static uint64_t count_get(struct sqlite_store *s, uint32_t shard)
{
        struct query q = query(&s->db, STATEMENT_IDEMPOTENCY_COUNT);
        bind_number(&q, shard);
        uint64_t count = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        return count;
}

static void count_set(struct sqlite_store *s, uint32_t shard, uint64_t count)
{
        struct query q = query(&s->db, STATEMENT_IDEMPOTENCY_COUNT_SET);
        bind_number(&q, shard);
        bind_number(&q, count);
        (void)query_run(&q);
}

int idempotency_look(struct sqlite_store *s, const struct store_prepared *p, struct store_submission *item)
{
        int r = record_look(s, p, item);
        uint64_t count = r == 1 ? count_get(s, p->shard) : 0;
        if (r != 1)
                return r;
        if (count > COUNT_MAX)
                return -EBADMSG;
        /* Each new record removes some expired ones, so the table does not grow with time. */
        uint64_t gone = remove_rows(s, STATEMENT_IDEMPOTENCY_REMOVE, p->shard, p->idempotency);
        gone += remove_rows(s, STATEMENT_IDEMPOTENCY_SWEEP, p->shard, (struct span){ 0 });
        if (gone)
                count_set(s, p->shard, count > gone ? count - gone : 0);
        return gone || count < s->store.idempotency_max ? 1 : -ENOBUFS;
}

static void record_put(struct sqlite_store *s, uint32_t shard, const struct store_remembered *record)
{
        struct query q = query(&s->db, STATEMENT_IDEMPOTENCY_PUT);
        bind_number(&q, shard);
        bind_span(&q, record->scope);
        bind_number(&q, s->now_ms + record->left_ms);
        bind_text(&q, record->id);
        bind_span(&q, record->digest);
        (void)query_run(&q);
        count_set(s, shard, count_get(s, shard) + 1);
}

void idempotency_put(struct sqlite_store *s, const struct store_prepared *p)
{
        record_put(s, p->shard,
                &(struct store_remembered){ .scope = p->idempotency,
                        .id = p->id,
                        .digest = { (const char *)p->digest, SHA256_SIZE },
                        .left_ms = p->idempotency_ms });
}

/* --- loading records of another store --- */

bool idempotency_load(struct sqlite_store *s, uint32_t shard, const struct store_remembered *record)
{
        bool is_there = false;
        bool is_same = false;
        uint64_t count = count_get(s, shard);
        struct query q = query(&s->db, STATEMENT_IDEMPOTENCY_GET);
        bind_number(&q, shard);
        bind_span(&q, record->scope);
        if (query_row(&q)) {
                is_there = column_number(&q, 0) > s->now_ms;
                is_same = span_is(column_span(&q, 1), record->id) && span_is(column_span(&q, 2), record->digest);
        }
        query_end(&q);
        if (is_there)
                return is_same;
        uint64_t gone = remove_rows(s, STATEMENT_IDEMPOTENCY_REMOVE, shard, record->scope);
        if (gone)
                count_set(s, shard, count > gone ? count - gone : 0);
        record_put(s, shard, record);
        return true;
}

void sqlite_remembered_list(struct sqlite_store *s, struct store_request *request)
{
        struct store_remembered_list *list = (struct store_remembered_list *)request;
        struct arena_chunk **arena = request_arena(request);
        uint32_t seen = 0;
        list->names = arena_take(arena, list->page_names * sizeof(*list->names));
        struct query q = query(&s->db, STATEMENT_IDEMPOTENCY_PAGE);
        bind_number(&q, list->shard);
        bind_span(&q, list->after);
        bind_number(&q, s->now_ms);
        bind_number(&q, (uint64_t)list->page_names + 1);
        while (query_row(&q) && seen++ < list->page_names) {
                struct store_remembered *record = &list->names[list->names_count];
                *record = (struct store_remembered){ .scope = arena_copy(arena, column_span(&q, 0)),
                        .id = arena_copy(arena, column_span(&q, 2)),
                        .digest = arena_copy(arena, column_span(&q, 3)),
                        .left_ms = column_number(&q, 1) - s->now_ms };
                list->next = record->scope;
                bool is_fit = idempotency_is_fit(record);
                list->names_count += is_fit;
                list->unreadable += !is_fit;
        }
        list->is_end = seen <= list->page_names;
        query_end(&q);
}
