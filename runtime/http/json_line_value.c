/* json_line_value.c: reads the values of a line that was checked, so every token is where it must be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/json_line_private.h"

#define NUMBER_SIZE 64u

int32_t json_line_hex(const char *digits)
{
        int32_t value = 0;
        for (unsigned i = 0; i < 4; i++) {
                char c = digits[i];
                int32_t digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - 'A' + 10;
                value = value << 4 | digit;
        }
        return value;
}

/* Decodes the escape at *at, which begins with a backslash, and moves *at past it. */
static uint32_t take_escape(const char **at)
{
        static const char letters[] = "\"\\/bfnrt";
        static const char meant[] = "\"\\/\b\f\n\r\t";
        const char *from = *at;
        if (from[1] != 'u') {
                *at += 2;
                return (unsigned char)meant[strchr(letters, from[1]) - letters];
        }
        uint32_t code = (uint32_t)json_line_hex(from + 2);
        *at += 6;
        if (code < 0xd800 || code > 0xdbff)
                return code;
        *at += 6;
        return 0x10000 + ((code - 0xd800) << 10) + ((uint32_t)json_line_hex(from + 8) - 0xdc00);
}

static size_t put_utf8(char *to, uint32_t code)
{
        if (code < 0x80) {
                to[0] = (char)code;
                return 1;
        }
        size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
        for (size_t i = size - 1; i; i--, code >>= 6)
                to[i] = (char)(0x80 | (code & 0x3f));
        to[0] = (char)(first[size] | code);
        return size;
}

size_t json_line_decode(char *to, const char *from, size_t size)
{
        const char *end = from + size;
        char *start = to;
        while (from < end) {
                const char *escape = memchr(from, '\\', (size_t)(end - from));
                size_t plain = (size_t)((escape ? escape : end) - from);
                memmove(to, from, plain);
                to += plain;
                from += plain;
                if (escape)
                        to += put_utf8(to, take_escape(&from));
        }
        return (size_t)(to - start);
}

