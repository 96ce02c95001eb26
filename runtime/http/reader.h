/* reader.h: parses the bytes of a connection as HTTP/1.1 requests.
 *
 * The parser is Node's http_parser (libhttp-parser in Debian 12); only reader.c knows it.  Measured on two cores with
 * 100-byte POSTs: 43 000 a second on plain libuv streams, against 33 000 with libmicrohttpd, which also accepts two
 * lengths, a length beside chunks, two Hosts and NULs, and does not notice that a client has left while its request
 * waits.  http_parser refuses most of these; reader.c refuses the rest: bare line feeds, folded lines, names that are
 * not tokens, a second Host.  It is frozen upstream; llhttp, which has the same callbacks, replaces it in Debian 13.
 *
 * No I/O, no clock: the connection feeds it and acts on what it returns. */
#ifndef QUIVER_HTTP_READER_H
#define QUIVER_HTTP_READER_H

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define HTTP_HEAD_MAX   8192u /* bytes of the request line and all fields; the same limit for trailers */
#define HTTP_FIELDS_MAX 64u

enum http_verb { VERB_GET, VERB_HEAD, VERB_POST, VERB_PUT, VERB_DELETE, VERB_OTHER };

struct http_field {
        struct span name; /* in lower case */
        struct span value;
};

/* The head of a request.  The spans point into the reader and last until the next http_reader_init(). */
struct http_head {
        enum http_verb verb;
        struct span path;  /* as sent: begins with a slash, still percent-encoded */
        struct span query; /* after the question mark; empty if there is none */
        struct http_field fields[HTTP_FIELDS_MAX];
        uint32_t fields_count;
        uint64_t body_bytes; /* UINT64_MAX: it comes in chunks, and its size is unknown */
        bool is_kept_alive;
        bool expects_continue; /* the client waits for "100 Continue" before it sends the body */
};

enum http_reading {
        READING_MORE, /* all bytes were used; nothing is complete yet */
        READING_HEAD, /* reader->head is complete */
        READING_BODY, /* reader->body is a part of the body; it points into the bytes that were fed */
        READING_END,  /* the request is complete; call http_reader_init() before the next one */
        READING_BAD   /* reader->status and reader->why are the answer; nothing more can be read */
};

struct http_reader {
        struct http_head head;
        struct span body;
        unsigned status;
        const char *why;

        /* private to reader.c */
        struct http_parser parser;
        char text[HTTP_HEAD_MAX];
        size_t text_size;
        size_t head_bytes;
        size_t url_size;
        enum http_reading reading;
        bool is_value;   /* the last piece of a field belongs to its value */
        bool is_in_body; /* the head is complete: further fields are trailers */
        char before;     /* the last byte of the head that was checked, and below the one before it */
        char before_that;
};

/* Call it at the start, and before each further request of the connection. */
void http_reader_init(struct http_reader *reader);

/* Parses up to the next event.  `ret_taken` is the number of bytes used; the rest must be fed again. */
enum http_reading http_reader_feed(struct http_reader *reader, struct span bytes, size_t *ret_taken);

/* The value of a field, NULL if there is none; `name` is in lower case.  Of several equal ones, the first. */
const struct span *http_head_field(const struct http_head *head, const char *name);

#endif
