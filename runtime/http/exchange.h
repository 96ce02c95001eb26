/* exchange.h: one request and its answer, as the endpoints see it.
 *
 * An endpoint is called when the request is complete (or, if it streams, when its head is), and answers exactly once,
 * at once or later.  If the client leaves meanwhile, `gone` is called once, from the loop and never inside a call made
 * by the endpoint; the endpoint must answer nevertheless, and the answer is dropped.  Everything runs on the loop. */
#ifndef QUIVER_HTTP_EXCHANGE_H
#define QUIVER_HTTP_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "http/access.h"
#include "http/http.h"
#include "http/reader.h"

#define HTTP_PARAMETERS_MAX 24u

/* A named part of the path or a parameter of the query, decoded. */
struct http_parameter {
        const char *name;
        const char *value; /* NUL-terminated; has no NUL inside */
};

struct http_exchange {
        const struct http_head *head;
        struct http_who who;
        struct span body; /* the whole body; empty for an endpoint that streams */
        const struct http_services *services;
        struct http_server *server;
        struct http_parameter parameters[HTTP_PARAMETERS_MAX];
        uint32_t parameters_count;

        /* For the endpoint, which frees `call` before it answers. */
        void *call;
        void (*gone)(struct http_exchange *x);
        /* For an endpoint that streams: receives a piece of the body, and an empty span at its end.  Returns false to
         * pause; http_exchange_go_on() resumes. */
        bool (*piece)(struct http_exchange *x, struct span piece);
        /* The output was sent: there is room for more. */
        void (*drained)(struct http_exchange *x);

        bool is_cacheable;    /* a client may keep the answer and revalidate it */
        struct buffer fields; /* further fields of the answer */
        struct buffer texts;  /* owns the parameters' texts */
};

/* A named part of the path, or a parameter of the query; NULL: not given. */
const char *http_parameter(const struct http_exchange *x, const char *name);
/* A boolean parameter: given and not 0. */
bool http_is_asked(const struct http_exchange *x, const char *name);

/* Adds a field to the answer.  A name or value with control characters is ignored. */
void http_answer_field(struct http_exchange *x, const char *name, const char *value);

/* Answers.  The body is copied. */
void http_answer(struct http_exchange *x, unsigned status, const char *type, struct span body);
/* Answers with JSON; takes ownership of `object`. */
void http_answer_json(struct http_exchange *x, unsigned status, json_t *object);
/* Answers with an error: problem JSON (RFC 9457).  The text says what is wrong and what to do. */
__attribute__((format(printf, 3, 4))) void http_answer_problem(
        struct http_exchange *x, unsigned status, const char *format, ...);
/* Answers with an error for a failed request of the store: 503 if nothing was done, 504 if that is unknown. */
void http_answer_store_problem(struct http_exchange *x, int status, const char *text);

/* An answer of unknown length, in chunks. */
void http_stream_begin(struct http_exchange *x, unsigned status, const char *type);
void http_stream_write(struct http_exchange *x, struct span bytes);
void http_stream_end(struct http_exchange *x);
/* More than 1 MiB waits for a client that does not read: write no more for now. */
bool http_stream_is_full(const struct http_exchange *x);

/* Asks for the next piece of the body after a pause. */
void http_exchange_go_on(struct http_exchange *x);

#endif
