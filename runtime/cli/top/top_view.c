/* top_view.c: the screen: head, pages, title, the lines of the page around the selected one, what is asked or said. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/units.h"
#include "cli/top/top.h"
#include "view/json.h"
#include "view/text.h"

#define FRESH_MS 10000u /* what is younger is live */

/* --- one line --- */

/* How many bytes the character at `at` has.  What is shown is UTF-8 by now. */
static size_t character_size(const char *at)
{
        size_t size = 1;
        while ((at[size] & 0xc0) == 0x80)
                size++;
        return size;
}

/* Whether it would act on the terminal: C0, DEL, or C1 as UTF-8.  All texts were escaped where they were taken from
 * the store; this holds even if one was not. */
static bool is_control(const char *at)
{
        unsigned char byte = (unsigned char)*at;
        return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && (unsigned char)at[1] < 0xa0) || (byte & 0xc0) == 0x80;
}

static void put_cut(struct buffer *to, const char *text, size_t columns)
{
        size_t left = 0;
        for (const char *at = text; *at; at += character_size(at))
                left++;
        bool is_cut = left > columns;
        size_t shown = is_cut && columns ? columns - 1 : min_u64(left, columns);
        for (; shown && *text; shown--) {
                size_t size = character_size(text);
                bool is_bad = is_control(text);
                buffer_put(to, is_bad ? "?" : text, is_bad ? 1 : size);
                text += size;
        }
        if (is_cut && columns)
                buffer_printf(to, "…");
}

static void paint(struct buffer *to, const struct top_line *line, const char *mark, const struct top_size *size)
{
        bool is_selected = *mark == '>';
        size_t columns = size->columns > strlen(mark) ? size->columns - strlen(mark) : 0;
        tone_begin(to, line->tone, size->has_color);
        if (is_selected && size->has_color)
                buffer_printf(to, "\033[7m");
        buffer_put(to, mark, strlen(mark));
        put_cut(to, line->text, columns);
        if (is_selected && size->has_color && line->tone == TONE_PLAIN)
                buffer_printf(to, "\033[0m");
        tone_end(to, line->tone, size->has_color);
        buffer_put(to, "\n", 1);
}

/* How many bytes of the text stand on one line: it is broken behind a space, if there is one. */
static size_t line_size(const char *text, size_t columns)
{
        size_t size = 0;
        size_t broken = 0;
        for (size_t n = 0; n < columns && text[size]; n++) {
                size += character_size(text + size);
                if (text[size - 1] == ' ')
                        broken = size;
        }
        return text[size] && broken ? broken : size;
}

/* What is wider goes on in the next line. */
static void wrap(struct top_lines *lines, size_t columns)
{
        struct top_lines wrapped = { 0 };
        for (size_t i = 0; i < lines->count; i++) {
                const char *text = lines->list[i].text;
                do {
                        struct buffer part = { 0 };
                        size_t size = line_size(text, columns);
                        buffer_put(&part, text, size);
                        top_line_add(&wrapped, lines->list[i].tone, &part);
                        text += size;
                } while (*text && columns);
        }
        top_lines_free(lines);
        *lines = wrapped;
}

/* --- above the list --- */

static void add_head(struct top_lines *lines, const struct top_state *state, const struct top_data *data)
{
        char age[UNITS_TEXT_MAX];
        struct buffer line = { 0 };
        text_put_between(&line, "quiver top  ", view_json_get_text(data->status, "app"), "  ");
        if (!data->status)
                buffer_printf(&line, "nothing is known yet");
        else if (data->error.size || data->age_ms >= FRESH_MS)
                buffer_printf(&line, "%s old", units_format_ms(age, data->age_ms / 1000 * 1000));
        else
                buffer_printf(&line, "live");
        if (state->is_read_only)
                buffer_printf(&line, "  read-only");
        text_put_between(&line, "  ", view_json_get_text(data->status, "store"), "");
        top_line_add(lines, data->error.size ? TONE_WARN : TONE_PLAIN, &line);
}

