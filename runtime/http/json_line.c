/* json_line.c: checks that a line is JSON.  Error texts name the token at which the error was found, if it is short. */
#include "http/json_line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/strings.h"
#include "http/json_line_private.h"

#define NEAR_MAX    20 /* bytes of a token in an error text */
#define NAMES_FIRST 64u
#define DIGITS_SAFE 18 /* this many digits always fit into 64 bits */

struct json_line_name {
        uint64_t object; /* the object that the name belongs to */
        uint64_t hash;
        size_t at, size;
        bool is_decoded; /* the name is in `decoded`, not in the line */
};

enum json_line_token {
        TOKEN_END,
        TOKEN_VALUE, /* a text, a number, or one of the three words */
        TOKEN_BEGIN_OBJECT,
        TOKEN_END_OBJECT,
        TOKEN_BEGIN_ARRAY,
        TOKEN_END_ARRAY,
        TOKEN_COLON,
        TOKEN_COMMA,
        TOKEN_INVALID,
        TOKEN_FAILED /* the error text is set */
};

struct json_line_scan {
        struct json_line *line;
        char *start, *at, *end; /* *end is a NUL */
        char *token;            /* start of the last token, which ends at `at` */
        struct json_line_value value;
        bool has_nul; /* the decoded text contains a NUL */
        unsigned depth;
        struct error *error;
};

void json_line_init(struct json_line *line)
{
        if (getrandom(&line->seed, sizeof(line->seed), GRND_NONBLOCK) != sizeof(line->seed))
                line->seed = (uintptr_t)line;
        line->names_room = NAMES_FIRST;
        line->names = memory_zero(line->names_room, sizeof(*line->names));
}

void json_line_free(struct json_line *line)
{
        free(line->members);
        free(line->names);
        buffer_free(&line->decoded);
        *line = (struct json_line){ 0 };
}

/* --- errors ------------------------------------------------------------------------------------------------------ */

/* Sets the error for a token that was read up to `end`. */
__attribute__((format(printf, 3, 4))) static int fail_at(
        struct json_line_scan *s, const char *end, const char *format, ...)
{
        char what[80];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        size_t size = (size_t)(end - s->token);
        if (!size || !*s->token)
                return error_set(s->error, -EINVAL, "is not JSON: %s near end of file", what);
        if (size > NEAR_MAX)
                return error_set(s->error, -EINVAL, "is not JSON: %s", what);
        return error_set(s->error, -EINVAL, "is not JSON: %s near '%.*s'", what, (int)size, s->token);
}

static int fail(struct json_line_scan *s, const char *what)
{
        return fail_at(s, s->at, "%s", what);
}

/* --- UTF-8 -------------------------------------------------------------------------------------------------------- */

/* Needs no length: the NUL at the end of the line is never part of a character. */
static size_t character_size(const char *at)
{
        return utf8_size((const unsigned char *)at, 4);
}

