/* Any line, JSON more often than not, is read as jansson reads it: the same lines are accepted, with the same members
 * in the same order and the same values, and the same is said about those that are refused.  One
 * thing is different: jansson reads over a NUL byte that follows a number or a word; here no line may have one. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "http/json_line.h"

#define DEPTH_MAX 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- a line ------------------------------------------------------------------------------------------------------- */

static void put_one(struct buffer *b, struct choices *c, const char *const *list, unsigned count)
{
        const char *text = list[choose(c, count)];
        buffer_put(b, text, strlen(text));
}

#define PUT_ONE(b, c, list) put_one(b, c, list, sizeof(list) / sizeof((list)[0]))

static void put_space(struct buffer *b, struct choices *c)
{
        static const char *const spaces[] = { " ", "\t", "\r", "\n", "  " };
        if (!choose(c, 8))
                PUT_ONE(b, c, spaces);
}

static void put_text(struct buffer *b, struct choices *c)
{
        static const char *const parts[] = { "a", "bc", "payload", "12345678", "\\n", "\\u0041", "\\u00e4", "\\u20AC",
                "\\ud83d\\ude00", "\\/", "\\\\", "\\\"", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x7f", "\\t",
                "\\u001f", "\\b\\f\\r", "0123456789012345678901234567890" };
        static const char *const odd[] = { "\\u0000", "\\ud83d", "\\ud83dx", "\\ud83d\\u0041", "\\udc00", "\\u12",
                "\\x", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\xff", "\x80", "\x01", "\n",
                "\\\xc3\xa4", "\\u\xc3\xa4", "\\\xff", "\xf0\x9f" };
        buffer_put(b, "\"", 1);
        for (unsigned n = choose(c, 4); n; n--)
                if (choose(c, 32))
                        PUT_ONE(b, c, parts);
                else
                        PUT_ONE(b, c, odd);
        if (choose(c, 128))
                buffer_put(b, "\"", 1);
}

static void put_number(struct buffer *b, struct choices *c)
{
        static const char *const numbers[] = { "0", "-0", "1", "-17", "9223372036854775807", "9223372036854775808",
                "-9223372036854775808", "-9223372036854775809", "123456789012345678901234567890", "0.5", "-0.0", "1e5",
                "1E+5", "1e-5", "0.1", "1.0", "1e400", "-1e400", "1e-400", "123456789.123456789", "1e16", "1e17",
                "3e300", "00", "01", "-", "1.", "1.e5", "1e", "1e+", ".5", "+1", "-x", "1x", "1\xff", "1.\xff",
                "-\xc3\xa4" };
        PUT_ONE(b, c, numbers);
}

static void put_value(struct buffer *b, struct choices *c, unsigned depth)
{
        static const char *const words[] = { "true", "false", "null", "true", "false", "null", "nul", "True", "nullx",
                "x", "tru\xff", "]", "}", ",", ":", "\xc3\xa4", "\xff", "'a'" };
        unsigned kind = choose(c, depth < DEPTH_MAX ? 8 : 5);
        put_space(b, c);
        if (kind < 3) {
                put_text(b, c);
        } else if (kind == 3) {
                put_number(b, c);
        } else if (kind == 4) {
                PUT_ONE(b, c, words);
        } else {
                bool is_object = kind > 5;
                buffer_put(b, is_object ? "{" : "[", 1);
                for (unsigned n = choose(c, 4); n; n--) {
                        if (is_object) {
                                put_text(b, c);
                                put_space(b, c);
                                buffer_put(b, ":", choose(c, 64) != 0);
                        }
                        put_value(b, c, depth + 1);
                        buffer_put(b, ",", n > 1 || !choose(c, 64));
                }
                put_space(b, c);
                buffer_put(b, is_object ? "}" : "]", choose(c, 64) != 0);
        }
        put_space(b, c);
}

static void put_line(struct buffer *b, struct choices *c)
{
        buffer_put(b, "{", choose(c, 32) != 0);
        for (unsigned n = choose(c, 5); n; n--) {
                put_text(b, c);
                buffer_put(b, ":", 1);
                put_value(b, c, 1);
                buffer_put(b, ",", n > 1);
        }
        buffer_put(b, "}", choose(c, 32) != 0);
        if (!choose(c, 16) && b->size)
                b->data[choose_number(c) % b->size] = choose_byte(c);
        if (!choose(c, 64))
                for (unsigned n = 2040 + choose(c, 16); n; n--)
                        buffer_put(b, choose_byte(c) & 1 ? "[" : "[[", 1);
}

/* --- the same ----------------------------------------------------------------------------------------------------- */

static void compare_text(struct json_line_value *text, const char *data, size_t size)
{
        demand(text->kind == JSON_LINE_TEXT);
        struct span said = json_line_text(text);
        demand(said.size == size && !memcmp(said.data, data, size) && !said.data[said.size]);
}

static void compare_value(struct json_line_value *value, json_t *other)
{
        struct buffer put = { 0 };
        struct json_line_member member;
        json_line_put(&put, value);
        char *dump = json_dumps(other, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
        demand(dump && !strcmp(buffer_text(&put), dump));
        free(dump);
        buffer_free(&put);
        if (json_is_string(other))
                compare_text(value, json_string_value(other), json_string_length(other));
        if (!json_is_object(other)) {
                demand(value->kind != JSON_LINE_OBJECT);
                return;
        }
        demand(value->kind == JSON_LINE_OBJECT);
        void *iter = json_object_iter(other);
        for (size_t at = 0; json_line_next(value, &at, &member); iter = json_object_iter_next(other, iter)) {
                demand(iter != NULL);
                compare_text(&member.name, json_object_iter_key(iter), strlen(json_object_iter_key(iter)));
                compare_value(&member.value, json_object_iter_value(iter));
        }
        demand(!iter);
}

static void compare(struct json_line *reader, const void *data, size_t size)
{
        struct error error = { "" };
        char text[JSON_ERROR_TEXT_LENGTH + 32];
        json_error_t where;
        json_t *other = json_loadb(size ? data : "", size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
        /* Exactly as long as it may be, so that a look past it is noticed. */
        char *line = malloc(size + 1);
        memcpy(line, size ? data : "", size);
        int r = json_line_read(reader, line, size, &error);
        if (size && memchr(data, 0, size)) {
                demand(r < 0);
        } else if (json_is_object(other)) {
                demand(r == 0);
                void *iter = json_object_iter(other);
                for (size_t i = 0; i < reader->count; i++, iter = json_object_iter_next(other, iter)) {
                        demand(iter != NULL);
                        const char *name = json_object_iter_key(iter);
                        compare_value(&reader->members[i].value, json_object_iter_value(iter));
                        compare_text(&reader->members[i].name, name, strlen(name));
                }
                demand(!iter);
        } else {
                (void)snprintf(text, sizeof(text), other ? "is not a JSON object" : "is not JSON: %s", where.text);
                demand(r < 0 && !strcmp(error.text, text));
        }
        json_decref(other);
        free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        struct json_line reader = { 0 };
        json_line_init(&reader);
        if (!choose(&c, 8)) {
                compare(&reader, c.data, c.size);
        } else {
                /* Several with one reader: none knows of the others. */
                for (unsigned n = 1 + choose(&c, 3); n; n--) {
                        struct buffer line = { 0 };
                        put_line(&line, &c);
                        compare(&reader, line.data, line.size);
                        buffer_free(&line);
                }
        }
        json_line_free(&reader);
        return 0;
}
