/* Any bytes as a traceparent, and any headers of a task: what is accepted is written back as it was read, what is made
 * of headers is headers, and a span of them is JSON. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "task/envelope.h"
#include "trace/headers.h"
#include "trace/otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_so)
{
        if (!is_so)
                abort();
}

static void check_text(struct span text)
{
        struct trace_context context, again;
        char back[TRACE_PARENT_TEXT];
        if (!trace_context_parse(text, &context))
                return;
        check(text.size >= TRACE_PARENT_TEXT - 1 && trace_context_has_span(&context));
        (void)trace_context_put(back, &context);
        check(strlen(back) == TRACE_PARENT_TEXT - 1);
        check(trace_context_parse(span_of_text(back), &again) && !memcmp(&context, &again, sizeof(context)));
        /* The version and the flags may be others; the ids are not. */
        check(!memcmp(back + 2, text.data + 2, 51));
}

static void check_span(const struct trace_headers *found)
{
        struct trace_span span = { .context = found->context,
                .parent = found->context,
                .has_link = true,
                .state = found->state,
                .name = "process fuzz",
                .kind = TRACE_KIND_CONSUMER };
        struct buffer b = { 0 };
        otlp_put_span(&b, &span);
        json_t *o = json_loadb((const char *)b.data, b.size, JSON_ALLOW_NUL, NULL);
        check(o != NULL);
        json_decref(o);
        buffer_free(&b);
}

/* The headers of an envelope that is one stay those of one. */
static void check_headers(const uint8_t *data, size_t size)
{
        struct envelope e = { .lane = LANE_NORMAL };
        struct trace_headers found, put;
        struct buffer b = { 0 };
        struct trace_context context = trace_context_begin(SPAN_TEXT("fuzz"), SPAN_TEXT("1"));
        if (envelope_parse(data, size, &e, NULL) < 0)
                return;
        trace_headers_read(e.headers, &found);
        context = trace_context_within(&context, TRACE_SPAN_ATTEMPT, SPAN_TEXT("1"), size, 1);
        trace_headers_put(&b, e.headers, &context, found.state);
        e.others = (struct span){ 0 };
        e.headers = (struct span){ (const char *)b.data, b.size };
        check(envelope_check(&e, NULL) == 0);
        trace_headers_read(e.headers, &put);
        if (put.found == TRACE_GIVEN)
                check_span(&put);
        buffer_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        check_text((struct span){ (const char *)data, size });
        check_headers(data, size);
        (void)otlp_rejected((struct span){ (const char *)data, size });
        return 0;
}
