/* The desired state, and what hosts say about themselves. */
#include <errno.h>
#include <string.h>

#include "store/sqlite/sqlite.h"

#define STATUS_LIST_MAX 1024u

static uint64_t version_get(struct sqlite_store *s)
{
        struct query q = query(&s->db, STATEMENT_META_GET);
        bind_text(&q, SPAN_TEXT("desired_version"));
        uint64_t version = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        return version;
}

void sqlite_desired_get(struct sqlite_store *s, struct store_request *request)
{
        struct store_desired_get *get = (struct store_desired_get *)request;
        struct arena_chunk **arena = request_arena(request);
        get->items = arena_take(arena, STORE_DESIRED_MAX * sizeof(*get->items));
        get->items_count = 0;
        get->version = version_get(s);
        struct query q = query(&s->db, STATEMENT_DESIRED_ALL);
        while (query_row(&q) && get->items_count < STORE_DESIRED_MAX)
                get->items[get->items_count++] = (struct store_desired){ arena_copy(arena, column_span(&q, 0)),
                        arena_copy(arena, column_span(&q, 1)) };
        query_end(&q);
}

void sqlite_desired_set(struct sqlite_store *s, struct store_request *request)
{
        struct store_desired_set *set = (struct store_desired_set *)request;
        struct query q = query(&s->db, STATEMENT_DESIRED_COUNT);
        bind_text(&q, set->item.name);
        uint64_t others = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        if (set->has_value && others >= STORE_DESIRED_MAX) {
                operation_refuse(request, -E2BIG, "desired state: %u names are the most", STORE_DESIRED_MAX);
                return;
        }
        q = query(&s->db, set->has_value ? STATEMENT_DESIRED_SET : STATEMENT_DESIRED_REMOVE);
        bind_text(&q, set->item.name);
        if (set->has_value)
                bind_span(&q, set->item.value);
        (void)query_run(&q);
        set->version = version_get(s) + 1;
        q = query(&s->db, STATEMENT_META_SET);
        bind_text(&q, SPAN_TEXT("desired_version"));
        bind_number(&q, set->version);
        (void)query_run(&q);
        s->bells.has_desired = true;
}

void sqlite_status_put(struct sqlite_store *s, struct store_request *request)
{
        struct store_status_put *put = (struct store_status_put *)request;
        struct span nonce = { (const char *)put->nonce, STORE_NONCE_SIZE };
        struct query q = query(&s->db, STATEMENT_STATUS_REMOVE);
        bind_span(&q, nonce);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
        if (!put->document.size)
                return;
        q = query(&s->db, STATEMENT_STATUS_PUT);
        bind_span(&q, nonce);
        bind_number(&q, s->now_ms);
        bind_number(&q, s->now_ms + put->keep_ms);
        bind_span(&q, put->document);
        (void)query_run(&q);
}

void sqlite_status_list(struct sqlite_store *s, struct store_request *request)
{
        struct store_status_list *list = (struct store_status_list *)request;
        struct arena_chunk **arena = request_arena(request);
        list->items = arena_take(arena, STATUS_LIST_MAX * sizeof(*list->items));
        list->items_count = 0;
        struct query q = query(&s->db, STATEMENT_STATUS_ALL);
        bind_number(&q, s->now_ms);
        bind_number(&q, STATUS_LIST_MAX);
        while (query_row(&q)) {
                struct store_status *item = &list->items[list->items_count++];
                struct span nonce = column_span(&q, 0);
                uint64_t at_ms = column_number(&q, 1);
                if (nonce.size == STORE_NONCE_SIZE)
                        memcpy(item->nonce, nonce.data, STORE_NONCE_SIZE);
                item->age_ms = s->now_ms > at_ms ? s->now_ms - at_ms : 0;
                item->document = arena_copy(arena, column_span(&q, 2));
        }
        query_end(&q);
}
