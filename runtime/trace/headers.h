/* headers.h: the trace in a task's headers: traceparent, which says where it is, and tracestate, which other programs
 * need and which is passed on as it came.  No I/O. */
#ifndef QUIVER_TRACE_HEADERS_H
#define QUIVER_TRACE_HEADERS_H

#include "base/buffer.h"
#include "task/envelope.h"
#include "trace/context.h"

#define TRACE_LINES_ROOM 128u /* bytes of the two lines, without the value of tracestate */

enum trace_found {
        TRACE_ABSENT,
        TRACE_GIVEN,
        TRACE_MALFORMED, /* a new trace begins, and the tracestate, which belongs to the other, is dropped */
};

struct trace_headers {
        enum trace_found found;
        struct trace_context context; /* TRACE_GIVEN */
        struct span state;            /* the same; empty: none */
};

/* `lines` as header_next() reads them; names in capitals or not. */
void trace_headers_read(struct span lines, struct trace_headers *ret);
/* Appends the lines, with this traceparent in place of theirs, and with this tracestate or none.  If that is one header
 * too many for a task, or too long, they stay as they are. */
void trace_headers_put(struct buffer *to, struct span lines, const struct trace_context *context, struct span state);
/* The same for lines that may have a traceparent: then they stay as they are. */
void trace_headers_add(struct buffer *to, struct span lines, const struct trace_context *context, struct span state);

#endif
