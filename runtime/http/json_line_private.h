/* json_line_private.h: what json_line.c (is it JSON?) and json_line_value.c (what does it say?) share. */
#ifndef QUIVER_HTTP_JSON_LINE_PRIVATE_H
#define QUIVER_HTTP_JSON_LINE_PRIVATE_H

#include <stdint.h>

#include "http/json_line.h"

/* The number that four hexadecimal digits stand for; -1: they are none. */
int32_t json_line_hex(const char *digits);
/* Decodes a text whose escapes are right; `to` may be `from`.  Returns how many bytes it has then, never more. */
size_t json_line_decode(char *to, const char *from, size_t size);

static inline bool json_line_is_space(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

#endif