/* Fails if the character at `at` is not UTF-8. */
static int look(struct json_line_scan *s, const char *at)
{
        if ((unsigned char)*at < 0x80 || character_size(at))
                return 0;
        if (at == s->token)
                return error_set(
                        s->error, -EINVAL, "is not JSON: unable to decode byte 0x%x", (unsigned)(unsigned char)*at);
        return fail_at(s, at, "unable to decode byte 0x%x", (unsigned)(unsigned char)*at);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Skips eight bytes at a time that are neither a quote, a backslash, a control character nor beyond ASCII. */
static char *skip_plain(char *at, const char *end)
{
        while (end - at >= 8) {
                uint64_t bytes;
                memcpy(&bytes, at, sizeof(bytes));
                uint64_t quotes = bytes ^ EACH_BYTE('"');
                uint64_t backslashes = bytes ^ EACH_BYTE('\\');
                uint64_t found =
                        (bytes - EACH_BYTE(0x20)) | (quotes - EACH_BYTE(1)) | (backslashes - EACH_BYTE(1)) | bytes;
                if (found & EACH_BYTE(0x80))
                        break;
                at += 8;
        }
        return at;
}

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* `at` is after a backslash.  Returns the position after the escape; NULL: it is invalid, and the error is set. */
static char *scan_escape(struct json_line_scan *s, char *at)
{
        const char *stop = at;
        if (*at == 'u') {
                stop = at + 1;
                while (stop < at + 5 && is_hex(*stop))
                        stop++;
                if (stop == at + 5)
                        return at + 5;
        } else if (at < s->end && *at && strchr("\"\\/bfnrt", *at)) {
                return at + 1;
        }
        if (look(s, stop) == 0)
                (void)fail_at(s, stop < s->end ? stop + 1 : stop, "invalid escape");
        return NULL;
}

/* Surrogates must come in pairs. */
static int check_escapes(struct json_line_scan *s, const char *text, const char *end)
{
        for (const char *at = text; (at = memchr(at, '\\', (size_t)(end - at)));) {
                if (at[1] != 'u') {
                        at += 2;
                        continue;
                }
                int32_t first = json_line_hex(at + 2);
                bool has_second = at[6] == '\\' && at[7] == 'u';
                at += 6;
                s->has_nul |= !first;
                if (first < 0xd800 || first > 0xdfff)
                        continue;
                if (first > 0xdbff || !has_second)
                        return fail_at(s, s->at, "invalid Unicode '\\u%04X'", (unsigned)first);
                int32_t second = json_line_hex(at + 2);
                if (second < 0xdc00 || second > 0xdfff)
                        return fail_at(s, s->at, "invalid Unicode '\\u%04X\\u%04X'", (unsigned)first, (unsigned)second);
                at += 6;
        }
        return 0;
}

static enum json_line_token scan_text(struct json_line_scan *s)
{
        char *text = s->token + 1;
        char *at = text;
        bool has_escapes = false;
        for (;;) {
                at = skip_plain(at, s->end);
                unsigned char c = (unsigned char)*at;
                if (c == '"')
                        break;
                if (c == '\\') {
                        has_escapes = true;
                        at = scan_escape(s, at + 1);
                        if (!at)
                                return TOKEN_FAILED;
                } else if (c >= 0x80) {
                        if (look(s, at) < 0)
                                return TOKEN_FAILED;
                        at += character_size(at);
                } else if (c >= 0x20) {
                        at++;
                } else {
                        if (at == s->end)
                                (void)fail_at(s, at, "premature end of input");
                        else if (c == '\n')
                                (void)fail_at(s, at, "unexpected newline");
                        else
                                (void)fail_at(s, at, "control character 0x%x", c);
                        return TOKEN_FAILED;
                }
        }
        s->at = at + 1;
        s->has_nul = false;
        s->value = (struct json_line_value){ JSON_LINE_TEXT, has_escapes, text, (size_t)(at - text) };
        return has_escapes && check_escapes(s, text, at) < 0 ? TOKEN_FAILED : TOKEN_VALUE;
}

/* --- numbers and words -------------------------------------------------------------------------------------------- */

static char *skip_digits(char *at)
{
        while (*at >= '0' && *at <= '9')
                at++;
        return at;
}

/* Scans a fraction, an exponent, or both.  Returns the end; *ret_is_whole: no digits are missing. */
static char *scan_real(char *at, bool *ret_is_whole)
{
        *ret_is_whole = true;
        if (*at == '.') {
                char *digits = at + 1;
                at = skip_digits(digits);
                *ret_is_whole = at > digits;
        }
        if (*ret_is_whole && (*at == 'e' || *at == 'E')) {
                char *digits = at + 1 + (at[1] == '+' || at[1] == '-');
                at = skip_digits(digits);
                *ret_is_whole = at > digits;
        }
        return at;
}

static enum json_line_token check_number(struct json_line_scan *s, bool is_real)
{
        errno = 0;
        if (is_real) {
                double value = strtod(s->token, NULL);
                if (errno == ERANGE && (value > 1 || value < -1)) {
                        (void)fail(s, "real number overflow");
                        return TOKEN_FAILED;
                }
        } else if (s->at - s->token > DIGITS_SAFE) {
                long long value = strtoll(s->token, NULL, 10);
                if (errno == ERANGE) {
                        (void)fail(s, value < 0 ? "too big negative integer" : "too big integer");
                        return TOKEN_FAILED;
                }
        }
        s->value = (struct json_line_value){ is_real ? JSON_LINE_REAL : JSON_LINE_INTEGER, false, s->token,
                (size_t)(s->at - s->token) };
        return TOKEN_VALUE;
}

static enum json_line_token scan_number(struct json_line_scan *s)
{
        char *digits = s->token + (*s->token == '-');
        char *at = *digits == '0' ? digits + 1 : skip_digits(digits);
        bool is_whole = at > digits && !(*digits == '0' && *at >= '0' && *at <= '9');
        bool is_real = is_whole && (*at == '.' || *at == 'e' || *at == 'E');
        if (is_real)
                at = scan_real(at, &is_whole);
        s->at = at;
        if (look(s, at) < 0)
                return TOKEN_FAILED;
        return is_whole ? check_number(s, is_real) : TOKEN_INVALID;
}

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static enum json_line_token scan_word(struct json_line_scan *s)
{
        while (is_letter(*s->at))
                s->at++;
        if (look(s, s->at) < 0)
                return TOKEN_FAILED;
        struct span word = { s->token, (size_t)(s->at - s->token) };
        s->value = (struct json_line_value){ JSON_LINE_TRUE, false, s->token, word.size };
        if (span_is(word, SPAN_TEXT("true")))
                return TOKEN_VALUE;
        s->value.kind = JSON_LINE_FALSE;
        if (span_is(word, SPAN_TEXT("false")))
                return TOKEN_VALUE;
        s->value.kind = JSON_LINE_NULL;
        return span_is(word, SPAN_TEXT("null")) ? TOKEN_VALUE : TOKEN_INVALID;
}

static enum json_line_token scan_other(struct json_line_scan *s)
{
        if (*s->token == '-' || (*s->token >= '0' && *s->token <= '9'))
                return scan_number(s);
        if (is_letter(*s->token))
                return scan_word(s);
        if (look(s, s->token) < 0)
                return TOKEN_FAILED;
        s->at = s->token + ((unsigned char)*s->token >= 0x80 ? character_size(s->token) : 1);
        return TOKEN_INVALID;
}

static enum json_line_token next_token(struct json_line_scan *s)
{
        while (json_line_is_space(*s->at))
                s->at++;
        s->token = s->at;
        if (s->at == s->end)
                return TOKEN_END;
        s->at++;
        switch (*s->token) {
        case '"':
                return scan_text(s);
        case '{':
                return TOKEN_BEGIN_OBJECT;
        case '}':
                return TOKEN_END_OBJECT;
        case '[':
                return TOKEN_BEGIN_ARRAY;
        case ']':
                return TOKEN_END_ARRAY;
        case ':':
                return TOKEN_COLON;
        case ',':
                return TOKEN_COMMA;
        default:
                return scan_other(s);
        }
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t hash, uint64_t bytes)
{
        unsigned __int128 product = (unsigned __int128)(hash ^ bytes) * UINT64_C(0x9e3779b97f4a7c15);
        return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t name_hash(const struct json_line *line, uint64_t object, struct span name)
{
        uint64_t hash = mixed(line->seed ^ name.size, object);
        for (; name.size >= 8; name.data += 8, name.size -= 8) {
                uint64_t bytes;
                memcpy(&bytes, name.data, sizeof(bytes));
                hash = mixed(hash, bytes ^ line->seed);
        }
        uint64_t rest = 0;
        if (name.size)
                memcpy(&rest, name.data, name.size);
        return mixed(hash, rest ^ line->seed);
}

/* The entry of the name in the table, or the free one where it belongs. */
static struct json_line_name *name_place(
        const struct json_line_scan *s, uint64_t object, uint64_t hash, struct span name)
{
        const struct json_line *line = s->line;
        for (size_t i = hash & (line->names_room - 1);; i = (i + 1) & (line->names_room - 1)) {
                struct json_line_name *entry = &line->names[i];
                if (entry->object < line->first_object)
                        return entry;
                const char *bytes = entry->is_decoded ? (const char *)line->decoded.data : s->start;
                if (entry->object == object && entry->hash == hash &&
                        span_is(name, (struct span){ bytes + entry->at, entry->size }))
                        return entry;
        }
}

static void names_grow(struct json_line *line)
{
        struct json_line_name *old = line->names;
        size_t old_room = line->names_room;
        line->names_room = 2 * old_room;
        line->names = memory_zero(line->names_room, sizeof(*line->names));
        for (size_t i = 0; i < old_room; i++) {
                if (old[i].object < line->first_object)
                        continue;
                size_t to = old[i].hash & (line->names_room - 1);
                while (line->names[to].object)
                        to = (to + 1) & (line->names_room - 1);
                line->names[to] = old[i];
        }
        free(old);
}

/* Adds the name that was read last to this object; fails if the object has it already. */
static int add_name(struct json_line_scan *s, uint64_t object)
{
        struct json_line *line = s->line;
        struct span name = { s->value.data, s->value.size };
        size_t at = (size_t)(s->value.data - s->start);
        if (s->has_nul)
                return fail(s, "NUL byte in object key not supported");
        if (s->value.has_escapes) {
                at = line->decoded.size;
                char *to = (char *)buffer_reserve(&line->decoded, name.size);
                name = (struct span){ to, json_line_decode(to, name.data, name.size) };
                line->decoded.size += name.size;
        }
        uint64_t hash = name_hash(line, object, name);
        struct json_line_name *entry = name_place(s, object, hash, name);
        if (entry->object == object)
                return fail(s, "duplicate object key");
        *entry = (struct json_line_name){ object, hash, at, name.size, s->value.has_escapes };
        if (++line->names_count > line->names_room / 2)
                names_grow(line);
        return 0;
}

/* --- objects and arrays ------------------------------------------------------------------------------------------- */

static int scan_value(struct json_line_scan *s, enum json_line_token token);

static void keep_member(struct json_line_scan *s, const struct json_line_value *name)
{
        struct json_line *line = s->line;
        if (line->count == line->room) {
                line->room = line->room ? 2 * line->room : 16;
                line->members = memory_resize(line->members, line->room * sizeof(*line->members));
        }
        line->members[line->count++] = (struct json_line_member){ *name, s->value };
}

static int scan_object(struct json_line_scan *s)
{
        char *start = s->token;
        bool is_outermost = s->depth == 1;
        uint64_t object = s->line->objects++;
        enum json_line_token token = next_token(s);
        for (bool is_first = true; token != TOKEN_END_OBJECT || !is_first; is_first = false) {
                if (token == TOKEN_FAILED)
                        return -EINVAL;
                if (token != TOKEN_VALUE || s->value.kind != JSON_LINE_TEXT)
                        return fail(s, "string or '}' expected");
                struct json_line_value name = s->value;
                if (add_name(s, object) < 0)
                        return -EINVAL;
                token = next_token(s);
                if (token != TOKEN_COLON)
                        return token == TOKEN_FAILED ? -EINVAL : fail(s, "':' expected");
                if (scan_value(s, next_token(s)) < 0)
                        return -EINVAL;
                if (is_outermost)
                        keep_member(s, &name);
                token = next_token(s);
                if (token == TOKEN_END_OBJECT)
                        break;
                if (token != TOKEN_COMMA)
                        return token == TOKEN_FAILED ? -EINVAL : fail(s, "'}' expected");
                token = next_token(s);
        }
        s->value = (struct json_line_value){ JSON_LINE_OBJECT, false, start, (size_t)(s->at - start) };
        return 0;
}

static int scan_array(struct json_line_scan *s)
{
        char *start = s->token;
        enum json_line_token token = next_token(s);
        for (bool is_first = true; token != TOKEN_END_ARRAY || !is_first; is_first = false) {
                if (token == TOKEN_END)
                        return fail(s, "']' expected");
                if (scan_value(s, token) < 0)
                        return -EINVAL;
                token = next_token(s);
                if (token == TOKEN_END_ARRAY)
                        break;
                if (token != TOKEN_COMMA)
                        return token == TOKEN_FAILED ? -EINVAL : fail(s, "']' expected");
                token = next_token(s);
        }
        s->value = (struct json_line_value){ JSON_LINE_ARRAY, false, start, (size_t)(s->at - start) };
        return 0;
}

/* Scans the value that begins with this token into s->value. */
static int scan_value(struct json_line_scan *s, enum json_line_token token)
{
        int r = 0;
        if (token == TOKEN_FAILED)
                return -EINVAL;
        if (++s->depth > JSON_LINE_DEPTH)
                return fail(s, "maximum parsing depth reached");
        if (token == TOKEN_BEGIN_OBJECT)
                r = scan_object(s);
        else if (token == TOKEN_BEGIN_ARRAY)
                r = scan_array(s);
        else if (token != TOKEN_VALUE)
                r = fail(s, token == TOKEN_INVALID ? "invalid token" : "unexpected token");
        s->depth--;
        return r;
}

int json_line_read(struct json_line *line, char *text, size_t size, struct error *error)
{
        struct json_line_scan s = {
                .line = line, .start = text, .at = text, .token = text, .end = text + size, .error = error
        };
        text[size] = 0;
        line->count = line->names_count = 0;
        line->first_object = ++line->objects;
        buffer_clear(&line->decoded);
        enum json_line_token token = next_token(&s);
        if (token != TOKEN_BEGIN_OBJECT && token != TOKEN_BEGIN_ARRAY)
                return token == TOKEN_FAILED ? -EINVAL : fail(&s, "'[' or '{' expected");
        if (scan_value(&s, token) < 0)
                return -EINVAL;
        enum json_line_kind kind = s.value.kind;
        token = next_token(&s);
        if (token != TOKEN_END)
                return token == TOKEN_FAILED ? -EINVAL : fail(&s, "end of file expected");
        return kind == JSON_LINE_OBJECT ? 0 : error_set(error, -EINVAL, "is not a JSON object");
}
