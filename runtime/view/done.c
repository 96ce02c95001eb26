#include "view/done.h"

#include <inttypes.h>
#include <string.h>

#include "base/numbers.h"
#include "view/json.h"
#include "view/text.h"

#define HOSTS_SHOWN 3u
/* A larger age is invalid. */
#define AGO_MAX UINT64_C(0x7fffffffffff)

/* The elements of a task in its document. */
enum { AT_ID, AT_KIND, AT_ATTEMPT, AT_PID, AT_AGO, AT_RAN, AT_RESULT, AT_WORKER, AT_SEAT };
/* The elements of a kind. */
enum { AT_HANDLER, AT_GENERATION, AT_HASH };

void done_search_init(struct done_search *search, struct span id, uint64_t now_ms)
{
        *search = (struct done_search){ .id = id, .now_ms = now_ms, .hosts = json_array() };
}

void done_search_free(struct done_search *search)
{
        json_decref(search->found);
        json_decref(search->hosts);
        *search = (struct done_search){ 0 };
}

static uint64_t number_at(const json_t *list, size_t i)
{
        json_int_t value = json_integer_value(json_array_get(list, i));
        return value > 0 ? (uint64_t)value : 0;
}

static const char *text_at(const json_t *list, size_t i)
{
        const char *text = json_string_value(json_array_get(list, i));
        return text ? text : "";
}

static uint64_t before(uint64_t now_ms, uint64_t ago_ms)
{
        return now_ms - min_u64(now_ms, ago_ms);
}

static json_t *make(const struct done_search *search, const json_t *document, const json_t *task, uint64_t ago_ms)
{
        const json_t *kind = json_array_get(json_object_get(document, "kinds"), (size_t)number_at(task, AT_KIND));
        json_t *o = json_object();
        view_json_span(o, "id", search->id);
        view_json_set_text(o, "state", "done");
        view_json_set_text(o, "host", view_json_get_text(document, "name"));
        view_json_set_text(o, "handler", text_at(kind, AT_HANDLER));
        view_json_number(o, "generation", number_at(kind, AT_GENERATION));
        if (*text_at(task, AT_WORKER)) {
                view_json_set_text(
                        o, json_is_true(json_array_get(task, AT_SEAT)) ? "seat" : "worker", text_at(task, AT_WORKER));
        } else {
                view_json_set_text(o, "hash", text_at(kind, AT_HASH));
                view_json_number(o, "pid", number_at(task, AT_PID));
        }
        view_json_number(o, "attempt", number_at(task, AT_ATTEMPT));
        view_json_number(o, "at_ms", before(search->now_ms, ago_ms));
        view_json_number(o, "ago_ms", ago_ms);
        view_json_number(o, "ran_ms", number_at(task, AT_RAN));
        if (json_is_integer(json_array_get(task, AT_RESULT)))
                view_json_number(o, "result_bytes", number_at(task, AT_RESULT));
        return o;
}

/* A host's latest document replaces what was known of the host. */
static json_t *host_ensure(struct done_search *search, const char *name)
{
        size_t i;
        json_t *host;
        json_array_foreach(search->hosts, i, host)
        {
                if (!strcmp(view_json_get_text(host, "name"), name))
                        return host;
        }
        host = json_object();
        view_json_set_text(host, "name", name);
        (void)json_array_append_new(search->hosts, host);
        return host;
}

static void add(struct done_search *search, const json_t *document, uint64_t age_ms)
{
        size_t i;
        const json_t *task;
        const char *name = view_json_get_text(document, "name");
        if (!json_is_object(document) || !*name)
                return;
        uint64_t since_ms = min_u64(view_json_get_number(document, "since_ms"), AGO_MAX) + min_u64(age_ms, AGO_MAX);
        json_t *host = host_ensure(search, name);
        view_json_number(host, "since_ms", before(search->now_ms, since_ms));
        view_json_number(host, "until_ms", before(search->now_ms, age_ms));
        view_json_number(host, "kept", view_json_get_number(document, "kept"));
        json_array_foreach(json_object_get(document, "tasks"), i, task)
        {
                uint64_t ago_ms = min_u64(number_at(task, AT_AGO), AGO_MAX) + min_u64(age_ms, AGO_MAX);
                const json_t *id = json_array_get(task, AT_ID);
                if (!span_is(search->id, (struct span){ json_string_value(id), json_string_length(id) }))
                        continue;
                if (search->found && view_json_get_number(search->found, "ago_ms") <= ago_ms)
                        continue;
                json_decref(search->found);
                search->found = make(search, document, task, ago_ms);
        }
}

