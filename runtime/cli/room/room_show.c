#include "cli/room/room_show.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/numbers.h"
#include "cli/print.h"
#include "view/json.h"
#include "view/table.h"
#include "view/text.h"

#define SHOWN_MAX (1u << 20) /* bytes of an entry on one line */

static void show_gap(const struct qv_client_room_page *page, const char *room, uint64_t asked, enum room_form form)
{
        if (form == ROOM_JSON) {
                json_t *o = json_object();
                (void)json_object_set_new(o, "gap", json_true());
                view_json_number(o, "asked", asked);
                view_json_number(o, "first", page->first);
                view_json_number(o, "last", page->last);
                cli_json_print(o);
        } else if (asked > page->last) {
                (void)fprintf(stderr,
                        "quiver room %s: number %" PRIu64 " was not given yet; the last is %" PRIu64
                        ": the room was made anew, or its store lost its last entries\n",
                        room, asked, page->last);
        } else {
                (void)fprintf(stderr, "quiver room %s: entries %" PRIu64 " to %" PRIu64 " are gone\n", room, asked,
                        page->first - 1);
        }
}

static void show_entry(const struct qv_client_room_entry *entry, enum room_form form)
{
        struct span bytes = { entry->data, entry->data_size };
        char at[TEXT_TIME_MAX];
        if (form == ROOM_RAW) {
                (void)fwrite(bytes.data, 1, bytes.size, stdout);
        } else if (form == ROOM_JSON) {
                json_t *o = json_object();
                view_json_number(o, "number", entry->number);
                view_json_number(o, "at_ms", entry->at_ms);
                view_json_span(o, "entry", bytes);
                cli_json_print(o);
        } else {
                (void)printf("%" PRIu64 "  %s  ", entry->number, text_time(at, entry->at_ms));
                cli_bytes_print(bytes, SHOWN_MAX);
                (void)putchar('\n');
        }
}

uint64_t room_page_show(
        const struct qv_client_room_page *page, const char *room, uint64_t asked, uint64_t max, enum room_form form)
{
        uint64_t count = min_u64(page->entries_count, max);
        if (page->is_gap)
                show_gap(page, room, asked, form);
        for (uint64_t i = 0; i < count; i++)
                show_entry(&page->entries[i], form);
        (void)fflush(stdout);
        return count;
}

static void show_json(const struct store_room *room)
{
        json_t *o = json_object();
        view_json_span(o, "name", room->name);
        view_json_number(o, "first", room->first);
        view_json_number(o, "last", room->last);
        view_json_number(o, "entries", room->last + 1 - room->first);
        view_json_number(o, "bytes", room->bytes);
        view_json_number(o, "max_entries", room->entries_max);
        view_json_number(o, "max_bytes", room->bytes_max);
        view_json_number(o, "max_age_ms", room->age_ms);
        cli_json_print(o);
}

void rooms_show(const struct kept_rooms *rooms, bool has_json)
{
        struct table table = { .has_color = cli_has_color() };
        struct buffer text = { 0 };
        char units[UNITS_TEXT_MAX];
        for (uint32_t i = 0; has_json && i < rooms->count; i++)
                show_json(&rooms->list[i]);
        if (has_json)
                return;
        table_text_column(&table, "ROOM", 0);
        table_number_column(&table, "ENTRIES");
        table_number_column(&table, "FIRST");
        table_number_column(&table, "LAST");
        table_number_column(&table, "SIZE");
        table_text_column(&table, "KEEPS", 0);
        for (uint32_t i = 0; i < rooms->count; i++) {
                const struct store_room *room = &rooms->list[i];
                struct buffer keeps = { 0 };
                table_row(&table);
                table_put(&table, TONE_PLAIN, room->name);
                table_put_number(&table, TONE_PLAIN, room->last + 1 - room->first);
                table_put_number(&table, TONE_PLAIN, room->first);
                table_put_number(&table, TONE_PLAIN, room->last);
                table_put_text(&table, TONE_PLAIN, units_format_bytes(units, room->bytes));
                buffer_printf(&keeps, "%" PRIu64 " entries, %s, ", room->entries_max,
                        units_format_bytes(units, room->bytes_max));
                buffer_printf(&keeps, "%s", units_format_ms(units, room->age_ms));
                table_put_text(&table, TONE_FAINT, buffer_text(&keeps));
                buffer_free(&keeps);
        }
        table_print(&table, &text);
        table_free(&table);
        cli_text_print(&text);
}
