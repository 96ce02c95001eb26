/* text.h: cuts text between characters. */
#ifndef QUIVER_SQL_TEXT_H
#define QUIVER_SQL_TEXT_H

#include <stddef.h>

/* How much of the text to keep: at most `most` bytes, whole UTF-8 characters. */
size_t text_cut(const char *text, size_t most);

#define SHOWN_SIZE 84

/* A text of a payload, short enough for an error: the text itself, or its beginning in `buffer`. */
const char *text_shown(const char *text, char buffer[SHOWN_SIZE]);

#endif
