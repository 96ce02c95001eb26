/* top_pages.c: what each page says, as lines: lists, one row in detail, the help. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/top/top.h"
#include "view/json.h"
#include "view/text.h"

#define NAME_SHOWN  18u
#define STATE_SHOWN 11u
#define TEXT_SHOWN  400u
#define VALUE_SHOWN 4096u

/* --- lines --- */

void top_line_add(struct top_lines *lines, enum tone tone, struct buffer *text)
{
        if (lines->count == lines->room) {
                lines->room = lines->room ? 2 * lines->room : 64;
                lines->list = memory_resize(lines->list, lines->room * sizeof(*lines->list));
        }
        lines->list[lines->count++] = (struct top_line){ .text = memory_text(buffer_text(text)), .tone = tone };
        buffer_free(text);
}

void top_lines_free(struct top_lines *lines)
{
        for (size_t i = 0; i < lines->count; i++)
                free(lines->list[i].text);
        free(lines->list);
        *lines = (struct top_lines){ 0 };
}

static void add_text(struct top_lines *lines, enum tone tone, const char *text)
{
        struct buffer line = { 0 };
        buffer_printf(&line, "%s", text);
        top_line_add(lines, tone, &line);
}

/* The lines of a text that is escaped already. */
static void add_lines(struct top_lines *lines, enum tone tone, struct buffer *text)
{
        char *rest = (char *)(uintptr_t)buffer_text(text);
        for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
                if (rest || *line)
                        add_text(lines, tone, line);
        buffer_free(text);
}

/* --- titles --- */

static uint64_t count_keys(const struct top_data *data, const char *state)
{
        size_t i;
        const json_t *key;
        uint64_t count = 0;
        json_array_foreach(data->keys, i, key)
        {
                count += !strcmp(view_json_get_text(key, "state"), state);
        }
        return count;
}

static void put_keys_title(struct buffer *to, const struct top_data *data)
{
        size_t seen = json_array_size(data->keys);
        buffer_printf(to, "%" PRIu64 " key%s wait%s: ", data->keys_total, text_plural(data->keys_total),
                data->keys_total == 1 ? "s" : "");
        if (seen < data->keys_total)
                buffer_printf(to, "of the first %zu, ", seen);
        buffer_printf(
                to, "%" PRIu64 " parked, %" PRIu64 " held.", count_keys(data, "parked"), count_keys(data, "held"));
}

void top_title(struct buffer *to, const struct top_state *state, const struct top_data *data)
{
        const json_t *totals = json_object_get(data->status, "totals");
        size_t problems = json_array_size(json_object_get(data->status, "problems"));
        uint64_t unowned = view_json_get_number(totals, "unowned");
        uint64_t dead = view_json_get_number(totals, "dead");
        size_t members = json_array_size(json_object_get(data->status, "members"));
        size_t groups = json_array_size(json_object_get(data->status, "dead"));
        switch (state->page) {
        case TOP_OVERVIEW:
                if (problems)
                        buffer_printf(to, "%zu thing%s to look at, the worst first.", problems, text_plural(problems));
                else
                        buffer_printf(to, "All is well.");
                break;
        case TOP_KEYS:
                if (!data->keys_total)
                        buffer_printf(to, "No key waits for a retry, a person or its turn.");
                else
                        put_keys_title(to, data);
                break;
        case TOP_SHARDS:
                if (unowned)
                        buffer_printf(to, "%" PRIu64 " of %zu shards %s no owner.", unowned,
                                json_array_size(json_object_get(data->status, "shards")),
                                unowned == 1 ? "has" : "have");
                else
                        buffer_printf(to, "All %zu shards have an owner.",
                                json_array_size(json_object_get(data->status, "shards")));
                break;
        case TOP_MEMBERS:
                if (members)
                        buffer_printf(to, "%zu host%s running.", members, members == 1 ? " is" : "s are");
                else
                        buffer_printf(to, "No host is running. Start one: quiver run");
                break;
        case TOP_DEAD:
                if (dead)
                        buffer_printf(to, "%" PRIu64 " task%s dead, by %zu cause%s.", dead, dead == 1 ? " is" : "s are",
                                groups, text_plural(groups));
                else
                        buffer_printf(to, "No task is dead.");
                break;
        case TOP_PAGES:
                break;
        }
}

/* --- lists --- */

