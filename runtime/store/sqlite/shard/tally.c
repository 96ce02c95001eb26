/* Tallies: tasks appended since the shards' rows were written; and the counter by which producers notice new owners. */
#include <string.h>

#include "base/memory.h"
#include "store/sqlite/shard/shard_row.h"

/* Shards per row of `tally`: two rows fill a page. */
#define TALLY_SHARDS 32u

#define LEASES_NAME SPAN_TEXT("leases")

void tallies_init(struct shard_table *table)
{
        uint32_t groups = (table->count + TALLY_SHARDS - 1) / TALLY_SHARDS;
        table->tallies = memory_zero((size_t)groups * TALLY_SHARDS, sizeof(*table->tallies));
        table->groups = memory_zero(groups, sizeof(*table->groups));
}

static bool is_in_range(const struct shard_tally *t)
{
        for (unsigned lane = 0; lane < LANES; lane++)
                if (t->tail[lane] > LANE_NUMBER_MAX)
                        return false;
        return t->put <= TASK_NUMBER_MAX;
}

static void group_load(struct shard_table *table, struct database *db, uint32_t number)
{
        struct tally_group *group = &table->groups[number];
        struct shard_tally *tallies = &table->tallies[number * TALLY_SHARDS];
        const size_t size = TALLY_SHARDS * sizeof(*tallies);
        struct query q = query(db, STATEMENT_TALLY_GET);
        bind_number(&q, number);
        bool is_there = query_row(&q);
        struct span bytes = is_there ? column_span(&q, 0) : (struct span){ 0 };
        bool is_whole = bytes.size == size;
        if (is_whole)
                memcpy(tallies, bytes.data, size);
        else
                memset(tallies, 0, size);
        query_end(&q);
        group->loaded_in = table->generation;
        /* No row exists before the first task. */
        group->is_bad = is_there && !is_whole;
}

struct shard_tally *shard_tally(struct shard_table *table, struct database *db, uint32_t shard)
{
        if (table->groups[shard / TALLY_SHARDS].loaded_in != table->generation)
                group_load(table, db, shard / TALLY_SHARDS);
        return &table->tallies[shard];
}

bool tally_is_bad(struct shard_table *table, struct database *db, uint32_t shard)
{
        const struct shard_tally *t = shard_tally(table, db, shard);
        return table->groups[shard / TALLY_SHARDS].is_bad || !is_in_range(t);
}

struct shard_tally *tally_change(struct shard_table *table, struct database *db, uint32_t shard)
{
        struct shard_tally *t = shard_tally(table, db, shard);
        table->groups[shard / TALLY_SHARDS].is_dirty = true;
        table->has_dirty_group = true;
        return t;
}

void tally_take(struct shard_table *table, struct database *db, uint32_t shard)
{
        const struct shard_tally *t = shard_tally(table, db, shard);
        if (!t->added[LANE_HIGH] && !t->added[LANE_NORMAL] && !t->added[LANE_LOW] && !t->submitted)
                return;
        struct shard_tally *taken = tally_change(table, db, shard);
        memset(taken->added, 0, sizeof(taken->added));
        taken->submitted = 0;
}

void tally_clear(struct shard_table *table, struct database *db, uint32_t shard)
{
        *tally_change(table, db, shard) = (struct shard_tally){ 0 };
        table->groups[shard / TALLY_SHARDS].is_bad = false;
}

void tallies_flush(struct shard_table *table, struct database *db)
{
        if (!table->has_dirty_group)
                return;
        table->has_dirty_group = false;
        for (uint32_t i = 0; i * TALLY_SHARDS < table->count; i++) {
                if (!table->groups[i].is_dirty)
                        continue;
                table->groups[i].is_dirty = false;
                struct query q = query(db, STATEMENT_TALLY_SET);
                bind_number(&q, i);
                bind_span(&q, (struct span){ (const char *)&table->tallies[i * TALLY_SHARDS],
                                      TALLY_SHARDS * sizeof(*table->tallies) });
                (void)query_run(&q);
        }
}

void tallies_forget(struct shard_table *table)
{
        for (uint32_t i = 0; table->has_dirty_group && i * TALLY_SHARDS < table->count; i++)
                table->groups[i].is_dirty = false;
        table->has_dirty_group = false;
}

/* --- leases --- */

uint64_t leases_get(struct shard_table *table, struct database *db)
{
        if (table->leases_loaded_in == table->generation)
                return table->leases;
        struct query q = query(db, STATEMENT_META_GET);
        bind_text(&q, LEASES_NAME);
        table->leases = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        table->leases_loaded_in = table->generation;
        return table->leases;
}

void leases_changed(struct shard_table *table, struct database *db)
{
        table->leases = leases_get(table, db) + 1;
        struct query q = query(db, STATEMENT_META_SET);
        bind_text(&q, LEASES_NAME);
        bind_number(&q, table->leases);
        (void)query_run(&q);
}
