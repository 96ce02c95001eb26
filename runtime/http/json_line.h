/* json_line.h: parses one line of JSON that is an object, in place.
 *
 * The whole line is checked first, by RFC 8259: UTF-8, no duplicate names, no NUL in a name, numbers that fit, at most
 * JSON_LINE_DEPTH levels.  Only then are its members read: texts are decoded in place, so nothing is allocated for a
 * line, and values point into the line and live as long as it does.
 *
 * jansson parses everything else.  This parser accepts what jansson accepts, with the same values and the same error
 * texts (tests/fuzz/fuzz_json_line.c compares the two), in an eighth of the time.  The one difference: it refuses every
 * NUL byte, while jansson skips one that follows a number or a word. */
#ifndef QUIVER_HTTP_JSON_LINE_H
#define QUIVER_HTTP_JSON_LINE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"

#define JSON_LINE_DEPTH 2048u

enum json_line_kind {
        JSON_LINE_TEXT,
        JSON_LINE_INTEGER,
        JSON_LINE_REAL,
        JSON_LINE_TRUE,
        JSON_LINE_FALSE,
        JSON_LINE_NULL,
        JSON_LINE_ARRAY,
        JSON_LINE_OBJECT
};

/* A value of a line that was read. */
struct json_line_value {
        enum json_line_kind kind;
        bool has_escapes; /* a text that is not decoded yet */
        char *data;       /* a text without its quotes; any other value unchanged */
        size_t size;
};

struct json_line_member {
        struct json_line_value name; /* a text */
        struct json_line_value value;
};

struct json_line_name;

/* Parses one line after the other, reusing its memory.  Zero it, then call json_line_init(). */
struct json_line {
        struct json_line_member *members; /* of the latest line, in their order */
        size_t count;
        size_t room;

        /* The names of all objects of a line, to refuse duplicates.  Entries of earlier lines count as free, so nothing
         * must be cleared. */
        struct json_line_name *names;
        size_t names_room; /* a power of two */
        size_t names_count;
        uint64_t objects; /* objects parsed so far, in all lines */
        uint64_t first_object;
        struct buffer decoded; /* names with escapes, decoded */
        uint64_t seed;         /* random, so that nobody can choose names that collide in the table */
};

void json_line_init(struct json_line *line);
void json_line_free(struct json_line *line);

/* Parses a line. text[size] must belong to the caller, too: a NUL is written there.  0, or -EINVAL with a text that
 * begins with "is not ". */
int json_line_read(struct json_line *line, char *text, size_t size, struct error *error);

/* The text of a value, decoded in place and followed by a NUL that is not counted; it may contain NULs. */
struct span json_line_text(struct json_line_value *value);
/* Iterates over the members of an object; false at the end. *at is 0 before the first.  An object can be walked only
 * once, because its texts may be decoded on the way. */
bool json_line_next(const struct json_line_value *object, size_t *at, struct json_line_member *ret_member);
/* Appends a value of any kind, of which nothing is decoded yet, without white space and with as few escapes as
 * possible. */
void json_line_put(struct buffer *to, const struct json_line_value *value);

#endif
