/* headers.h: the trace in a task's headers: traceparent, the position in the trace, and tracestate, which is passed on
 * unchanged for other programs.  No I/O. */
#ifndef QUIVER_TRACE_HEADERS_H
#define QUIVER_TRACE_HEADERS_H

#include "base/buffer.h"
#include "task/envelope.h"
#include "trace/context.h"

#define TRACE_LINES_ROOM 128u /* bytes of the two lines, without the value of tracestate */

enum trace_found {
        TRACE_ABSENT,
        TRACE_GIVEN,
        TRACE_MALFORMED, /* a new trace begins; the tracestate, which belongs to the other trace, is dropped */
};

struct trace_headers {
        enum trace_found found;
        struct trace_context context; /* valid if TRACE_GIVEN */
        struct span state;            /* valid if TRACE_GIVEN; empty: none */
};

/* `lines` as header_next() reads them; names are case-insensitive. */
void trace_headers_read(struct span lines, struct trace_headers *ret);
/* Appends the lines with this traceparent instead of theirs, and this tracestate or none.  If that makes too many or
 * too long headers, the lines stay as they are. */
void trace_headers_put(struct buffer *to, struct span lines, const struct trace_context *context, struct span state);
/* The same, but leaves lines that have a traceparent as they are. */
void trace_headers_add(struct buffer *to, struct span lines, const struct trace_context *context, struct span state);

#endif
