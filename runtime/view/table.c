#include "view/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "view/text.h"

#define GAP "  "

static const char *const tone_signs[] = {
        [TONE_GOOD] = "\033[32m",
        [TONE_WARN] = "\033[33m",
        [TONE_BAD] = "\033[31m",
        [TONE_FAINT] = "\033[2m",
};

void tone_begin(struct buffer *to, enum tone tone, bool has_color)
{
        if (has_color && tone != TONE_PLAIN)
                buffer_put(to, tone_signs[tone], strlen(tone_signs[tone]));
}

void tone_end(struct buffer *to, enum tone tone, bool has_color)
{
        if (has_color && tone != TONE_PLAIN)
                buffer_put(to, "\033[0m", 4);
}

/* --- filling --- */

static void add_column(struct table *table, const char *title, bool is_right, size_t max)
{
        if (table->columns_count == TABLE_COLUMNS)
                return;
        table->columns[table->columns_count].title = title;
        table->columns[table->columns_count].is_right = is_right;
        table->columns[table->columns_count++].max = max ? max : SIZE_MAX;
}

void table_text_column(struct table *table, const char *title, size_t max)
{
        add_column(table, title, false, max);
}

void table_number_column(struct table *table, const char *title)
{
        add_column(table, title, true, 0);
}

void table_row(struct table *table)
{
        if (table->rows_count == table->rows_room) {
                table->rows_room = table->rows_room ? 2 * table->rows_room : 16;
                table->rows = memory_resize(table->rows, table->rows_room * sizeof(*table->rows));
        }
        table->rows[table->rows_count++] = (struct table_row){ 0 };
}

void table_put(struct table *table, enum tone tone, struct span text)
{
        struct table_row *row = &table->rows[table->rows_count - 1];
        if (row->cells_count == table->columns_count)
                return;
        size_t max = table->columns[row->cells_count].max;
        struct buffer shown = { 0 };
        size_t columns = text_put_column(&shown, text, 0, min_u64(max, 4096));
        row->cells[row->cells_count++] =
                (struct table_cell){ .text = memory_text(buffer_text(&shown)), .columns = columns, .tone = tone };
        buffer_free(&shown);
}

void table_put_text(struct table *table, enum tone tone, const char *text)
{
        table_put(table, tone, span_of_text(text));
}

void table_put_number(struct table *table, enum tone tone, uint64_t number)
{
        char text[32];
        (void)snprintf(text, sizeof(text), "%" PRIu64, number);
        table_put_text(table, tone, text);
}

void table_put_age(struct table *table, enum tone tone, uint64_t ms)
{
        char text[UNITS_TEXT_MAX];
        table_put_text(table, tone, text_age(text, ms));
}

void table_note(struct table *table, const char *lines)
{
        struct table_row *row = &table->rows[table->rows_count - 1];
        free(row->note);
        row->note = memory_text(lines);
}

/* --- printing --- */

static void put_cell(
        struct buffer *to, const struct table *table, uint32_t column, size_t width, const struct table_cell *cell)
{
        bool is_last = column + 1 == table->columns_count;
        bool is_right = table->columns[column].is_right;
        size_t fill = width > cell->columns ? width - cell->columns : 0;
        if (column)
                buffer_put(to, GAP, sizeof(GAP) - 1);
        for (size_t i = 0; is_right && i < fill; i++)
                buffer_put(to, " ", 1);
        tone_begin(to, cell->tone, table->has_color);
        buffer_put(to, cell->text ? cell->text : "", cell->text ? strlen(cell->text) : 0);
        tone_end(to, cell->tone, table->has_color);
        for (size_t i = 0; !is_right && !is_last && i < fill; i++)
                buffer_put(to, " ", 1);
}

/* Removes the spaces of an empty last cell. */
static void end_line(struct buffer *to)
{
        while (to->size && ((const char *)to->data)[to->size - 1] == ' ')
                to->size--;
        buffer_put(to, "\n", 1);
}

void table_print(const struct table *table, struct buffer *to)
{
        size_t widths[TABLE_COLUMNS];
        for (uint32_t i = 0; i < table->columns_count; i++) {
                widths[i] = strlen(table->columns[i].title);
                for (size_t n = 0; n < table->rows_count; n++)
                        widths[i] = max_u64(widths[i], table->rows[n].cells[i].columns);
                struct table_cell title = { .text = (char *)(uintptr_t)table->columns[i].title,
                        .columns = strlen(table->columns[i].title),
                        .tone = TONE_FAINT };
                put_cell(to, table, i, widths[i], &title);
        }
        end_line(to);
        for (size_t n = 0; n < table->rows_count; n++) {
                for (uint32_t i = 0; i < table->columns_count; i++)
                        put_cell(to, table, i, widths[i], &table->rows[n].cells[i]);
                end_line(to);
                if (table->rows[n].note)
                        buffer_put(to, table->rows[n].note, strlen(table->rows[n].note));
        }
}

void table_free(struct table *table)
{
        for (size_t n = 0; n < table->rows_count; n++) {
                for (uint32_t i = 0; i < table->columns_count; i++)
                        free(table->rows[n].cells[i].text);
                free(table->rows[n].note);
        }
        free(table->rows);
        *table = (struct table){ 0 };
}
