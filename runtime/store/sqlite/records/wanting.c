/* Wanting: hosts with waiting tasks without a key and no free seat for them. */
#include <errno.h>
#include <string.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

static void put(struct sqlite_store *s, struct store_wanting_set *set)
{
        struct query q = query(&s->db, STATEMENT_WANTING_COUNT);
        bind_text(&q, set->handler);
        bind_span(&q, (struct span){ (const char *)set->nonce, STORE_NONCE_SIZE });
        uint64_t others = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        if (others >= STORE_WANTING_MAX) {
                operation_refuse(&set->request, -E2BIG, "wanting: %u records are the most", STORE_WANTING_MAX);
                return;
        }
        q = query(&s->db, STATEMENT_WANTING_PUT);
        bind_text(&q, set->handler);
        bind_span(&q, (struct span){ (const char *)set->nonce, STORE_NONCE_SIZE });
        bind_number(&q, set->tasks);
        bind_number(&q, s->now_ms);
        bind_number(&q, s->now_ms + set->keep_ms);
        (void)query_run(&q);
        s->bells.has_wanting = true;
}

void sqlite_wanting_set(struct sqlite_store *s, struct store_request *request)
{
        struct store_wanting_set *set = (struct store_wanting_set *)request;
        struct query q = query(&s->db, STATEMENT_WANTING_SWEEP);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
        if (set->tasks) {
                put(s, set);
                return;
        }
        q = query(&s->db, STATEMENT_WANTING_REMOVE);
        bind_text(&q, set->handler);
        bind_span(&q, (struct span){ (const char *)set->nonce, STORE_NONCE_SIZE });
        (void)query_run(&q);
}

void sqlite_wanting_list(struct sqlite_store *s, struct store_request *request)
{
        struct store_wanting_list *list = (struct store_wanting_list *)request;
        struct arena_chunk **arena = request_arena(request);
        list->items = arena_take(arena, STORE_WANTING_MAX * sizeof(*list->items));
        list->items_count = 0;
        struct query q = query(&s->db, STATEMENT_WANTING_ALL);
        bind_number(&q, s->now_ms);
        bind_text(&q, list->handler);
        while (list->items_count < STORE_WANTING_MAX && query_row(&q)) {
                struct store_wanting *item = &list->items[list->items_count];
                struct span nonce = column_span(&q, 1);
                /* Skip rows that are not a host's nonce. */
                if (nonce.size != STORE_NONCE_SIZE)
                        continue;
                memcpy(item->nonce, nonce.data, STORE_NONCE_SIZE);
                item->handler = arena_copy(arena, column_span(&q, 0));
                item->tasks = min_u64(column_number(&q, 2), TASK_NUMBER_MAX);
                item->since_ms = min_u64(column_number(&q, 3), TASK_NUMBER_MAX);
                list->items_count++;
        }
        query_end(&q);
}
