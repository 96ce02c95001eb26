/* Limits that all hosts of the app share. */
#include <errno.h>

#include "base/numbers.h"
#include "store/limit_share.h"
#include "store/sqlite/sqlite.h"

/* A new value removes some that are at rest, so the table does not grow with time; more if there is no room
 * otherwise. */
#define FORGET_SOME 4
#define FORGET_MANY 64

struct limit_home {
        struct store_limit limit; /* the definition in effect */
        bool is_there;
        bool is_stored; /* `limit` is the stored definition */
        uint64_t values;
        uint64_t refused;
};

/* Uses the stored definition if it is readable and not older than `given`. */
static struct limit_home home_get(struct sqlite_store *s, const struct store_limit *given)
{
        struct limit_home home = { .limit = *given };
        struct query q = query(&s->db, STATEMENT_LIMIT_GET);
        bind_text(&q, given->name);
        if (query_row(&q)) {
                struct store_limit stored = { .name = given->name };
                home.is_there = limit_read(column_span(&q, 0), &stored);
                home.is_stored = home.is_there && stored.version >= given->version;
                if (home.is_stored)
                        home.limit = stored;
                home.values = min_u64(column_number(&q, 1), TASK_NUMBER_MAX);
                home.refused = min_u64(column_number(&q, 2), TASK_NUMBER_MAX);
        }
        query_end(&q);
        return home;
}

static void home_set(struct sqlite_store *s, const struct limit_home *home)
{
        struct buffer text = { 0 };
        limit_put(&text, &home->limit);
        struct query q = query(&s->db, STATEMENT_LIMIT_SET);
        bind_text(&q, home->limit.name);
        bind_text(&q, (struct span){ (const char *)text.data, text.size });
        bind_number(&q, home->values);
        bind_number(&q, home->refused);
        (void)query_run(&q);
        buffer_free(&text);
}

static void forget(struct sqlite_store *s, struct limit_home *home, uint32_t max)
{
        struct query q = query(&s->db, STATEMENT_LIMIT_VALUE_FORGET);
        bind_text(&q, home->limit.name);
        bind_number(&q, s->now_ms);
        bind_number(&q, max);
        uint64_t gone = query_run(&q);
        home->values -= min_u64(gone, home->values);
}

static bool make_room(struct sqlite_store *s, struct limit_home *home)
{
        forget(s, home, FORGET_SOME);
        if (home->values >= home->limit.values_max)
                forget(s, home, FORGET_MANY);
        return home->values < home->limit.values_max;
}

static uint64_t first_rest_ms(struct sqlite_store *s, const struct limit_home *home, uint64_t lease_ms)
{
        struct query q = query(&s->db, STATEMENT_LIMIT_VALUE_FIRST);
        bind_text(&q, home->limit.name);
        uint64_t rest_ms = query_row(&q) ? column_number(&q, 0) : s->now_ms + lease_ms;
        query_end(&q);
        return rest_ms > s->now_ms ? rest_ms - s->now_ms : 1;
}

static void value_write(
        struct sqlite_store *s, struct limit_home *home, const struct limit_share *share, struct span value)
{
        if (share->after.size) {
                struct query q = query(&s->db, STATEMENT_LIMIT_VALUE_SET);
                bind_text(&q, home->limit.name);
                bind_span(&q, value);
                bind_number(&q, share->rest_ms);
                bind_text(&q, (struct span){ (const char *)share->after.data, share->after.size });
                (void)query_run(&q);
                home->values += !share->is_record_there;
        } else if (share->is_record_there) {
                struct query q = query(&s->db, STATEMENT_LIMIT_VALUE_REMOVE);
                bind_text(&q, home->limit.name);
                bind_span(&q, value);
                home->values -= min_u64(query_run(&q), home->values);
        }
}

static void take_one(struct sqlite_store *s, const struct store_limit_take *take, struct limit_home *home,
        struct store_limit_item *item)
{
        struct limit_share share = { .limit = &home->limit,
                .holder = take->holder,
                .lease_ms = take->lease_ms,
                .call = take->call,
                .now_ms = s->now_ms,
                .want = item->want,
                .keep = item->keep,
                .close_ms = item->close_ms };
        struct query q = query(&s->db, STATEMENT_LIMIT_VALUE_GET);
        bind_text(&q, home->limit.name);
        bind_span(&q, item->value);
        share.is_record_there = query_row(&q);
        if (share.is_record_there)
                share.record = arena_copy(request_arena((struct store_request *)&take->request), column_span(&q, 0));
        query_end(&q);
        if (!share.is_record_there && (item->want || item->close_ms) && !make_room(s, home)) {
                item->is_full = true;
                item->retry_ms = first_rest_ms(s, home, take->lease_ms);
                home->refused = min_u64(home->refused + 1, TASK_NUMBER_MAX);
                return;
        }
        limit_share_take(&share);
        if (share.is_changed)
                value_write(s, home, &share, item->value);
        buffer_free(&share.after);
        item->granted = share.granted;
        item->left_ms = share.left_ms;
        item->retry_ms = share.retry_ms;
        item->closed_ms = share.closed_ms;
        item->has_waiting = share.has_waiting;
        item->is_over = share.is_over;
}

void sqlite_limit_take(struct sqlite_store *s, struct store_request *request)
{
        struct store_limit_take *take = (struct store_limit_take *)request;
        struct limit_home home = home_get(s, &take->limit);
        struct limit_home before = home;
        for (uint32_t i = 0; i < take->items_count; i++)
                take_one(s, take, &home, &take->items[i]);
        take->used = home.limit;
        if (!home.is_stored || home.values != before.values || home.refused != before.refused)
                home_set(s, &home);
}

void sqlite_limit_look(struct sqlite_store *s, struct store_request *request)
{
        struct store_limit_look *look = (struct store_limit_look *)request;
        struct arena_chunk **arena = request_arena(request);
        struct limit_home home = home_get(s, &(struct store_limit){ .name = look->name });
        if (!home.is_there) {
                operation_refuse(request, -ENOENT, "limit: nobody has used it yet");
                return;
        }
        look->limit = home.limit;
        look->values_count = home.values;
        look->refused = home.refused;
        look->values = arena_take(arena, look->page_values * sizeof(*look->values));
        struct query q = query(&s->db, STATEMENT_LIMIT_VALUE_PAGE);
        bind_text(&q, look->name);
        bind_number(&q, look->cursor);
        bind_number(&q, look->page_values);
        while (query_row(&q)) {
                struct store_limit_value *value = &look->values[look->listed++];
                *value = (struct store_limit_value){ .value = arena_copy(arena, column_span(&q, 1)) };
                look->cursor = column_number(&q, 0);
                limit_share_look(&home.limit, column_span(&q, 2), s->now_ms, value);
        }
        query_end(&q);
        look->is_end = look->listed < look->page_values;
}