static uint64_t count_of(const struct top_data *data, enum top_page page)
{
        const json_t *totals = json_object_get(data->status, "totals");
        if (page == TOP_KEYS)
                return view_json_get_number(totals, "parked_keys") + view_json_get_number(totals, "held_keys");
        if (page == TOP_DEAD)
                return view_json_get_number(totals, "dead");
        return page == TOP_OVERVIEW ? json_array_size(json_object_get(data->status, "problems")) : 0;
}

static void add_pages(struct top_lines *lines, const struct top_state *state, const struct top_data *data)
{
        struct buffer line = { 0 };
        for (unsigned page = 0; page < TOP_PAGES; page++) {
                bool is_it = page == state->page;
                uint64_t count = count_of(data, (enum top_page)page);
                buffer_printf(&line, "%s%u %s", is_it ? "[" : " ", page + 1, top_page_names[page]);
                if (count)
                        buffer_printf(&line, " %" PRIu64, count);
                buffer_printf(&line, is_it ? "]  " : "   ");
        }
        top_line_add(lines, TONE_PLAIN, &line);
}

static void put_rate(struct buffer *to, const json_t *rates, const char *name)
{
        double rate = json_number_value(json_object_get(rates, name));
        buffer_printf(to, rate < 10 && rate > 0 ? "  %s %.1f" : "  %s %.0f", name, rate);
}

static void add_totals(struct top_lines *lines, const struct top_data *data)
{
        char age[UNITS_TEXT_MAX];
        const json_t *totals = json_object_get(data->status, "totals");
        const json_t *rates = json_object_get(data->status, "rates");
        struct buffer line = { 0 };
        buffer_printf(&line, "waiting %" PRIu64 "  running %" PRIu64 "  oldest %s  dead %" PRIu64,
                view_json_get_number(totals, "waiting"), view_json_get_number(totals, "running"),
                text_age(age, view_json_get_number(totals, "oldest_ms")), view_json_get_number(totals, "dead"));
        top_line_add(lines, TONE_PLAIN, &line);
        buffer_printf(&line, "per second:");
        put_rate(&line, rates, "done");
        put_rate(&line, rates, "failed");
        put_rate(&line, rates, "retried");
        top_line_add(lines, TONE_PLAIN, &line);
}

static void add_top(struct top_lines *lines, const struct top_state *state, const struct top_data *data)
{
        struct buffer line = { 0 };
        add_head(lines, state, data);
        add_pages(lines, state, data);
        if (!data->status)
                return;
        if (state->page == TOP_OVERVIEW)
                add_totals(lines, data);
        top_title(&line, state, data);
        top_line_add(lines, TONE_PLAIN, &line);
        top_line_add(lines, TONE_PLAIN, &line);
}

/* --- below it --- */

static void add_bottom(struct top_lines *lines, const struct top_state *state, const struct top_data *data, size_t rows,
        size_t columns)
{
        static const char *const acts[TOP_PAGES] = { "p pause/resume  ", "h hold  u unhold  ", "", "", "r requeue  " };
        struct buffer line = { 0 };
        if (state->mode == TOP_ASK)
                top_question(&line, &state->asked);
        else if (data->error.size)
                text_put_bytes(&line, (struct span){ (const char *)data->error.data, data->error.size }, 1024);
        else if (state->message.size)
                buffer_put(&line, state->message.data, state->message.size);
        else if (rows && state->mode == TOP_LIST)
                buffer_printf(&line, "row %zu of %zu", state->selected + 1, rows);
        enum tone tone = state->mode == TOP_ASK || data->error.size ? TONE_WARN : TONE_PLAIN;
        top_line_add(lines, tone, &line);
        wrap(lines, columns);
        if (state->mode == TOP_FILTER || state->filter.size) {
                buffer_printf(&line, "filter: ");
                text_put_bytes(&line, (struct span){ (const char *)state->filter.data, state->filter.size }, 256);
                buffer_printf(
                        &line, state->mode == TOP_FILTER ? "_   Enter keeps it, Esc clears it" : "   / changes it");
        } else if (state->mode == TOP_LIST) {
                buffer_printf(&line, "%ss sort: %s  / filter  Enter detail  ? help  q quit",
                        state->is_read_only ? "" : acts[state->page], top_sort_name(state));
        } else if (state->mode != TOP_ASK) {
                buffer_printf(&line, "Esc back  q quit");
        }
        top_line_add(lines, TONE_FAINT, &line);
}

