/* traces.h: the traces of a host: spans that are over are recorded here, and sent to a receiver on the loop.
 *
 * Off, it costs nothing: whoever has a span asks traces_is_on() first.  On, a span costs its text in memory until it is
 * sent (export.h says when, and how much waits at most).  On the loop only. */
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
        const char *headers_file;      /* further lines, which nobody else is to read; NULL: none */
        struct tls_files tls;          /* read once, when traces are first on */
};

struct traces {
        struct trace_export export;
        double ratio;
        char *url;            /* NULL: off */
        struct strings lines; /* of each request; they may be secret */
        struct curl_http *http;
        struct curl_exchange exchange;
        bool is_out; /* the exchange is under way */
        uv_loop_t *loop;
        uv_timer_t timer;

        /* Set by the caller before traces_open(). */
        const char *app, *host, *instance;
};

void traces_open(struct traces *t, uv_loop_t *loop);
/* Now, and when there are others: what waits goes to the new receiver.  0, or -errno with the text set: nothing has
 * changed. */
int traces_configure(struct traces *t, const struct traces_settings *settings, struct error *error);

/* NULL is off. */
static inline bool traces_is_on(const struct traces *t)
{
        return t && t->url;
}

/* Whether it is recorded: as its parent says, or, where a trace begins, one of so many. */
bool traces_choose(const struct traces *t, const struct trace_context *context);
/* A span is over; it is sent later, or dropped and counted. */
void traces_record(struct traces *t, const struct trace_span *span, uint64_t now_ms);

/* The host stops: what waits is sent.  True: that is done, or takes too long; ask again. */
bool traces_flush(struct traces *t, uint64_t now_ms);
/* Ends what is under way; handles are closed on the loop. */
void traces_close(struct traces *t);
/* After the loop. */
void traces_free(struct traces *t);

#endif
