/* otlp.h: spans as OTLP/HTTP JSON, for receivers of traces (opentelemetry-proto and its JSON mapping).
 *
 * Ids are hexadecimal, 64-bit numbers are strings, member names are in lowerCamelCase, and kinds are numbers.  Each
 * invalid byte of a text becomes U+FFFD.  No I/O. */
#ifndef QUIVER_TRACE_OTLP_H
#define QUIVER_TRACE_OTLP_H

#include "base/buffer.h"
#include "trace/context.h"

#define TRACE_TEXT_MAX       1024u /* bytes of a text that are sent; the rest is cut */
#define TRACE_ATTRIBUTES_MAX 24u
#define TRACE_EVENTS_MAX     2u

enum trace_kind { TRACE_KIND_INTERNAL = 1, TRACE_KIND_CONSUMER = 5 };

/* A text, or a number if there is no text. */
struct trace_attribute {
        const char *name;
        struct span text; /* data NULL: a number */
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

/* A finished span.  Everything is borrowed. */
struct trace_span {
        struct trace_context context;
        struct trace_context parent; /* its span is zero: there is no parent */
        bool has_link;               /* a link to `parent`, which submitted the task */
        struct span state;           /* tracestate; empty: none */
        const char *name;
        enum trace_kind kind;
        uint64_t start_ns, end_ns; /* unix time */
        struct trace_attributes attributes;
        struct trace_event events[TRACE_EVENTS_MAX];
        uint32_t events_count;
        const char *error; /* NULL: no error */
};

/* Add to a list; further ones are ignored. */
void trace_add_text(struct trace_attributes *to, const char *name, struct span text);
void trace_add_number(struct trace_attributes *to, const char *name, uint64_t number);

/* Appends the span as a JSON object. */
void otlp_put_span(struct buffer *to, const struct trace_span *span);
/* Appends the part of a request before its spans, which are separated by commas, and the part after them.  `resource`
 * describes the sender. */
void otlp_put_head(struct buffer *to, const struct trace_attributes *resource, const char *version);
void otlp_put_tail(struct buffer *to);

/* How many spans the receiver did not accept although it answered 200; 0 if it reports none. */
uint64_t otlp_rejected(struct span reply);

#endif
