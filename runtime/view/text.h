/* text.h: bytes, times and names as text for people: nothing in them acts on the terminal. */
#ifndef QUIVER_VIEW_TEXT_H
#define QUIVER_VIEW_TEXT_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"
#include "base/units.h"

#define TEXT_TIME_MAX 40

/* "2026-11-16 10:00:00.123Z"; of a year that has no four digits, the number.  Returns `text`. */
const char *text_time(char text[TEXT_TIME_MAX], uint64_t unix_ms);

/* How old, or "-" if `ms` is 0: there is none.  Returns one of both. */
const char *text_age(char text[UNITS_TEXT_MAX], uint64_t ms);

/* "s" unless there is one. */
const char *text_plural(uint64_t count);

/* The bytes on one line, control characters and what is not UTF-8 escaped (\n, \x00); at most `max` bytes of them, and
 * then how many were left off. */
void text_put_bytes(struct buffer *to, struct span bytes, size_t max);

/* The text escaped in the same way, between two texts of ours; what is longer than 1 KiB is cut. */
void text_put_between(struct buffer *to, const char *before, const char *text, const char *after);

/* A line of a list of fields: the label in a column, and the bytes. */
void text_put_field(struct buffer *to, const char *label, struct span bytes, size_t max);

/* The text escaped in the same way, cut after `max` columns and filled with spaces up to `width`.  A character counts
 * as one column.  Returns how many columns it takes. */
size_t text_put_column(struct buffer *to, struct span text, size_t width, size_t max);

/* As a word for a shell: quoted where that is needed, as $'\x1b' where it is not printable. */
void text_put_word(struct buffer *to, struct span word);

#endif