/* --- the list --- */

/* Where what is shown of `count` lines begins, so that line `at` is among them. */
static size_t begin_of(size_t count, size_t room, size_t at)
{
        if (count <= room || at < room)
                return 0;
        return min_u64(at - room + 1, count - room);
}

static void put_page(struct buffer *to, const struct top_lines *page, const struct top_state *state, size_t room,
        const struct top_size *size)
{
        size_t heads = 0;
        size_t at = 0;
        bool is_list = state->mode != TOP_DETAIL && state->mode != TOP_HELP;
        /* The titles stay where they are. */
        while (is_list && heads < page->count && !page->list[heads].is_row)
                heads++;
        heads = heads < page->count ? min_u64(heads, room) : 0;
        for (size_t i = heads; i < page->count; i++)
                if (page->list[i].is_row && page->list[i].row == state->selected)
                        at = i - heads;
        size_t begin = is_list ? heads + begin_of(page->count - heads, room - heads, at) : state->scroll;
        for (size_t i = 0; i < heads; i++)
                paint(to, &page->list[i], "  ", size);
        for (size_t i = begin; i < page->count && i < begin + room - heads; i++) {
                bool is_selected = page->list[i].is_row && page->list[i].row == state->selected;
                paint(to, &page->list[i], is_selected ? "> " : "  ", size);
        }
}

void top_view(struct buffer *to, struct top_state *state, const struct top_data *data, const json_t *rows,
        const struct top_size *size)
{
        struct top_lines top = { 0 };
        struct top_lines page = { 0 };
        struct top_lines bottom = { 0 };
        struct top_line blank = { .text = (char[]){ 0 } };
        if (state->mode == TOP_HELP)
                top_help_lines(&page, state->is_read_only);
        else if (state->mode == TOP_DETAIL)
                top_detail_lines(&page, state, data, rows);
        else if (data->status)
                top_page_lines(&page, state, rows);
        if (state->mode == TOP_HELP || state->mode == TOP_DETAIL)
                wrap(&page, size->columns > 2 ? size->columns - 2 : 1);
        add_top(&top, state, data);
        add_bottom(&bottom, state, data, json_array_size(rows), size->columns);
        size_t lower = min_u64(bottom.count, size->lines);
        size_t upper = min_u64(top.count, size->lines - lower);
        size_t room = size->lines - lower - upper;
        state->scroll = min_u64(state->scroll, page.count > room ? page.count - room : 0);
        for (size_t i = 0; i < upper; i++)
                paint(to, &top.list[i], "", size);
        put_page(to, &page, state, room, size);
        for (size_t i = page.count; i < room; i++)
                paint(to, &blank, "", size);
        for (size_t i = 0; i < lower; i++)
                paint(to, &bottom.list[i], "", size);
        top_lines_free(&top);
        top_lines_free(&page);
        top_lines_free(&bottom);
}

void top_print(struct buffer *to, const struct top_state *state, const struct top_data *data, const json_t *rows,
        const struct top_size *size)
{
        struct top_lines lines = { 0 };
        struct buffer more = { 0 };
        add_top(&lines, state, data);
        top_page_lines(&lines, state, rows);
        size_t shown = lines.count;
        if (size->lines && lines.count > size->lines) {
                shown = size->lines - 1;
                buffer_printf(&more, "… and %zu lines more; all of it: quiver top --once | cat", lines.count - shown);
                top_line_add(&lines, TONE_FAINT, &more);
        }
        for (size_t i = 0; i < shown; i++)
                paint(to, &lines.list[i], "", size);
        if (shown < lines.count)
                paint(to, &lines.list[lines.count - 1], "", size);
        top_lines_free(&lines);
}