struct span json_line_text(struct json_line_value *value)
{
        if (value->has_escapes)
                value->size = json_line_decode(value->data, value->data, value->size);
        value->has_escapes = false;
        /* Overwrites the closing quote, or bytes that decoding has freed. */
        value->data[value->size] = 0;
        return (struct span){ value->data, value->size };
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static size_t skip_spaces(const char *data, size_t at)
{
        while (json_line_is_space(data[at]))
                at++;
        return at;
}

static size_t skip_text(const char *data, size_t at, bool *ret_has_escapes)
{
        *ret_has_escapes = false;
        for (at++; data[at] != '"'; at++)
                if (data[at] == '\\') {
                        *ret_has_escapes = true;
                        at++;
                }
        return at + 1;
}

/* Returns the position after an object or array. */
static size_t skip_nested(const char *data, size_t at)
{
        bool has_escapes;
        unsigned depth = 0;
        do {
                if (data[at] == '"') {
                        at = skip_text(data, at, &has_escapes);
                        continue;
                }
                depth += data[at] == '{' || data[at] == '[';
                depth -= data[at] == '}' || data[at] == ']';
                at++;
        } while (depth);
        return at;
}

static enum json_line_kind number_kind(const char *data, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if (data[i] == '.' || data[i] == 'e' || data[i] == 'E')
                        return JSON_LINE_REAL;
        return JSON_LINE_INTEGER;
}

/* Reads the value at data[at]; returns the position after it. */
static size_t take_value(char *data, size_t at, struct json_line_value *ret_value)
{
        size_t end = at;
        *ret_value = (struct json_line_value){ .data = data + at };
        switch (data[at]) {
        case '"':
                end = skip_text(data, at, &ret_value->has_escapes);
                *ret_value =
                        (struct json_line_value){ JSON_LINE_TEXT, ret_value->has_escapes, data + at + 1, end - at - 2 };
                return end;
        case '{':
        case '[':
                end = skip_nested(data, at);
                ret_value->kind = data[at] == '{' ? JSON_LINE_OBJECT : JSON_LINE_ARRAY;
                break;
        default:
                while (!json_line_is_space(data[end]) && data[end] != ',' && data[end] != '}' && data[end] != ']')
                        end++;
                ret_value->kind = data[at] == 't'   ? JSON_LINE_TRUE
                                  : data[at] == 'f' ? JSON_LINE_FALSE
                                  : data[at] == 'n' ? JSON_LINE_NULL
                                                    : number_kind(data + at, end - at);
        }
        ret_value->size = end - at;
        return end;
}

bool json_line_next(const struct json_line_value *object, size_t *at, struct json_line_member *ret_member)
{
        char *data = object->data;
        size_t i = skip_spaces(data, *at);
        if (data[i] == '}')
                return false;
        i = skip_spaces(data, i + 1); /* after the brace, or a comma */
        if (data[i] == '}')
                return false;
        i = skip_spaces(data, take_value(data, i, &ret_member->name)); /* at the colon */
        *at = take_value(data, skip_spaces(data, i + 1), &ret_member->value);
        return true;
}

/* --- as text ------------------------------------------------------------------------------------------------------ */

static void put_character(struct buffer *to, uint32_t code)
{
        static const char meant[] = "\"\\\b\f\n\r\t";
        static const char letters[] = "\"\\bfnrt";
        const char *found = code && code < 0x80 ? strchr(meant, (int)code) : NULL;
        if (found)
                buffer_printf(to, "\\%c", letters[found - meant]);
        else if (code < 0x20)
                buffer_printf(to, "\\u%04X", code);
        else
                to->size += put_utf8((char *)buffer_reserve(to, 4), code);
}

static void put_text(struct buffer *to, const char *from, size_t size)
{
        const char *end = from + size;
        buffer_put(to, "\"", 1);
        while (from < end) {
                const char *escape = memchr(from, '\\', (size_t)(end - from));
                size_t plain = (size_t)((escape ? escape : end) - from);
                buffer_put(to, from, plain);
                from += plain;
                if (escape)
                        put_character(to, take_escape(&from));
        }
        buffer_put(to, "\"", 1);
}

/* Writes enough digits to read the same number again, and marks it as a real. */
static void put_real(struct buffer *to, const char *from)
{
        char text[NUMBER_SIZE];
        (void)snprintf(text, sizeof(text), "%.17g", strtod(from, NULL));
        char *exponent = strchr(text, 'e');
        size_t mantissa = exponent ? (size_t)(exponent - text) : strlen(text);
        buffer_put(to, text, mantissa);
        if (!exponent) {
                if (!memchr(text, '.', mantissa))
                        buffer_put(to, ".0", 2);
                return;
        }
        buffer_printf(to, "e%ld", strtol(exponent + 1, NULL, 10));
}

void json_line_put(struct buffer *to, const struct json_line_value *value)
{
        const char *data = value->data;
        size_t at = 0;
        if (value->kind == JSON_LINE_TEXT) {
                put_text(to, data, value->size);
                return;
        }
        while (at < value->size) {
                struct json_line_value part;
                if (strchr("{}[]:,", data[at])) {
                        buffer_put(to, data + at++, 1);
                        continue;
                }
                if (json_line_is_space(data[at])) {
                        at++;
                        continue;
                }
                at = take_value(value->data, at, &part);
                if (part.kind == JSON_LINE_TEXT)
                        put_text(to, part.data, part.size);
                else if (part.kind == JSON_LINE_REAL)
                        put_real(to, part.data);
                else if (part.kind == JSON_LINE_INTEGER && part.size == 2 && !memcmp(part.data, "-0", 2))
                        buffer_put(to, "0", 1);
                else
                        buffer_put(to, part.data, part.size);
        }
}