static enum tone tone_of(const json_t *item)
{
        static const char *const bad[] = { "unavailable", "refused", "quarantined", "unserved" };
        static const char *const warn[] = { "paused", "held", "parked", "draining", "unready" };
        const char *level = view_json_get_text(item, "level");
        const char *state = view_json_get_text(item, "state");
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (!strcmp(state, bad[i]))
                        return TONE_BAD;
        for (size_t i = 0; i < sizeof(warn) / sizeof(warn[0]); i++)
                if (!strcmp(state, warn[i]))
                        return TONE_WARN;
        return !strcmp(level, "bad") ? TONE_BAD : *level ? TONE_WARN : TONE_PLAIN;
}

static void put_bytes(struct table *table, const json_t *item, const char *name)
{
        struct buffer bytes = { 0 };
        top_bytes(item, name, &bytes);
        table_put(table, TONE_PLAIN, (struct span){ buffer_text(&bytes), bytes.size });
        buffer_free(&bytes);
}

#define COLUMNS_MAX 10u

static const struct top_column {
        const char *title; /* NULL: there are no more */
        const char *member;
        enum { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_ESTIMATE, COLUMN_AGE, COLUMN_RATE, COLUMN_DURATION } kind;
        size_t max; /* of a text */
} columns[TOP_PAGES][COLUMNS_MAX] = {
        /* What matters most stands left: a narrow screen cuts the others. */
        [TOP_OVERVIEW] = { { "handler", "name", COLUMN_TEXT, NAME_SHOWN },
                { "state", "state", COLUMN_TEXT, STATE_SHOWN }, { "waits", "waiting", COLUMN_ESTIMATE, 0 },
                { "oldest", "oldest_ms", COLUMN_AGE, 0 }, { "runs", "running", COLUMN_NUMBER, 0 },
                { "done/s", "done_rate", COLUMN_RATE, 0 }, { "fail/s", "failed_rate", COLUMN_RATE, 0 },
                { "dead", "dead", COLUMN_NUMBER, 0 }, { "p50", "run_p50_ms", COLUMN_DURATION, 0 },
                { "p99", "run_p99_ms", COLUMN_DURATION, 0 } },
        [TOP_KEYS] = { { "state", "state", COLUMN_TEXT, STATE_SHOWN }, { "waiting", "tasks", COLUMN_NUMBER, 0 },
                { "due in", "due_in_ms", COLUMN_AGE, 0 }, { "key", "key", COLUMN_TEXT, 2 * NAME_SHOWN },
                { "reason", "reason", COLUMN_TEXT, TEXT_SHOWN } },
        [TOP_SHARDS] = { { "shard", "shard", COLUMN_NUMBER, 0 }, { "owner", "host", COLUMN_TEXT, NAME_SHOWN },
                { "epoch", "epoch", COLUMN_NUMBER, 0 }, { "waiting", "waiting", COLUMN_NUMBER, 0 },
                { "running", "running", COLUMN_NUMBER, 0 }, { "delayed", "delayed", COLUMN_NUMBER, 0 },
                { "dead", "dead", COLUMN_NUMBER, 0 }, { "oldest", "oldest_ms", COLUMN_AGE, 0 } },
        [TOP_MEMBERS] = { { "host", "name", COLUMN_TEXT, NAME_SHOWN }, { "state", "state", COLUMN_TEXT, STATE_SHOWN },
                { "shards", "shards", COLUMN_NUMBER, 0 }, { "running", "running", COLUMN_NUMBER, 0 },
                { "seats", "seats", COLUMN_NUMBER, 0 }, { "done/s", "done_rate", COLUMN_RATE, 0 },
                { "heard of", "age_ms", COLUMN_AGE, 0 }, { "pid", "pid", COLUMN_NUMBER, 0 },
                { "version", "version", COLUMN_TEXT, STATE_SHOWN }, { "machine", "machine", COLUMN_TEXT, NAME_SHOWN } },
        [TOP_DEAD] = { { "tasks", "tasks", COLUMN_NUMBER, 0 }, { "handler", "handler", COLUMN_TEXT, NAME_SHOWN },
                { "reason", "reason", COLUMN_TEXT, STATE_SHOWN }, { "error", "error", COLUMN_TEXT, TEXT_SHOWN } },
};

static const char *duration(char text[UNITS_TEXT_MAX], double ms)
{
        if (ms >= 10)
                return units_format_ms(text, (uint64_t)ms);
        if (ms <= 0)
                return "-";
        (void)snprintf(text, UNITS_TEXT_MAX, ms < 1 ? "%.2fms" : "%.1fms", ms);
        return text;
}

