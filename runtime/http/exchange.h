/* exchange.h: one request and its answer, as the endpoints see it.
 *
 * An endpoint is called when the request is complete (or, if it streams, when its head is), and answers exactly once,
 * at once or later.  If the client leaves meanwhile, `gone` is called once, by the loop and not from within a call of
 * the endpoint's; the endpoint answers all the same, and the answer is dropped.  Everything runs on the loop. */
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

/* A part of the path that the route names, or a parameter of the query; decoded. */
struct http_parameter {
        const char *name;
        const char *value; /* NUL-terminated; has no NUL inside */
};

struct http_exchange {
        const struct http_head *head;
        struct http_who who;
        struct span body; /* all of it; empty for an endpoint that streams */
        const struct http_services *services;
        struct http_server *server;
        struct http_parameter parameters[HTTP_PARAMETERS_MAX];
        uint32_t parameters_count;

        /* The endpoint's.  It frees `call` before it answers. */
        void *call;
        void (*gone)(struct http_exchange *x);
        /* Of an endpoint that streams: a piece of the body, and its end (an empty span).  It returns false if it wants
         * no more for now; http_exchange_go_on() then asks for the next. */
        bool (*piece)(struct http_exchange *x, struct span piece);
        /* What was streamed has been sent: there is room for more. */
        void (*drained)(struct http_exchange *x);

        bool is_cacheable;    /* A client may keep the answer and ask whether it still holds. */
        struct buffer fields; /* of the answer, besides the usual ones */
        struct buffer texts;  /* holds what the parameters point to */
};

/* A named part of the path, or a parameter of the query; NULL if it was not given. */
const char *http_parameter(const struct http_exchange *x, const char *name);
/* A parameter that says yes or no: it was given, and is not 0. */
bool http_is_asked(const struct http_exchange *x, const char *name);

/* Adds a field to the answer.  Neither part may have control characters; what has is left out. */
void http_answer_field(struct http_exchange *x, const char *name, const char *value);

/* Answers.  The body is copied. */
void http_answer(struct http_exchange *x, unsigned status, const char *type, struct span body);
/* Answers with JSON; takes `object`. */
void http_answer_json(struct http_exchange *x, unsigned status, json_t *object);
/* Answers with an error: problem JSON (RFC 9457).  The text says what is wrong and what to do. */
__attribute__((format(printf, 3, 4))) void http_answer_problem(
        struct http_exchange *x, unsigned status, const char *format, ...);
/* The same for a request of the store that failed: 503 if nothing was done, 504 if that is not known. */
void http_answer_store_problem(struct http_exchange *x, int status, const char *text);

/* An answer whose length is not known when it begins: in chunks. */
void http_stream_begin(struct http_exchange *x, unsigned status, const char *type);
void http_stream_write(struct http_exchange *x, struct span bytes);
void http_stream_end(struct http_exchange *x);
/* More than a MiB waits for a client that does not read: write no more for now. */
bool http_stream_is_full(const struct http_exchange *x);

/* The next piece of the body is wanted again. */
void http_exchange_go_on(struct http_exchange *x);

#endif
