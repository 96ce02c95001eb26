/* json_line.h: one line of JSON that is an object, read where it stands.
 *
 * The whole line is checked first, as RFC 8259 says: UTF-8, no duplicate names, no NUL in a name, numbers that fit, at
 * most JSON_LINE_DEPTH levels.  Only then are its members looked at: texts are decoded in place, so nothing is
 * allocated for a line, and what a member says points into the line and lives as long as that.
 *
 * jansson reads everything else.  This accepts what jansson accepts, with the same values and the same words about what
 * is wrong (tests/fuzz/fuzz_json_line.c compares the two), for an eighth of the time; but that it refuses every NUL
 * byte, while jansson reads over one that follows a number or a word. */
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
        bool has_escapes; /* A text that is not decoded yet. */
        char *data;       /* a text without its quotes; everything else as it stands */
        size_t size;
};

struct json_line_member {
        struct json_line_value name; /* a text */
        struct json_line_value value;
};

struct json_line_name;

/* Reads one line after the other, with the same memory.  Zeroed, then json_line_init(). */
struct json_line {
        struct json_line_member *members; /* of the line that was read last, in their order */
        size_t count;
        size_t room;

        /* The names of all objects of a line: duplicates are refused.  An entry of an earlier line is as good as none,
         * so that nothing has to be cleared. */
        struct json_line_name *names;
        size_t names_room; /* a power of two */
        size_t names_count;
        uint64_t objects; /* so many were read, in all lines */
        uint64_t first_object;
        struct buffer decoded; /* names that have escapes */
        uint64_t seed;         /* Nobody can choose names that all fall into one place of the table. */
};

void json_line_init(struct json_line *line);
void json_line_free(struct json_line *line);

/* Reads a line.  text[size] belongs to the caller, too: a NUL is written there.  0, or -EINVAL with a text that begins
 * with "is not ". */
int json_line_read(struct json_line *line, char *text, size_t size, struct error *error);

/* The text that a value is, decoded in its place and followed by a NUL that is not counted; there may be NULs in it. */
struct span json_line_text(struct json_line_value *value);
/* The first and the next member of a value that is an object; false: there is none.  *at is 0 before the first.  An
 * object is walked once: its texts may be decoded on the way. */
bool json_line_next(const struct json_line_value *object, size_t *at, struct json_line_member *ret_member);
/* Appends a value of any kind, of which nothing is decoded yet, without white space and with as few escapes as may be.
 */
void json_line_put(struct buffer *to, const struct json_line_value *value);

#endif