static const char *rate_text(char text[UNITS_TEXT_MAX], double rate)
{
        (void)snprintf(text, UNITS_TEXT_MAX, rate > 0 && rate < 10 ? "%.1f" : "%.0f", rate);
        return text;
}

static void put_cell(struct table *table, const struct top_column *column, const json_t *item)
{
        char text[UNITS_TEXT_MAX];
        uint64_t number = view_json_get_number(item, column->member);
        double real = json_number_value(json_object_get(item, column->member));
        switch (column->kind) {
        case COLUMN_TEXT:
                put_bytes(table, item, column->member);
                break;
        case COLUMN_AGE:
                table_put_age(table, TONE_PLAIN, number);
                break;
        case COLUMN_RATE:
                table_put_text(table, TONE_PLAIN, rate_text(text, real));
                break;
        case COLUMN_DURATION:
                table_put_text(table, TONE_PLAIN, duration(text, real));
                break;
        case COLUMN_NUMBER:
        case COLUMN_ESTIMATE:
                (void)snprintf(text, sizeof(text), "%s%" PRIu64,
                        column->kind == COLUMN_ESTIMATE && json_object_get(item, "estimated") ? "~" : "", number);
                table_put_text(table, TONE_PLAIN, text);
                break;
        }
}

static void add_problem(struct top_lines *lines, const json_t *item, size_t row)
{
        struct buffer line = { 0 };
        bool is_bad = !strcmp(view_json_get_text(item, "level"), "bad");
        text_put_between(&line, is_bad ? "!! " : "!  ", view_json_get_text(item, "text"), "");
        top_line_add(lines, tone_of(item), &line);
        lines->list[lines->count - 1].is_row = true;
        lines->list[lines->count - 1].row = row;
        /* What is in a command is a word for a shell already: escaped once more it would be another word. */
        buffer_printf(&line, "     %s", view_json_get_text(item, "command"));
        top_line_add(lines, TONE_FAINT, &line);
}

/* What is no problem, under its titles. */
static void add_table(struct top_lines *lines, enum top_page page, const json_t *rows, size_t first)
{
        struct table table = { 0 };
        struct buffer text = { 0 };
        const struct top_column *shown = columns[page];
        size_t count = 0;
        for (; count < COLUMNS_MAX && shown[count].title; count++)
                if (shown[count].kind == COLUMN_TEXT)
                        table_text_column(&table, shown[count].title, shown[count].max);
                else
                        table_number_column(&table, shown[count].title);
        for (size_t row = first; row < json_array_size(rows); row++) {
                table_row(&table);
                for (size_t i = 0; i < count; i++)
                        put_cell(&table, &shown[i], json_array_get(rows, row));
        }
        table_print(&table, &text);
        table_free(&table);
        size_t before = lines->count;
        add_lines(lines, TONE_PLAIN, &text);
        for (size_t i = before; i < lines->count; i++) {
                size_t row = first + (i - before) - 1;
                lines->list[i].tone = i == before ? TONE_FAINT : tone_of(json_array_get(rows, row));
                lines->list[i].is_row = i > before;
                lines->list[i].row = i > before ? row : 0;
        }
}

void top_page_lines(struct top_lines *lines, const struct top_state *state, const json_t *rows)
{
        size_t row = 0;
        for (; top_is_problem(json_array_get(rows, row)); row++)
                add_problem(lines, json_array_get(rows, row), row);
        if (row)
                add_text(lines, TONE_PLAIN, "");
        if (row < json_array_size(rows))
                add_table(lines, state->page, rows, row);
        else if (!row && state->filter.size)
                add_text(lines, TONE_PLAIN, "Nothing here fits the filter.");
        else if (!row && state->page == TOP_OVERVIEW)
                add_text(
                        lines, TONE_PLAIN, "No handler is known. With a host running: quiver submit echo --wait world");
}

/* --- one row --- */

static bool ends_with(const char *name, const char *end)
{
        size_t size = strlen(name);
        return size > strlen(end) && !strcmp(name + size - strlen(end), end);
}

