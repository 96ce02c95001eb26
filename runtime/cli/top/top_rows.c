/* top_rows.c: which rows a page has, in which order, and which of them is selected. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "cli/top/top.h"
#include "view/json.h"

#define SORTS_MAX 7u

const char *const top_page_names[TOP_PAGES] = { "overview", "keys", "shards", "members", "dead" };

static const struct top_order {
        const char *name;
        const char *member; /* NULL: there are no more */
        bool is_text;       /* ascending; numbers have the largest first */
        bool is_ascending;
} orders[TOP_PAGES][SORTS_MAX] = {
        [TOP_OVERVIEW] = { { "name", "name", true, true }, { "waiting", "waiting", false, false },
                { "running", "running", false, false }, { "dead", "dead", false, false },
                { "oldest", "oldest_ms", false, false }, { "done/s", "done_rate", false, false },
                { "slowest", "run_p99_ms", false, false } },
        /* By their names the states are held, named, parked, waiting: a person comes first. */
        [TOP_KEYS] = { { "state", "state", true, true }, { "busiest", "tasks", false, false },
                { "longest", "since_ms", false, true }, { "key", "key", true, true } },
        [TOP_SHARDS] = { { "shard", "shard", false, true }, { "waiting", "waiting", false, false },
                { "oldest", "oldest_ms", false, false }, { "dead", "dead", false, false },
                { "owner", "host", true, true } },
        [TOP_MEMBERS] = { { "name", "name", true, true }, { "shards", "shards", false, false },
                { "heard of", "age_ms", false, false }, { "running", "running", false, false } },
        [TOP_DEAD] = { { "tasks", "tasks", false, false }, { "handler", "handler", true, true },
                { "error", "error", true, true } },
};

/* --- state --- */

void top_state_init(struct top_state *state)
{
        *state = (struct top_state){ .page = state->page, .is_read_only = state->is_read_only };
}

void top_state_free(struct top_state *state)
{
        top_forget(state);
        buffer_free(&state->filter);
        buffer_free(&state->identity);
        buffer_free(&state->message);
}

void top_data_free(struct top_data *data)
{
        json_decref(data->status);
        json_decref(data->keys);
        buffer_free(&data->detail);
        buffer_free(&data->error);
}

unsigned top_sorts(enum top_page page)
{
        unsigned count = 0;
        while (count < SORTS_MAX && orders[page][count].member)
                count++;
        return count;
}

const char *top_sort_name(const struct top_state *state)
{
        return orders[state->page][state->sort[state->page]].name;
}

/* --- one row --- */

bool top_is_problem(const json_t *item)
{
        return json_object_get(item, "level") != NULL;
}

void top_bytes(const json_t *item, const char *name, struct buffer *to)
{
        char coded[64];
        const json_t *text = json_object_get(item, name);
        if (json_is_string(text)) {
                buffer_put(to, json_string_value(text), json_string_length(text));
                return;
        }
        (void)snprintf(coded, sizeof(coded), "%s_base64", name);
        text = json_object_get(item, coded);
        if (json_is_string(text))
                (void)view_base64_decode(json_string_value(text), json_string_length(text), to);
}

/* What stays the same of a row while its numbers change. */
static void put_identity(struct buffer *to, enum top_page page, const json_t *item)
{
        static const char *const members[TOP_PAGES][3] = {
                [TOP_OVERVIEW] = { "kind", "handler", "name" },
                [TOP_KEYS] = { "key" },
                [TOP_SHARDS] = { "shard" },
                [TOP_MEMBERS] = { "nonce" },
                [TOP_DEAD] = { "handler", "reason", "error" },
        };
        buffer_printf(to, "%d", (int)page);
        for (unsigned i = 0; i < 3 && members[page][i]; i++) {
                const json_t *value = json_object_get(item, members[page][i]);
                buffer_put(to, "\n", 1);
                if (json_is_integer(value))
                        buffer_printf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                else
                        top_bytes(item, members[page][i], to);
        }
}

/* Any text of it has the filter's in it. */
static bool fits(const struct top_state *state, const json_t *item)
{
        const char *name;
        json_t *value;
        if (!state->filter.size)
                return true;
        json_object_foreach((json_t *)(uintptr_t)item, name, value)
        {
                if (json_is_string(value) && memmem(json_string_value(value), json_string_length(value),
                                                     state->filter.data, state->filter.size))
                        return true;
        }
        return false;
}

/* --- order --- */

struct top_placed {
        json_t *item;
        size_t place;
        const struct top_order *order;
};

static double number_of(const struct top_placed *placed, const char *member)
{
        return json_number_value(json_object_get(placed->item, member));
}

static int compare_numbers(double a, double b, bool is_ascending)
{
        return is_ascending ? (a > b) - (a < b) : (a < b) - (a > b);
}

static int compare(const void *a, const void *b)
{
        const struct top_placed *x = a;
        const struct top_placed *y = b;
        const char *member = x->order->member;
        int r = x->order->is_text ? strcmp(view_json_get_text(x->item, member), view_json_get_text(y->item, member))
                                  : compare_numbers(number_of(x, member), number_of(y, member), x->order->is_ascending);
        if (!r)
                r = compare_numbers(number_of(x, "tasks"), number_of(y, "tasks"), false);
        return r ? r : compare_numbers((double)x->place, (double)y->place, true);
}

static void add_sorted(json_t *rows, const struct top_state *state, const json_t *from)
{
        struct top_placed *placed = memory_zero(json_array_size(from), sizeof(*placed));
        size_t count = 0;
        size_t i;
        json_t *item;
        json_array_foreach(from, i, item)
        {
                if (fits(state, item))
                        placed[count++] =
                                (struct top_placed){ item, i, &orders[state->page][state->sort[state->page]] };
        }
        qsort(placed, count, sizeof(*placed), compare);
        for (i = 0; i < count; i++)
                (void)json_array_append(rows, placed[i].item);
        free(placed);
}

/* --- the list --- */

static void find_selected(struct top_state *state, const json_t *rows)
{
        size_t i;
        const json_t *item;
        json_array_foreach(rows, i, item)
        {
                struct buffer identity = { 0 };
                put_identity(&identity, state->page, item);
                bool is_it = identity.size == state->identity.size &&
                             !memcmp(identity.data, state->identity.data, identity.size);
                buffer_free(&identity);
                if (is_it) {
                        state->selected = i;
                        return;
                }
        }
        top_select(state, rows, state->selected);
}

json_t *top_rows(struct top_state *state, const struct top_data *data)
{
        static const char *const lists[TOP_PAGES] = { "handlers", NULL, "shards", "members", "dead" };
        json_t *rows = json_array();
        const json_t *from = lists[state->page] ? json_object_get(data->status, lists[state->page]) : data->keys;
        size_t i;
        json_t *problem;
        /* Problems have their own order: the worst first. */
        json_array_foreach(json_object_get(state->page == TOP_OVERVIEW ? data->status : NULL, "problems"), i, problem)
        {
                if (fits(state, problem))
                        (void)json_array_append(rows, problem);
        }
        add_sorted(rows, state, from);
        find_selected(state, rows);
        return rows;
}

void top_select(struct top_state *state, const json_t *rows, size_t row)
{
        size_t count = json_array_size(rows);
        state->selected = count ? min_u64(row, count - 1) : 0;
        buffer_clear(&state->identity);
        if (count)
                put_identity(&state->identity, state->page, json_array_get(rows, state->selected));
}

json_t *top_selected(const struct top_state *state, const json_t *rows)
{
        return json_array_get(rows, state->selected);
}
