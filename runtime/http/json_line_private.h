/* json_line_private.h: shared by json_line.c (checks the line) and json_line_value.c (reads its values). */
#ifndef QUIVER_HTTP_JSON_LINE_PRIVATE_H
#define QUIVER_HTTP_JSON_LINE_PRIVATE_H

#include <stdint.h>

#include "http/json_line.h"

/* The value of four hexadecimal digits; -1: not digits. */
int32_t json_line_hex(const char *digits);
/* Decodes a text with valid escapes; `to` may be `from`.  Returns its size, which is never larger. */
size_t json_line_decode(char *to, const char *from, size_t size);

static inline bool json_line_is_space(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

#endif
