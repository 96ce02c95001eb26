/* The desired state, and the hosts' status documents. */
#include <errno.h>
#include <string.h>

#include "base/numbers.h"
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

/* --- documents --- */

/* A document's name: the nonce, followed by nothing or by the number of the document's kind. */
struct document_name {
        uint8_t bytes[STORE_NONCE_SIZE + DOCUMENTS];
        size_t size;
};

static struct document_name name_of(const uint8_t nonce[STORE_NONCE_SIZE], enum store_document kind)
{
        struct document_name name = { .size = STORE_NONCE_SIZE + (size_t)kind };
        memcpy(name.bytes, nonce, STORE_NONCE_SIZE);
        memset(name.bytes + STORE_NONCE_SIZE, (int)kind, (size_t)kind);
        return name;
}

/* Reads one number by name and, for a host's counter, by nonce; false: none. */
static bool counter_get(struct sqlite_store *s, enum statement statement, const struct span *nonce, struct span name,
        uint64_t *ret_value)
{
        struct query q = query(&s->db, statement);
        if (nonce)
                bind_span(&q, *nonce);
        bind_text(&q, name);
        bool is_there = query_row(&q);
        if (is_there)
                *ret_value = column_number(&q, 0);
        query_end(&q);
        return is_there;
}

static void count_one(struct sqlite_store *s, struct span nonce, const struct store_counter *counter)
{
        uint64_t counted = counter->before;
        uint64_t total = 0;
        (void)counter_get(s, STATEMENT_COUNTED_GET, &nonce, counter->name, &counted);
        if (counter->value <= counted)
                return;
        struct query q = query(&s->db, STATEMENT_COUNTED_SET);
        bind_span(&q, nonce);
        bind_text(&q, counter->name);
        bind_number(&q, counter->value);
        (void)query_run(&q);
        (void)counter_get(s, STATEMENT_COUNTER_GET, NULL, counter->name, &total);
        q = query(&s->db, STATEMENT_COUNTER_SET);
        bind_text(&q, counter->name);
        bind_number(&q, min_u64(total + (counter->value - counted), TASK_NUMBER_MAX));
        bind_number(&q, STORE_COUNTERS_MAX);
        (void)query_run(&q);
}

void sqlite_status_put(struct sqlite_store *s, struct store_request *request)
{
        struct store_status_put *put = (struct store_status_put *)request;
        struct document_name name = name_of(put->nonce, put->kind);
        struct span bytes = { (const char *)name.bytes, name.size };
        struct query q = query(&s->db, STATEMENT_STATUS_REMOVE);
        bind_span(&q, bytes);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
        for (uint32_t i = 0; i < put->counters_count; i++)
                count_one(s, (struct span){ (const char *)put->nonce, STORE_NONCE_SIZE }, &put->counters[i]);
        if (put->document.size) {
                q = query(&s->db, STATEMENT_STATUS_PUT);
                bind_span(&q, bytes);
                bind_number(&q, s->now_ms);
                bind_number(&q, s->now_ms + put->keep_ms);
                bind_span(&q, put->document);
                (void)query_run(&q);
        }
        q = query(&s->db, STATEMENT_COUNTED_TRIM);
        (void)query_run(&q);
}

static void totals_list(struct sqlite_store *s, struct store_status_list *list)
{
        struct arena_chunk **arena = request_arena(&list->request);
        struct query q = query(&s->db, STATEMENT_COUNTER_ALL);
        list->totals = arena_take(arena, STORE_COUNTERS_MAX * sizeof(*list->totals));
        bind_number(&q, STORE_COUNTERS_MAX);
        while (query_row(&q))
                list->totals[list->totals_count++] =
                        (struct store_total){ arena_copy(arena, column_span(&q, 0)), column_number(&q, 1) };
        query_end(&q);
}

void sqlite_status_list(struct sqlite_store *s, struct store_request *request)
{
        struct store_status_list *list = (struct store_status_list *)request;
        struct arena_chunk **arena = request_arena(request);
        list->items = arena_take(arena, STATUS_LIST_MAX * sizeof(*list->items));
        list->items_count = list->totals_count = 0;
        struct document_name name = name_of(list->nonce, list->kind);
        struct query q = query(&s->db, list->is_one ? STATEMENT_STATUS_ONE : STATEMENT_STATUS_ALL);
        bind_number(&q, s->now_ms);
        bind_number(&q, STATUS_LIST_MAX);
        if (list->is_one)
                bind_span(&q, (struct span){ (const char *)name.bytes, name.size });
        else
                bind_number(&q, name.size);
        while (query_row(&q)) {
                struct store_status *item = &list->items[list->items_count];
                struct span nonce = column_span(&q, 0);
                uint64_t at_ms = column_number(&q, 1);
                /* Skip rows that do not begin with a host's nonce. */
                if (nonce.size < STORE_NONCE_SIZE)
                        continue;
                list->items_count++;
                memcpy(item->nonce, nonce.data, STORE_NONCE_SIZE);
                item->age_ms = s->now_ms > at_ms ? s->now_ms - at_ms : 0;
                item->document = arena_copy(arena, column_span(&q, 2));
        }
        query_end(&q);
        if (list->kind == DOCUMENT_STATUS)
                totals_list(s, list);
}
