/* traces.h: the traces of a host: finished spans are recorded here, and sent to a receiver on the loop.
 *
 * When off, it costs nothing: callers check traces_is_on() first.  When on, a span costs its text in memory until it is
 * sent (export.h says when, and how much may wait).  On the loop only. */
#ifndef QUIVER_TRACE_TRACES_H
#define QUIVER_TRACE_TRACES_H

#include <uv.h>

#include "base/error.h"
#include "base/file/tls_files.h"
#include "base/strings.h"
#include "curl/curl_http.h"
#include "trace/export.h"
#include "trace/otlp.h"

/* Borrowed. */
struct traces_settings {
        const char *url; /* NULL: off */
        double ratio;
        uint64_t interval_ms;
        uint32_t queue_max;
        const struct strings *headers; /* lines */
        const char *headers_file;      /* further lines, which may be secret; NULL: none */
        struct tls_files tls;          /* read once, when traces are first switched on */
};

struct traces {
        struct trace_export export;
        double ratio;
        char *url;            /* NULL: off */
        struct strings lines; /* header lines of each request; may be secret */
        struct curl_http *http;
        struct curl_exchange exchange;
        bool is_out; /* a request is under way */
        uv_loop_t *loop;
        uv_timer_t timer;

        /* Set by the caller before traces_open(). */
        const char *app, *host, *instance;
};

void traces_open(struct traces *t, uv_loop_t *loop);
/* Applies settings, at the start and again later: spans that wait go to the new receiver.  0, or -errno with the text
 * set: nothing has changed. */
int traces_configure(struct traces *t, const struct traces_settings *settings, struct error *error);

/* NULL counts as off. */
static inline bool traces_is_on(const struct traces *t)
{
        return t && t->url;
}

/* Whether the trace is recorded: as its parent says, or, where a trace begins, by the ratio. */
bool traces_choose(const struct traces *t, const struct trace_context *context);
/* Records a finished span, which is sent later, or dropped and counted. */
void traces_record(struct traces *t, const struct trace_span *span, uint64_t now_ms);

/* The host stops: sends waiting spans.  True: that is done, or takes too long; call it again until then. */
bool traces_flush(struct traces *t, uint64_t now_ms);
/* Ends the request under way; the handles are closed on the loop. */
void traces_close(struct traces *t);
/* Call after the loop has ended. */
void traces_free(struct traces *t);

#endif
