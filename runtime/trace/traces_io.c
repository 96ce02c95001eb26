/* traces_io.c: sends batches of spans to their receiver, by libcurl. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"
#include "trace/traces.h"

#define REQUEST_MS       UINT64_C(10000)
#define CONNECT_MS       UINT64_C(5000)
#define REPLY_MAX        65536u
#define HEADERS_FILE_MAX 16384u

/* --- sending ----------------------------------------------------------------------------------------------------- */

static void step(struct traces *t);

static void on_timer(uv_timer_t *timer)
{
        step(timer->data);
}

static void set_timer(struct traces *t)
{
        uint64_t due_ms = trace_export_due_ms(&t->export);
        uint64_t now_ms = clock_boot_ms();
        /* A host that stops wakes up when its patience is over. */
        if (t->export.stop_ms > now_ms && t->export.stop_ms < due_ms)
                due_ms = t->export.stop_ms;
        if (due_ms == UINT64_MAX)
                (void)uv_timer_stop(&t->timer);
        else
                (void)uv_timer_start(&t->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void tell(const struct traces *t, enum trace_news news)
{
        const struct curl_exchange *x = &t->exchange;
        switch (news) {
        case TRACE_NEWS_NONE:
                break;
        case TRACE_NEWS_DROPPING:
                log_event(LEVEL_WARN, "traces-dropped", "url=%s queue=%" PRIu32 " text=%s", LOG_QUOTE(t->url),
                        t->export.queue_max,
                        LOG_QUOTE("spans come faster than the receiver takes them, and those that find no room are "
                                  "dropped and counted; lower traces.ratio, or see to the receiver"));
                break;
        case TRACE_NEWS_FAILING:
                log_event(LEVEL_WARN, "traces-failing", "url=%s status=%ld text=%s", LOG_QUOTE(x->url), x->http_code,
                        LOG_QUOTE(x->status < 0 ? x->error.text : "the receiver of traces does not take spans"));
                break;
        case TRACE_NEWS_WELL:
                log_event(LEVEL_INFO, "traces-taken", "url=%s failed=%" PRIu64 " dropped=%" PRIu64, LOG_QUOTE(x->url),
                        t->export.counts.failed, t->export.counts.dropped);
                break;
        }
}

static void on_done(struct curl_exchange *exchange)
{
        struct traces *t = (struct traces *)((char *)exchange - offsetof(struct traces, exchange));
        struct span reply = { (const char *)exchange->reply.data, exchange->reply.size };
        struct trace_answer answer = { .status = exchange->status,
                .http_code = exchange->http_code,
                .retry_after_ms = exchange->retry_after_ms,
                .rejected = exchange->status == 0 && exchange->http_code == 200 ? otlp_rejected(reply) : 0 };
        t->is_out = false;
        tell(t, trace_export_answered(&t->export, &answer, clock_boot_ms()));
        if (!t->url)
                trace_export_drop(&t->export);
        step(t);
}

static void put_resource(const struct traces *t, struct buffer *to)
{
        struct trace_attributes resource = { .count = 0 };
        trace_add_text(&resource, "service.name", SPAN_TEXT("quiver"));
        trace_add_text(&resource, "service.namespace", span_of_text(t->app));
        trace_add_text(&resource, "service.instance.id", span_of_text(t->instance));
        trace_add_text(&resource, "service.version", SPAN_TEXT(QUIVER_VERSION));
        trace_add_text(&resource, "quiver.host", span_of_text(t->host));
        otlp_put_head(to, &resource, QUIVER_VERSION);
}

static void step(struct traces *t)
{
        const struct trace_batch *batch = t->url && t->http ? trace_export_next(&t->export, clock_boot_ms()) : NULL;
        if (batch) {
                struct curl_exchange *x = &t->exchange;
                x->url = t->url;
                x->lines = &t->lines;
                x->reply_max = REPLY_MAX;
                x->limit_ms = REQUEST_MS;
                x->connect_ms = CONNECT_MS;
                x->done = on_done;
                buffer_clear(&x->body);
                put_resource(t, &x->body);
                buffer_put(&x->body, batch->spans.data, batch->spans.size);
                otlp_put_tail(&x->body);
                t->is_out = true;
                curl_http_start(t->http, x);
        }
        set_timer(t);
}

/* --- recording --------------------------------------------------------------------------------------------------- */

bool traces_choose(const struct traces *t, const struct trace_context *context)
{
        if (trace_context_has_span(context))
                return context->flags & TRACE_FLAG_SAMPLED;
        return trace_is_chosen(context->trace, t->ratio);
}

void traces_record(struct traces *t, const struct trace_span *span, uint64_t now_ms)
{
        if (trace_export_has_room(&t->export)) {
                otlp_put_span(trace_export_begin(&t->export, now_ms), span);
                trace_export_added(&t->export);
        } else {
                tell(t, trace_export_news(&t->export));
        }
        /* Only the first and the last span of a batch change when it is due. */
        if (!uv_is_active((uv_handle_t *)&t->timer) || t->export.waiting % TRACE_BATCH_MAX == 0)
                set_timer(t);
}

/* --- settings ---------------------------------------------------------------------------------------------------- */

static void forget_lines(struct strings *lines)
{
        for (size_t i = 0; i < lines->count; i++)
                explicit_bzero(lines->items[i], strlen(lines->items[i]));
        strings_free(lines);
        *lines = (struct strings){ 0 };
}

/* "NAME: VALUE" without control characters, which could inject another line. */
static bool is_line(const char *text, size_t size)
{
        const char *colon = memchr(text, ':', size);
        if (!colon || colon == text)
                return false;
        for (size_t i = 0; i < size; i++)
                if ((unsigned char)text[i] < ' ' || text[i] == 0x7f ||
                        (text + i < colon && !isalnum((unsigned char)text[i]) && !strchr("-_.", text[i])))
                        return false;
        return true;
}

static int take_lines(const char *path, struct buffer *b, struct strings *to, struct error *error)
{
        const char *at = buffer_text(b);
        for (unsigned number = 1; *at; number++) {
                size_t size = strcspn(at, "\n");
                const char *next = at[size] ? at + size + 1 : at + size;
                size -= size && at[size - 1] == '\r';
                if (size && at[0] != '#') {
                        if (!is_line(at, size))
                                return error_set(error, -EINVAL, "%s:%u: is not \"NAME: VALUE\"", path, number);
                        char *line = text_copy_part(at, size);
                        strings_add(to, line);
                        text_free_secret(line);
                }
                at = next;
        }
        return 0;
}

static int read_lines(const struct traces_settings *settings, struct strings *to, struct error *error)
{
        struct file_trust trust = { .verdict = FILE_TRUST_SOUND };
        struct buffer b = { 0 };
        int r = 0;
        for (size_t i = 0; settings->headers && i < settings->headers->count; i++)
                strings_add(to, settings->headers->items[i]);
        if (!settings->headers_file)
                return 0;
        (void)buffer_reserve(&b, 2 * HEADERS_FILE_MAX); /* never reallocated, so no copy stays behind in freed memory */
        r = file_read(settings->headers_file, HEADERS_FILE_MAX, &b, NULL, &trust, error);
        if (r == 0 && trust.verdict != FILE_TRUST_SOUND)
                r = error_set(error, -EPERM, "%s: %s", settings->headers_file, trust.why.text);
        if (r == 0)
                r = take_lines(settings->headers_file, &b, to, error);
        explicit_bzero(b.data, b.room);
        buffer_free(&b);
        return r;
}

int traces_configure(struct traces *t, const struct traces_settings *settings, struct error *error)
{
        struct strings lines = { 0 };
        int r = settings->url ? read_lines(settings, &lines, error) : 0;
        if (r == 0 && settings->url && !t->http) {
                const struct curl_http_options options = { .tls = settings->tls };
                t->http = curl_http_new(t->loop, &options, error);
                r = t->http ? 0 : -ENOTSUP;
        }
        if (r < 0) {
                forget_lines(&lines);
                return error_prefix(error, r, "traces");
        }
        forget_lines(&t->lines);
        t->lines = lines;
        free(t->url);
        t->url = text_copy(settings->url);
        t->ratio = settings->ratio;
        t->export.interval_ms = settings->interval_ms;
        t->export.queue_max = settings->queue_max;
        /* A batch that is being sent ends by itself. */
        if (!t->url && !t->is_out)
                trace_export_drop(&t->export);
        step(t);
        return 0;
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

void traces_open(struct traces *t, uv_loop_t *loop)
{
        t->loop = loop;
        t->timer.data = t;
        (void)uv_timer_init(loop, &t->timer);
        trace_export_init(&t->export, 0, 0, clock_boot_ns());
}

bool traces_flush(struct traces *t, uint64_t now_ms)
{
        if (!traces_is_on(t))
                return true;
        bool is_over = trace_export_stop(&t->export, now_ms);
        if (!is_over)
                step(t);
        else if (t->export.waiting)
                log_event(LEVEL_WARN, "traces-dropped", "spans=%" PRIu32 " text=%s", t->export.waiting,
                        LOG_QUOTE("the receiver of traces did not take them before the host stopped"));
        return is_over;
}

static void on_freed(void *self)
{
        (void)self;
}

void traces_close(struct traces *t)
{
        if (t->is_out)
                curl_http_cancel(&t->exchange);
        t->is_out = false;
        if (t->http)
                curl_http_free(t->http, on_freed, NULL);
        t->http = NULL;
        if (t->loop)
                uv_close((uv_handle_t *)&t->timer, NULL);
}

void traces_free(struct traces *t)
{
        forget_lines(&t->lines);
        trace_export_free(&t->export);
        curl_exchange_free(&t->exchange);
        free(t->url);
        t->url = NULL;
}
