/* Dead tasks counted by handler, reason and the first line of the error. */
#include <string.h>

#include "store/sqlite/sqlite.h"

/* Changes the group's count; false: there is no such group. */
static bool group_add(struct sqlite_store *s, enum statement statement, uint32_t shard, struct span handler,
        struct span reason, struct span error, int64_t by)
{
        struct query q = query(&s->db, statement);
        bind_number(&q, shard);
        bind_text(&q, handler);
        bind_text(&q, reason);
        bind_text(&q, error);
        bind_number(&q, (uint64_t)by); /* the same bits, as SQLite has signed numbers */
        return query_run(&q) > 0;
}

static uint64_t groups_of(struct sqlite_store *s, uint32_t shard)
{
        struct query q = query(&s->db, STATEMENT_DEAD_GROUP_COUNT);
        bind_number(&q, shard);
        uint64_t groups = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        return groups;
}

void dead_group_count(
        struct sqlite_store *s, uint32_t shard, struct span handler, struct span reason, struct span error, int64_t by)
{
        static const struct span other = SPAN_TEXT("");
        bool is_counted = group_add(s, STATEMENT_DEAD_GROUP_ADD, shard, handler, reason, error, by);
        if (!is_counted && by > 0 && groups_of(s, shard) < STORE_DEAD_GROUPS)
                is_counted = group_add(s, STATEMENT_DEAD_GROUP_NEW, shard, handler, reason, error, by);
        if (!is_counted)
                is_counted = group_add(s, STATEMENT_DEAD_GROUP_ADD, shard, other, other, other, by);
        if (!is_counted && by > 0)
                (void)group_add(s, STATEMENT_DEAD_GROUP_NEW, shard, other, other, other, by);
        if (by > 0)
                return;
        struct query q = query(&s->db, STATEMENT_DEAD_GROUP_TRIM);
        bind_number(&q, shard);
        (void)query_run(&q);
}

void sqlite_dead_groups(struct sqlite_store *s, struct store_request *request)
{
        struct store_dead_groups *to = (struct store_dead_groups *)request;
        struct arena_chunk **arena = request_arena(request);
        const uint32_t max = STORE_DEAD_GROUPS + 1;
        to->groups = arena_take(arena, max * sizeof(*to->groups));
        to->groups_count = 0;
        struct query q = query(&s->db, STATEMENT_DEAD_GROUP_ALL);
        bind_number(&q, to->shard);
        bind_number(&q, max);
        while (query_row(&q))
                to->groups[to->groups_count++] =
                        (struct store_dead_group){ .handler = arena_copy(arena, column_span(&q, 0)),
                                .reason = arena_copy(arena, column_span(&q, 1)),
                                .error = arena_copy(arena, column_span(&q, 2)),
                                .tasks = column_number(&q, 3) };
        query_end(&q);
}
