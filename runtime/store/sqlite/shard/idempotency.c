/* Submits that may be repeated: what a shard remembers of them. */
#include <errno.h>

#include "store/sqlite/sqlite.h"

#define COUNT_MAX (UINT64_C(1) << 40) /* more rows than any file has */

/* 1: there is no such record.  Else as submission_repeat(). */
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

static uint64_t remove_rows(
        struct sqlite_store *s, enum statement statement, const struct store_prepared *p, bool is_sweep)
{
        struct query q = query(&s->db, statement);
        bind_number(&q, p->shard);
        if (is_sweep)
                bind_number(&q, s->now_ms);
        else
                bind_span(&q, p->idempotency);
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
        /* Each record that comes removes some whose time is over: as many go as come. */
        uint64_t gone = remove_rows(s, STATEMENT_IDEMPOTENCY_REMOVE, p, false);
        gone += remove_rows(s, STATEMENT_IDEMPOTENCY_SWEEP, p, true);
        if (gone)
                count_set(s, p->shard, count > gone ? count - gone : 0);
        return gone || count < s->store.idempotency_max ? 1 : -ENOBUFS;
}

void idempotency_put(struct sqlite_store *s, const struct store_prepared *p)
{
        struct query q = query(&s->db, STATEMENT_IDEMPOTENCY_PUT);
        bind_number(&q, p->shard);
        bind_span(&q, p->idempotency);
        bind_number(&q, s->now_ms + p->idempotency_ms);
        bind_text(&q, p->id);
        bind_span(&q, (struct span){ (const char *)p->digest, SHA256_SIZE });
        (void)query_run(&q);
        count_set(s, p->shard, count_get(s, p->shard) + 1);
}
