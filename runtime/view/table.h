/* table.h: rows of cells as text, each column as wide as its content.
 *
 * Cells cannot control the terminal: they are escaped as in text_put_bytes(). */
#ifndef QUIVER_VIEW_TABLE_H
#define QUIVER_VIEW_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

#define TABLE_COLUMNS 16u

/* The meaning of a colour. */
enum tone { TONE_PLAIN, TONE_GOOD, TONE_WARN, TONE_BAD, TONE_FAINT };

/* Appends the escape sequences that begin and end a tone; nothing without colours. */
void tone_begin(struct buffer *to, enum tone tone, bool has_color);
void tone_end(struct buffer *to, enum tone tone, bool has_color);

struct table_cell {
        char *text; /* NULL: empty */
        size_t columns;
        enum tone tone;
};

struct table_row {
        struct table_cell cells[TABLE_COLUMNS];
        uint32_t cells_count;
        char *note; /* lines below the row, each with its newline; NULL: none */
};

/* Zero-initialise and set has_color. */
struct table {
        bool has_color;
        struct {
                const char *title;
                bool is_right;
                size_t max; /* wider texts are cut */
        } columns[TABLE_COLUMNS];
        uint32_t columns_count;
        struct table_row *rows;
        size_t rows_count, rows_room;
};

/* Adds a column; `title` must live as long as the table. max 0: any width. */
void table_text_column(struct table *table, const char *title, size_t max);
void table_number_column(struct table *table, const char *title);

void table_row(struct table *table);
/* Fills the next cell of the last row. */
void table_put(struct table *table, enum tone tone, struct span text);
void table_put_text(struct table *table, enum tone tone, const char *text);
void table_put_number(struct table *table, enum tone tone, uint64_t number);
/* Fills the next cell with the age, or "-" if it is 0. */
void table_put_age(struct table *table, enum tone tone, uint64_t ms);
/* Adds the caller's own lines below the last row. */
void table_note(struct table *table, const char *lines);

/* Prints the titles and all rows. */
void table_print(const struct table *table, struct buffer *to);
void table_free(struct table *table);

#endif
