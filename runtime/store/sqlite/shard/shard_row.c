#include "store/sqlite/shard/shard_row.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

void shard_table_init(struct shard_table *table, uint32_t count)
{
        *table = (struct shard_table){ .count = count, .generation = 1 };
        table->rows = memory_zero(count, sizeof(*table->rows));
        table->dirty = memory_zero(count, sizeof(*table->dirty));
        for (uint32_t i = 0; i < count; i++)
                table->rows[i].shard = i;
        tallies_init(table);
}

void shard_table_free(struct shard_table *table)
{
        for (uint32_t i = 0; i < table->count; i++)
                free(table->rows[i].last);
        free(table->rows);
        free(table->dirty);
        free(table->tallies);
        free(table->groups);
        *table = (struct shard_table){ 0 };
}

void shard_table_create(struct shard_table *table, struct database *db)
{
        for (uint32_t i = 0; i < table->count; i++) {
                struct query q = query(db, STATEMENT_SHARD_ADD);
                bind_number(&q, i);
                (void)query_run(&q);
        }
}

void shard_table_begin(struct shard_table *table, struct database *db)
{
        struct query q = query(db, STATEMENT_DATA_VERSION);
        uint64_t version = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        if (version != table->data_version)
                table->generation++;
        table->data_version = version;
}

void shard_table_forget(struct shard_table *table)
{
        for (uint32_t i = 0; i < table->dirty_count; i++)
                table->rows[table->dirty[i]].is_dirty = false;
        /* Also the state for producers, which may come from a transaction that was rolled back. */
        for (uint32_t i = 0; i < table->count; i++)
                table->rows[i].is_known = false;
        table->dirty_count = 0;
        table->data_version = 0;
        table->generation++;
        table->position.is_dirty = false;
        tallies_forget(table);
}

static void nonce_load(struct query *q, int column, uint8_t nonce[STORE_NONCE_SIZE])
{
        struct span value = column_span(q, column);
        memset(nonce, 0, STORE_NONCE_SIZE);
        if (value.size == STORE_NONCE_SIZE)
                memcpy(nonce, value.data, STORE_NONCE_SIZE);
}

struct seq_range *shard_last_room(struct sqlite_shard_row *s)
{
        if (!s->last)
                s->last = memory_alloc(LAST_RANGES * sizeof(*s->last));
        return s->last;
}

static void last_load(struct sqlite_shard_row *s, struct span bytes)
{
        s->last_count = (uint32_t)(bytes.size / sizeof(struct seq_range));
        if (!s->last_count)
                return;
        struct seq_range *last = shard_last_room(s);
        if (s->last_count > LAST_RANGES)
                s->last_count = LAST_RANGES;
        memcpy(last, bytes.data, s->last_count * sizeof(*last));
        /* Bounded, because a repeated call looks at each seq. */
        uint64_t sum = 0;
        for (uint32_t i = 0; i < s->last_count && sum <= STORE_CALL_TASKS; i++)
                sum += last[i].first <= STORE_SEQ_MAX && last[i].count <= STORE_CALL_TASKS ? last[i].count
                                                                                           : STORE_CALL_TASKS + 1;
        if (sum > STORE_CALL_TASKS)
                s->last_count = 0;
}

/* The name of a number that is out of range; NULL if all are valid. */
static const char *bad_number(const struct sqlite_shard_row *s)
{
        const struct {
                uint64_t value;
                uint64_t max;
                const char *name;
        } numbers[] = {
                { s->tail[LANE_HIGH], LANE_NUMBER_MAX, "high_tail" },
                { s->taken[LANE_HIGH], LANE_NUMBER_MAX, "high_taken" },
                { s->tail[LANE_NORMAL], LANE_NUMBER_MAX, "normal_tail" },
                { s->taken[LANE_NORMAL], LANE_NUMBER_MAX, "normal_taken" },
                { s->tail[LANE_LOW], LANE_NUMBER_MAX, "low_tail" },
                { s->taken[LANE_LOW], LANE_NUMBER_MAX, "low_taken" },
                { s->epoch, TASK_NUMBER_MAX, "epoch" },
                { s->call, TASK_NUMBER_MAX, "call" },
                { s->last_delayed, SHARD_NUMBER_MAX, "last_delayed" },
                { s->last_dead, SHARD_NUMBER_MAX, "last_dead" },
                { s->last_result, SHARD_NUMBER_MAX, "last_result" },
                { s->last_control, SHARD_NUMBER_MAX, "last_control" },
                { s->last_key, SHARD_NUMBER_MAX, "last_key" },
                { s->merged, SHARD_NUMBER_MAX, "merged" },
        };
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                if (numbers[i].value > numbers[i].max)
                        return numbers[i].name;
        return NULL;
}

#define NUMBER_LOAD(field, column) s->field = column_number(&q, at++);