static void put_value(struct buffer *to, const char *name, const json_t *value)
{
        char text[UNITS_TEXT_MAX];
        size_t size = strlen(name);
        if (json_is_real(value)) {
                bool is_duration = ends_with(name, "_ms");
                double real = json_number_value(value);
                buffer_printf(to, "%-12.*s %s%s", (int)(is_duration ? size - 3 : size), name,
                        is_duration ? duration(text, real) : rate_text(text, real), is_duration ? "" : " per second");
                return;
        }
        bool is_age = !strcmp(name, "oldest_ms") || !strcmp(name, "age_ms") || !strcmp(name, "due_in_ms") ||
                      !strcmp(name, "unavailable_ms");
        if (is_age) {
                buffer_printf(
                        to, "%-12.*s %s", (int)size - 3, name, text_age(text, (uint64_t)json_integer_value(value)));
                return;
        }
        text_put_column(to, span_of_text(name), 12, 40);
        buffer_put(to, " ", 1);
        char *dumped = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        struct span shown =
                dumped ? span_of_text(dumped) : (struct span){ json_string_value(value), json_string_length(value) };
        text_put_bytes(to, shown, VALUE_SHOWN);
        free(dumped);
}

/* What became of the versions of a handler, a line each. */
static void add_versions(struct top_lines *lines, const json_t *versions)
{
        char time[TEXT_TIME_MAX];
        struct buffer line = { 0 };
        size_t i;
        const json_t *version;
        add_text(lines, TONE_PLAIN, "");
        add_text(lines, TONE_PLAIN, "versions, the latest of each host first:");
        json_array_foreach(versions, i, version)
        {
                bool is_bad = !strcmp(view_json_get_text(version, "outcome"), "refused") ||
                              !strcmp(view_json_get_text(version, "outcome"), "rolled back");
                buffer_printf(&line, "%s", text_time(time, view_json_get_number(version, "at_ms")));
                text_put_between(&line, " ", view_json_get_text(version, "host"), "");
                buffer_printf(&line, " generation %" PRIu64, view_json_get_number(version, "generation"));
                text_put_between(&line, " ", view_json_get_text(version, "version"), "");
                text_put_between(&line, " ", view_json_get_text(version, "outcome"), "");
                text_put_between(&line, ", by ", view_json_get_text(version, "by"), "");
                text_put_between(&line, " ", view_json_get_text(version, "text"), "");
                top_line_add(lines, is_bad ? TONE_BAD : TONE_PLAIN, &line);
        }
}

void top_detail_lines(
        struct top_lines *lines, const struct top_state *state, const struct top_data *data, const json_t *rows)
{
        json_t *item = top_selected(state, rows);
        struct buffer line = { 0 };
        const char *name;
        json_t *value;
        if (state->page == TOP_KEYS && data->detail.size) {
                buffer_put(&line, data->detail.data, data->detail.size);
                add_lines(lines, TONE_PLAIN, &line);
                return;
        }
        json_object_foreach(item, name, value)
        {
                if (!strcmp(name, "versions"))
                        continue;
                put_value(&line, name, value);
                top_line_add(lines, TONE_PLAIN, &line);
        }
        if (json_object_get(item, "versions"))
                add_versions(lines, json_object_get(item, "versions"));
        if (state->page != TOP_DEAD || !item)
                return;
        add_text(lines, TONE_PLAIN, "");
        struct top_action action = { .verb = TOP_REQUEUE, .item = item };
        top_command(&line, &action);
        top_line_add(lines, TONE_FAINT, &line);
}

/* --- help --- */

void top_help_lines(struct top_lines *lines, bool is_read_only)
{
        static const char *const looking[] = {
                "1 2 3 4 5   overview, keys, shards, members, dead by cause",
                "Tab         the next of them; Shift-Tab the one before",
                "j k, arrows select a row; g the first, G the last; PgUp, PgDn",
                "Enter       the row in detail; Esc or Enter goes back",
                "s           another order",
                "/           show only rows that have a text; Enter keeps it, Esc clears it",
                "Space       look at the store now",
                "?           this help",
                "q           quit; Ctrl-Z stops it, fg goes on",
        };
        static const char *const acting[] = {
                "",
                "Each of these shows the command that it equals, and asks before it acts:",
                "p           overview: pause or resume the selected handler",
                "r           dead: requeue the tasks of the selected cause",
                "h u         keys: hold, unhold the selected key",
        };
        for (size_t i = 0; i < sizeof(looking) / sizeof(looking[0]); i++)
                add_text(lines, TONE_PLAIN, looking[i]);
        for (size_t i = 0; !is_read_only && i < sizeof(acting) / sizeof(acting[0]); i++)
                add_text(lines, TONE_PLAIN, acting[i]);
}
