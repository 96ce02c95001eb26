#include "trace/headers.h"

#include <string.h>
#include <strings.h>

static const struct span parent_name = { "traceparent", sizeof("traceparent") - 1 };
static const struct span state_name = { "tracestate", sizeof("tracestate") - 1 };

/* As in HTTP, names are case-insensitive. */
static bool is_named(struct span name, struct span as)
{
        return name.size == as.size && strncasecmp(name.data, as.data, as.size) == 0;
}

void trace_headers_read(struct span lines, struct trace_headers *ret)
{
        struct task_header header;
        *ret = (struct trace_headers){ .found = TRACE_ABSENT };
        while (header_next(&lines, &header)) {
                if (is_named(header.name, state_name) && !header.is_base64) {
                        ret->state = header.value;
                } else if (is_named(header.name, parent_name)) {
                        /* With two of them neither is trusted. */
                        bool is_good = ret->found == TRACE_ABSENT && !header.is_base64 &&
                                       trace_context_parse(header.value, &ret->context);
                        ret->found = is_good ? TRACE_GIVEN : TRACE_MALFORMED;
                }
        }
        if (ret->found != TRACE_GIVEN)
                ret->state = (struct span){ 0 };
}

/* Copies the whole line, including its "header." or "header64." prefix. */
static void copy_header(struct buffer *to, const struct task_header *header)
{
        const char *from = header->name.data - strlen(header->is_base64 ? "header64." : "header.");
        buffer_put(to, from, (size_t)(header->value.data + header->value.size - from));
        buffer_put(to, "\n", 1);
}

/* Lines of unknown names between the headers, which a newer Quiver wrote, are left out. */
static void copy_headers(struct buffer *to, struct span lines)
{
        struct task_header header;
        while (header_next(&lines, &header))
                copy_header(to, &header);
}

void trace_headers_put(struct buffer *to, struct span lines, const struct trace_context *context, struct span state)
{
        char text[TRACE_PARENT_TEXT];
        struct task_header header;
        struct span rest = lines;
        size_t before = to->size;
        size_t count = 1 + (state.size > 0);
        (void)header_put(to, parent_name, span_of_text(trace_context_put(text, context)), NULL);
        if (state.size)
                (void)header_put(to, state_name, state, NULL);
        while (header_next(&rest, &header)) {
                if (is_named(header.name, parent_name) || is_named(header.name, state_name))
                        continue;
                copy_header(to, &header);
                count++;
        }
        if (count <= TASK_HEADERS_MAX && to->size - before <= TASK_HEADER_LINES_MAX)
                return;
        to->size = before;
        copy_headers(to, lines);
}

void trace_headers_add(struct buffer *to, struct span lines, const struct trace_context *context, struct span state)
{
        struct trace_headers theirs;
        trace_headers_read(lines, &theirs);
        if (theirs.found == TRACE_ABSENT)
                trace_headers_put(to, lines, context, state);
        else
                copy_headers(to, lines);
}