/* Updates the state that producers use. */
static void know(struct shard_table *table, struct database *db, struct sqlite_shard_row *s)
{
        s->is_known = true;
        s->known_leases = leases_get(table, db);
        s->known_held = s->is_held;
        memcpy(s->known_holder, s->holder, STORE_NONCE_SIZE);
        s->known_delayed = s->delayed;
        /* Includes what is in flight, which may be parked by then. */
        s->known_backlog = shard_queued(s) + s->delayed + s->parked + s->in_flight;
        s->known_put = shard_tally(table, db, s->shard)->put;
}

static void tally_add(struct sqlite_shard_row *s, const struct shard_tally *t)
{
        for (unsigned lane = 0; lane < LANES; lane++) {
                s->queued[lane] += t->added[lane];
                s->tail[lane] = max_u64(s->tail[lane], t->tail[lane]);
        }
        s->submitted += t->submitted;
}

static void load(struct shard_table *table, struct sqlite_shard_row *s, struct database *db)
{
        struct query q = query(db, STATEMENT_SHARD_GET);
        bind_number(&q, s->shard);
        bool is_there = query_row(&q);
        if (is_there) {
                int at = 0;
                SHARD_NUMBERS(NUMBER_LOAD)
                nonce_load(&q, at++, s->holder);
                nonce_load(&q, at++, s->want_nonce);
                last_load(s, column_span(&q, at));
                s->bad_number = bad_number(s);
        }
        query_end(&q);
        if (!is_there)
                return;
        if (!s->bad_number && tally_is_bad(table, db, s->shard))
                s->bad_number = "tally";
        if (s->bad_number) {
                *s = (struct sqlite_shard_row){
                        .shard = s->shard, .is_dirty = s->is_dirty, .bad_number = s->bad_number, .last = s->last
                };
        } else {
                tally_add(s, shard_tally(table, db, s->shard));
                know(table, db, s);
        }
        s->loaded_in = table->generation;
}

#define NUMBER_BIND(field, column) bind_number(&q, s->field);

static void save(struct shard_table *table, struct sqlite_shard_row *s, struct database *db)
{
        if (s->is_held != s->known_held || memcmp(s->holder, s->known_holder, STORE_NONCE_SIZE) != 0 ||
                s->delayed > s->known_delayed)
                leases_changed(table, db);
        struct query q = query(db, STATEMENT_SHARD_SET);
        SHARD_NUMBERS(NUMBER_BIND)
        bind_span(&q, (struct span){ (const char *)s->holder, STORE_NONCE_SIZE });
        bind_span(&q, (struct span){ (const char *)s->want_nonce, STORE_NONCE_SIZE });
        bind_span(&q, (struct span){ (const char *)s->last, s->last_count * sizeof(*s->last) });
        bind_number(&q, s->shard);
        (void)query_run(&q);
        tally_take(table, db, s->shard);
        know(table, db, s);
}

void shard_table_flush(struct shard_table *table, struct database *db)
{
        for (uint32_t i = 0; i < table->dirty_count; i++) {
                struct sqlite_shard_row *s = &table->rows[table->dirty[i]];
                s->is_dirty = false;
                save(table, s, db);
        }
        table->dirty_count = 0;
        tallies_flush(table, db);
        log_position_flush(table, db);
}

bool shard_is_bad(struct shard_table *table, struct database *db, uint32_t shard)
{
        struct sqlite_shard_row *s = &table->rows[shard];
        if (!shard_is_exact(table, s))
                load(table, s, db);
        return s->bad_number;
}

struct sqlite_shard_row *shard_get(struct shard_table *table, struct database *db, uint32_t shard)
{
        struct sqlite_shard_row *s = &table->rows[shard];
        if (shard_is_bad(table, db, shard) && !db->failure)
                db->failure = error_set(&db->error, -EPROTO,
                        "shard %" PRIu32
                        ": its %s is out of range; stop all hosts of the app, then quiver fsck --repair",
                        shard, s->bad_number);
        return s;
}

struct sqlite_shard_row *shard_change(struct shard_table *table, struct database *db, uint32_t shard)
{
        struct sqlite_shard_row *s = shard_get(table, db, shard);
        if (!s->is_dirty && !s->bad_number) {
                s->is_dirty = true;
                table->dirty[table->dirty_count++] = shard;
        }
        return s;
}

struct sqlite_shard_row *shard_peek(struct shard_table *table, struct database *db, uint32_t shard)
{
        struct sqlite_shard_row *s = &table->rows[shard];
        bool is_known = !s->bad_number && s->is_known && s->known_leases == leases_get(table, db);
        return is_known && !tally_is_bad(table, db, shard) ? s : shard_get(table, db, shard);
}

uint64_t shard_backlog(struct shard_table *table, struct database *db, const struct sqlite_shard_row *s)
{
        if (shard_is_exact(table, s))
                return shard_queued(s) + s->delayed + s->parked;
        return s->known_backlog + (shard_tally(table, db, s->shard)->put - s->known_put);
}
