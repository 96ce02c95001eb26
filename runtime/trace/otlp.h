/* otlp.h: spans as OTLP/HTTP JSON, which receivers of traces take (opentelemetry-proto, its mapping to JSON).
 *
 * Ids are hexadecimal there, numbers of 64 bits are strings, names of members are in lowerCamelCase, and kinds are
 * numbers.  Texts that are no UTF-8 get U+FFFD for each byte that is none.  No I/O. */
#ifndef QUIVER_TRACE_OTLP_H
#define QUIVER_TRACE_OTLP_H

#include "base/buffer.h"
#include "trace/context.h"

#define TRACE_TEXT_MAX       1024u /* bytes of a text that are sent; the rest is cut off */
#define TRACE_ATTRIBUTES_MAX 24u
#define TRACE_EVENTS_MAX     2u

enum trace_kind { TRACE_KIND_INTERNAL = 1, TRACE_KIND_CONSUMER = 5 };

/* A text, or without one a number. */
struct trace_attribute {
        const char *name;
        struct span text; /* data is NULL: it is a number */
        uint64_t number;
};

struct trace_attributes {
        struct trace_attribute list[TRACE_ATTRIBUTES_MAX];
        uint32_t count;
};

struct trace_event {
        const char *name;
        uint64_t at_ns;
        struct trace_attributes attributes;
};

/* One span that is over.  All of it is borrowed. */
struct trace_span {
        struct trace_context context;
        struct trace_context parent; /* without a span: it has none */
        bool has_link;               /* to `parent`: what submitted it */
        struct span state;           /* tracestate; empty: none */
        const char *name;
        enum trace_kind kind;
        uint64_t start_ns, end_ns; /* unix time */
        struct trace_attributes attributes;
        struct trace_event events[TRACE_EVENTS_MAX];
        uint32_t events_count;
        const char *error; /* what went wrong; NULL: nothing did */
};

/* Add to a list; what is too many is left out. */
void trace_add_text(struct trace_attributes *to, const char *name, struct span text);
void trace_add_number(struct trace_attributes *to, const char *name, uint64_t number);

/* Appends the span as a JSON object. */
void otlp_put_span(struct buffer *to, const struct trace_span *span);
/* Appends what a request says before its spans, which commas divide, and after them.  `resource` is who says it. */
void otlp_put_head(struct buffer *to, const struct trace_attributes *resource, const char *version);
void otlp_put_tail(struct buffer *to);

/* How many spans of a request the receiver did not take, though it answered 200; 0 if it says nothing of the kind. */
uint64_t otlp_rejected(struct span reply);

#endif
