/* text.h: bytes, times and names as text for people; nothing in it can control the terminal. */
#ifndef QUIVER_VIEW_TEXT_H
#define QUIVER_VIEW_TEXT_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"
#include "base/units.h"

#define TEXT_TIME_MAX 40

/* "2026-11-16 10:00:00.123Z"; the plain number for a year beyond 9999.  Returns `text`. */
const char *text_time(char text[TEXT_TIME_MAX], uint64_t unix_ms);

/* The age, or "-" if `ms` is 0. */
const char *text_age(char text[UNITS_TEXT_MAX], uint64_t ms);

/* "s" unless `count` is 1. */
const char *text_plural(uint64_t count);

/* Appends the bytes on one line, with control characters and invalid UTF-8 escaped (\n, \x00); at most `max` of them,
 * then the number of bytes left out. */
void text_put_bytes(struct buffer *to, struct span bytes, size_t max);

/* Appends the text, escaped in the same way, between two texts of ours; cut to 1 KiB. */
void text_put_between(struct buffer *to, const char *before, const char *text, const char *after);

/* Appends a line with a label in a column and the bytes. */
void text_put_field(struct buffer *to, const char *label, struct span bytes, size_t max);

/* Appends the text, escaped in the same way, cut after `max` columns and padded with spaces up to `width`.  A character
 * counts as one column.  Returns the number of columns. */
size_t text_put_column(struct buffer *to, struct span text, size_t width, size_t max);

/* Appends a word for a shell: quoted if necessary, as $'\x1b' if it is not printable. */
void text_put_word(struct buffer *to, struct span word);

#endif
