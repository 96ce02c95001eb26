/* route.h: which endpoint answers a request. */
#ifndef QUIVER_HTTP_ROUTE_H
#define QUIVER_HTTP_ROUTE_H

#include "http/exchange.h"

struct http_route {
        enum http_verb verb;
        const char *path; /* "/v1/tasks/:id/cancel": a part that begins with a colon is a parameter */
        unsigned role;    /* the required role; ROLE_NONE: anybody */
        /* The allowed parameters of the query, separated by spaces; others are refused by name. */
        const char *parameters;
        bool has_body;
        bool is_streamed; /* called after the head; gets the body through x->piece */
        void (*start)(struct http_exchange *x);
};

/* Finds the route and fills in x->parameters.  NULL: answer with *ret_status, 404, 405 or 400, and the text. */
const struct http_route *http_route_find(struct http_exchange *x, unsigned *ret_status, struct error *error);

/* Decodes %XX; false if it is malformed or gives a NUL.  Appends a NUL-terminated text. */
bool http_decode(struct buffer *to, struct span text, bool has_plus);

#endif
