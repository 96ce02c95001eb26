/* http_answer.h: parses one HTTP/1.1 answer: a status and a body of known length or in chunks.
 *
 * Strict, because any program may answer on a socket: a head or body that is too large, two lengths, a length beside
 * chunks, or no length at all is refused.  Plain data, no I/O, no clock. */
#ifndef QUIVER_CLIENT_HTTP_ANSWER_H
#define QUIVER_CLIENT_HTTP_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

#define HTTP_ANSWER_HEAD_MAX ((size_t)16 * 1024)         /* all lines except the body */
#define HTTP_ANSWER_BODY_MAX ((size_t)128 * 1024 * 1024) /* the largest payload in base64, and more */

enum http_answer_part {
        ANSWER_STATUS,
        ANSWER_FIELDS,
        ANSWER_BODY,
        ANSWER_CHUNK,
        ANSWER_CHUNK_END,
        ANSWER_TRAILERS,
        ANSWER_WHOLE
};

/* Zero-initialised waits for the first byte.  Free with http_answer_free(). */
struct http_answer {
        unsigned status;
        struct buffer body;

        /* private */
        enum http_answer_part part;
        struct buffer line;
        size_t head_bytes;
        bool has_length, is_chunked;
        uint64_t left; /* bytes of the body or chunk still to come */
};

/* Takes the next bytes, however they are split.  1: the answer is complete; 0: more must follow; -EBADMSG: not a valid
 * answer; -EMSGSIZE: it is too large.  After an error or the end it must not be called again. */
int http_answer_feed(struct http_answer *a, struct span bytes);
void http_answer_free(struct http_answer *a);

#endif
