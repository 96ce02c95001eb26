#include "store/sqlite/shard/log_removals.h"

#include <stdlib.h>

#include "base/memory.h"
#include "store/sqlite/shard/log.h"

/* A statement costs as much as passing this many rows that stay. */
#define ROWS_BETWEEN_MAX 4u
#define ROOM_FEW         256u

#define POINTER_NAME "log_removals"

void log_removals_free(struct log_removals *removals)
{
        free(removals->list);
        *removals = (struct log_removals){ 0 };
}

void log_removals_add(
        struct log_removals *removals, struct sqlite_shard_row *shard, uint64_t seq, struct store_advance *advance)
{
        if (removals->count == removals->room) {
                removals->room = removals->room ? 2 * removals->room : ROOM_FEW;
                removals->list = memory_resize(removals->list, removals->room * sizeof(*removals->list));
        }
        removals->list[removals->count++] =
                (struct log_removal){ .id = log_id(shard->shard, seq), .shard = shard, .advance = advance };
}

static int by_id(const void *a, const void *b)
{
        uint64_t x = ((const struct log_removal *)a)->id;
        uint64_t y = ((const struct log_removal *)b)->id;
        return (x > y) - (x < y);
}

/* Sorts only if needed: calls of one shard are often in order. */
static void sort(struct log_removal *list, uint32_t count)
{
        for (uint32_t i = 1; i < count; i++) {
                if (list[i - 1].id > list[i].id) {
                        qsort(list, count, sizeof(*list), by_id);
                        return;
                }
        }
}

/* --- removing --- */

/* Part of the sorted list, which one statement removes. */
struct removal_group {
        struct log_removal *list;
        uint32_t count;
        uint32_t next; /* rows come in order: those before this one have been passed */
};

/* log_is_listed(group, id) in SQL: whether the row is to be removed. */
static void is_listed(sqlite3_context *context, int count, sqlite3_value **arguments)
{
        (void)count;
        struct removal_group *group = sqlite3_value_pointer(arguments[0], POINTER_NAME);
        uint64_t id = (uint64_t)sqlite3_value_int64(arguments[1]);
        while (group && group->next < group->count && group->list[group->next].id < id)
                group->next++;
        bool is_so = group && group->next < group->count && group->list[group->next].id == id;
        if (is_so)
                group->list[group->next++].is_removed = true;
        sqlite3_result_int(context, is_so);
}

int log_removals_register(sqlite3 *handle)
{
        return sqlite3_create_function(
                handle, "log_is_listed", 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, is_listed, NULL, NULL);
}

/* About how many rows lie between two of a full segment whose tasks are spread evenly. */
static uint64_t rows_between(uint64_t id, uint64_t next, uint32_t shards)
{
        uint64_t place = id & LOG_PLACE_MASK, next_place = next & LOG_PLACE_MASK;
        uint64_t apart = (next >> PLACE_BITS) - (id >> PLACE_BITS);
        if (!apart)
                return next_place - place - 1;
        uint64_t behind = SEGMENT_TASKS / shards > place + 1 ? SEGMENT_TASKS / shards - place - 1 : 0;
        return behind + (apart - 1) * SEGMENT_TASKS / shards + next_place;
}

/* A task that is listed twice is not near itself: each row is in a group once. */
static bool is_near(uint64_t id, uint64_t next, uint32_t shards)
{
        return id < next && id >> SEGMENT_SHIFT == next >> SEGMENT_SHIFT &&
               rows_between(id, next, shards) <= ROWS_BETWEEN_MAX;
}

/* Whether the rows are consecutive and all of one call. */
static bool is_run(const struct removal_group *group)
{
        for (uint32_t i = 1; i < group->count; i++)
                if (group->list[i].id != group->list[i - 1].id + 1 || group->list[i].advance != group->list[0].advance)
                        return false;
        return true;
}

/* Rows of one call without a gap need no look at each: how many of them were there is all that counts. */
static void remove_run(struct database *db, struct removal_group *group)
{
        struct query q = query(db, STATEMENT_LOG_REMOVE_RUN);
        bind_number(&q, group->list[0].id);
        bind_number(&q, group->list[group->count - 1].id);
        uint64_t removed = query_run(&q);
        for (uint32_t i = 0; i < group->count; i++)
                group->list[i].is_removed = i < removed;
}

static void remove_group(struct database *db, struct removal_group *group)
{
        uint64_t first = group->list[0].id, last = group->list[group->count - 1].id;
        if (is_run(group)) {
                remove_run(db, group);
                return;
        }
        struct query q = query(db, STATEMENT_LOG_REMOVE_LISTED);
        bind_number(&q, first);
        bind_number(&q, last);
        bind_pointer(&q, group, POINTER_NAME);
        (void)query_run(&q);
}

static void count_removal(const struct log_removal *removal)
{
        if (!removal->is_removed) {
                removal->advance->gone++;
                return;
        }
        removal->shard->in_flight--;
        removal->shard->done++;
}

void log_removals_flush(struct log_removals *removals, struct database *db, uint32_t shards)
{
        struct log_removal *list = removals->list;
        sort(list, removals->count);
        for (uint32_t i = 0, end; i < removals->count; i = end) {
                for (end = i + 1; end < removals->count && is_near(list[end - 1].id, list[end].id, shards);)
                        end++;
                remove_group(db, &(struct removal_group){ .list = &list[i], .count = end - i });
        }
        for (uint32_t i = 0; i < removals->count; i++)
                count_removal(&list[i]);
        removals->count = 0;
}
