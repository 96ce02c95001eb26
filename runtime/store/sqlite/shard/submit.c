/* Submitting tasks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/sqlite.h"

void ring_holder(struct sqlite_store *s, const struct sqlite_shard_row *shard)
{
        if (shard->is_held)
                doorbells_add(&s->bells, shard->holder, shard->shard);
}

static void bind_note(struct query *q, struct span note)
{
        if (note.size)
                bind_span(q, note);
        else
                bind_null(q);
}

void shard_append(
        struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane, struct span task, struct span note)
{
        bool is_put = false;
        struct shard_tally *tally = tally_change(&s->shards, &s->db, shard->shard);
        shard->queued[lane]++;
        tally->added[lane]++;
        tally->put++;
        if (tally->added[lane] >= TALLY_MANY)
                (void)shard_write(s, shard->shard);
        /* Another program may have written a row under a number that was not given yet: try the next number. */
        while (!is_put && !s->db.failure) {
                uint64_t number = log_give(&s->shards, &s->db, shard, lane);
                struct query q = query(&s->db, STATEMENT_LOG_PUT_FREE);
                bind_number(&q, log_id(shard->shard, lane_seq(lane, number)));
                bind_span(&q, task);
                bind_note(&q, note);
                is_put = query_run(&q);
        }
        ring_holder(s, shard);
}

void shard_delay(struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane, uint64_t due_ms,
        struct span task, struct span note)
{
        shard->delayed++;
        struct query q = query(&s->db, STATEMENT_DELAYED_PUT);
        bind_number(&q, shard_id(shard->shard, ++shard->last_delayed));
        bind_number(&q, shard->shard);
        bind_number(&q, due_ms);
        bind_number(&q, lane);
        bind_span(&q, task);
        bind_note(&q, note);
        (void)query_run(&q);
        ring_holder(s, shard);
}

void shard_append_prepared(struct sqlite_store *s, const struct store_prepared *p)
{
        uint64_t due_ms = p->delay_ms ? s->now_ms + p->delay_ms : 0;
        if (p->not_before_ms > due_ms)
                due_ms = p->not_before_ms;
        bool is_delayed = due_ms > s->now_ms;
        struct sqlite_shard_row *shard =
                is_delayed ? shard_write(s, p->shard) : shard_peek(&s->shards, &s->db, p->shard);
        shard->submitted++;
        tally_change(&s->shards, &s->db, p->shard)->submitted++;
        if (is_delayed)
                shard_delay(s, shard, p->lane, due_ms, p->bytes, (struct span){ 0 });
        else
                shard_append(s, shard, p->lane, p->bytes, (struct span){ 0 });
}

/* The scope of `unique`: handler and key, neither of which has a newline. */
static struct span unique_scope(const struct store_prepared *p, char scope[TASK_HANDLER_MAX + TASK_KEY_MAX + 1])
{
        char *at = mempcpy(scope, p->handler.data, p->handler.size);
        *at++ = '\n';
        at = mempcpy(at, p->key.data, p->key.size);
        return (struct span){ scope, (size_t)(at - scope) };
}

/* True if such a task exists; ret_first is its id.  Otherwise remembers this one. */
static bool unique_is_taken(
        struct sqlite_store *s, const struct store_prepared *p, struct arena_chunk **arena, struct span *ret_first)
{
        char text[TASK_HANDLER_MAX + TASK_KEY_MAX + 1];
        struct span scope = unique_scope(p, text);
        struct query q = query(&s->db, STATEMENT_UNIQUE_GET);
        bind_number(&q, p->shard);
        bind_span(&q, scope);
        bool is_taken = query_row(&q) && column_number(&q, 1) > s->now_ms;
        if (is_taken)
                *ret_first = arena_copy(arena, column_span(&q, 0));
        query_end(&q);
        if (is_taken)
                return true;
        q = query(&s->db, STATEMENT_UNIQUE_SET);
        bind_number(&q, p->shard);
        bind_span(&q, scope);
        bind_number(&q, s->now_ms + p->unique_ms);
        bind_text(&q, p->id);
        (void)query_run(&q);
        q = query(&s->db, STATEMENT_UNIQUE_SWEEP);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
        return false;
}

static int submit_one(struct sqlite_store *s, const struct store_prepared *p, struct store_submission *item,
        struct arena_chunk **arena, struct span *ret_first)
{
        item->is_repeat = false; /* a transaction that was rolled back may have set it */
        const struct sqlite_shard_row *shard = shard_peek(&s->shards, &s->db, p->shard);
        /* Check for a repeat before all limits: it stores nothing. */
        int r = p->idempotency.size ? idempotency_look(s, p, item) : 1;
        if (r != 1)
                return r;
        if (shard_backlog(&s->shards, &s->db, shard) >= s->store.backlog_max &&
                shard_backlog(&s->shards, &s->db, shard_read(s, p->shard)) >= s->store.backlog_max)
                return -EDQUOT;
        if (p->unique_ms && unique_is_taken(s, p, arena, ret_first))
                return -EEXIST;
        shard_append_prepared(s, p);
        if (p->idempotency.size)
                idempotency_put(s, p);
        return 0;
}

static int by_place(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a;
        uint64_t y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

/* Sorts items by their place in the log, so that a page is filled before the next.  Tasks of a shard and lane keep
 * their order. */
static void order(const struct store_submit *submit, uint64_t order[STORE_SUBMIT_TASKS])
{
        for (uint32_t i = 0; i < submit->items_count; i++) {
                const struct store_prepared *p = &submit->prepared[i];
                order[i] = (uint64_t)p->lane << 48 | (uint64_t)p->shard << 32 | i;
        }
        if (submit->items_count > 1)
                qsort(order, submit->items_count, sizeof(*order), by_place);
}

void sqlite_submit(struct sqlite_store *s, struct store_request *request)
{
        struct store_submit *submit = (struct store_submit *)request;
        struct arena_chunk **arena = request_arena(request);
        uint64_t places[STORE_SUBMIT_TASKS];
        int statuses[STORE_SUBMIT_TASKS];
        struct span *firsts = arena_take(arena, submit->items_count * sizeof(*firsts));
        memset(statuses, 0, submit->items_count * sizeof(*statuses));
        order(submit, places);
        log_expect(&s->shards, &s->db, submit->items_count);
        for (uint32_t n = 0; n < submit->items_count; n++) {
                uint32_t i = (uint32_t)places[n];
                if (submit->prepared[i].bytes.size)
                        statuses[i] = submit_one(s, &submit->prepared[i], &submit->items[i], arena, &firsts[i]);
        }
        submit->refused = 0;
        for (uint32_t i = 0; i < submit->items_count; i++) {
                if (submit->prepared[i].bytes.size)
                        submission_settle(submit, i, statuses[i], firsts[i]);
                submit->refused += submit->items[i].status != 0;
        }
}