void done_search_add(struct done_search *search, const struct store_status *document)
{
        struct span text = document->document;
        json_t *said = json_loadb(text.size ? text.data : "", text.size, 0, NULL);
        add(search, said, document->age_ms);
        json_decref(said);
}

void done_search_add_now(struct done_search *search, const json_t *document)
{
        add(search, document, 0);
}

/* --- for people --- */

void done_as_text(struct buffer *to, const json_t *found)
{
        char text[UNITS_TEXT_MAX];
        char time[TEXT_TIME_MAX];
        text_put_between(to, "task         ", view_json_get_text(found, "id"), "\n");
        buffer_printf(to, "%-12s done %s ago, at %s\n", "state",
                units_format_ms(text, view_json_get_number(found, "ago_ms")),
                text_time(time, view_json_get_number(found, "at_ms")));
        const char *worker = view_json_get_text(found, "worker");
        const char *seat = view_json_get_text(found, "seat");
        if (*worker)
                text_put_between(to, "ran          on worker ", worker, " (via ");
        else
                buffer_printf(to, "%-12s on ", "ran");
        if (*seat)
                text_put_between(to, "", seat, NOTE_WHERE_SEAT);
        else
                text_put_between(to, "", view_json_get_text(found, "host"), *worker ? ")" : "");
        buffer_printf(to, ", attempt %" PRIu64, view_json_get_number(found, "attempt"));
        if (!*worker && !*seat) {
                buffer_printf(to, ", pid %" PRIu64 ", generation %" PRIu64, view_json_get_number(found, "pid"),
                        view_json_get_number(found, "generation"));
                text_put_between(to, ", plugin ", view_json_get_text(found, "hash"), "");
        }
        uint64_t ran_ms = view_json_get_number(found, "ran_ms");
        buffer_printf(to, ", for %s\n", ran_ms ? units_format_ms(text, ran_ms) : "less than 1ms");
        text_put_between(to, "handler      ", view_json_get_text(found, "handler"), "\n");
        if (json_object_get(found, "result_bytes"))
                buffer_printf(to, "%-12s %s\n", "result",
                        units_format_bytes(text, view_json_get_number(found, "result_bytes")));
        else
                buffer_printf(to, "%-12s none\n", "result");
}

void done_search_missing(struct buffer *to, const struct done_search *search)
{
        char time[TEXT_TIME_MAX];
        char age[UNITS_TEXT_MAX];
        size_t hosts = json_array_size(search->hosts);
        buffer_printf(to, "it was dropped, or done too long ago, or never was");
        for (size_t i = 0; i < hosts && i < HOSTS_SHOWN; i++) {
                const json_t *host = json_array_get(search->hosts, i);
                text_put_between(to, i ? "; " : " (", view_json_get_text(host, "name"), " remembers the last ");
                buffer_printf(to, "%" PRIu64 " that it did since %s", view_json_get_number(host, "kept"),
                        text_time(time, view_json_get_number(host, "since_ms")));
                uint64_t age_ms = before(search->now_ms, view_json_get_number(host, "until_ms"));
                if (age_ms)
                        buffer_printf(to, ", as of %s ago", units_format_ms(age, age_ms));
        }
        if (hosts > HOSTS_SHOWN)
                buffer_printf(to, "; and %zu hosts more", hosts - HOSTS_SHOWN);
        buffer_printf(to, hosts ? ")" : "; no host remembers what it did (store.done)");
}
