/* webhook: sends each task to a URL.  README.md has the settings, what answers mean, and how a receiver checks them.
 *
 *         config = { url = "https://hooks.example.org/{key}"; };        the payload is the body, the answer the result
 *
 * Read webhook_handle() at the bottom first.  settings.c is what may be set, pattern.c fills in URL and headers,
 * exchange.c speaks HTTP, rules.c says what an answer means, destinations.c who is left alone for a while. */
#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#include "destinations.h"
#include "exchange.h"
#include "signature.h"
#include "target.h"

#define SHOWN 160 /* bytes of an answer that an error has in it */

/* Shared by the seats of a process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct destinations destinations;

/* One instance per seat. */
struct webhook {
        const struct qv_host *host;
        struct settings settings;
        struct exchange exchange;
        struct bytes text; /* of the URL or one header */
};

/* One task on its way. */
struct call {
        struct webhook *webhook;
        const struct qv_task *task;
        struct target target;
        char first[DESTINATION_NAME]; /* the destination before any redirect: the only one that gets secrets */
        uint64_t deadline_ms;
        int64_t redirects; /* that were followed */
        const char *why;   /* a redirect was not followed; NULL: none, or it was */
        struct answer answer;
};

/* --- the head of the request ------------------------------------------------------------------------------------- */

static int add_line(struct curl_slist **fields, const struct bytes *line)
{
        struct curl_slist *more = line->is_broken ? NULL : curl_slist_append(*fields, line->data);
        if (!more)
                return -ENOMEM;
        *fields = more;
        return 0;
}

/* libcurl leaves out "Name:"; a header without a value is "Name;". */
__attribute__((format(printf, 4, 5))) static int add(
        struct call *call, struct curl_slist **fields, const char *name, const char *format, ...)
{
        char value[QV_HEADER_MAX + 1];
        struct bytes *line = &call->webhook->text;
        va_list args;
        va_start(args, format);
        int size = vsnprintf(value, sizeof(value), format, args);
        va_end(args);
        if (size < 0 || (size_t)size >= sizeof(value))
                return 0;
        bytes_clear(line);
        bytes_put_text(line, name);
        bytes_put_text(line, *value ? ": " : ";");
        bytes_put_text(line, value);
        bytes_put(line, "", 1);
        return add_line(fields, line);
}

/* One of `headers`; a redirect to elsewhere gets none with a secret in it. */
static int add_field(struct call *call, struct curl_slist **fields, const struct field *field)
{
        struct bytes *line = &call->webhook->text;
        size_t empty;
        if (field->value.has_secret && strcmp(call->first, call->target.destination) != 0)
                return 0;
        bytes_clear(line);
        bytes_put_text(line, field->name);
        bytes_put_text(line, ": ");
        empty = line->size;
        switch (pattern_fill(&field->value, call->task, PATTERN_HEADER, now_boot_ms(), line)) {
        case PATTERN_BAD:
                return -EINVAL;
        case PATTERN_LEFT_OUT:
                return 0;
        case PATTERN_FILLED:
                break;
        }
        if (!line->is_broken && line->size == empty) {
                line->data[empty - 2] = ';';
                line->size--;
        }
        bytes_put(line, "", 1);
        return add_line(fields, line);
}

/* A header of the task that goes with the request under the same name. */
static int add_passed(struct call *call, struct curl_slist **fields, const char *name)
{
        const struct qv_header2 *header = qv_find_header(call->task, name);
        if (!header || header->is_bytes || settings_has_field(&call->webhook->settings, name))
                return 0;
        return add(call, fields, name, "%s", (const char *)header->value);
}

static int add_signature(struct call *call, struct curl_slist **fields)
{
        struct webhook *w = call->webhook;
        struct settings *s = &w->settings;
        struct bytes *line = &w->text;
        long long now = (long long)time(NULL);
        if (!s->keys_count)
                return 0;
        int r = add(call, fields, "webhook-id", "%s", call->task->id);
        if (r == 0)
                r = add(call, fields, "webhook-timestamp", "%lld", now);
        bytes_clear(line);
        bytes_put_text(line, "webhook-signature:");
        for (size_t i = 0; i < s->keys_count; i++) {
                bytes_put_text(line, " ");
                signature_put(line, secret_get(&s->keys[i], w->host, now_boot_ms()), call->task->id, now,
                        call->task->payload, s->has_body ? call->task->payload_size : 0);
        }
        bytes_put(line, "", 1);
        return r < 0 ? r : add_line(fields, line);
}

/* 0; -EINVAL: the task lacks something, its error is set; -ENOMEM. */
static int add_all(struct call *call, struct curl_slist **fields)
{
        const struct settings *s = &call->webhook->settings;
        int r = 0;
        for (size_t i = 0; i < s->fields_count && r == 0; i++)
                r = add_field(call, fields, &s->fields[i]);
        if (r == 0 && s->has_body && !settings_has_field(s, "Content-Type"))
                r = add(call, fields, "Content-Type", "application/octet-stream");
        if (r == 0 && !settings_has_field(s, "User-Agent"))
                r = add(call, fields, "User-Agent", "quiver-webhook/1.0");
        if (r == 0 && !settings_has_field(s, "Idempotency-Key"))
                r = add(call, fields, "Idempotency-Key", "%s", call->task->id);
        if (r == 0)
                r = add_passed(call, fields, "traceparent");
        if (r == 0)
                r = add_passed(call, fields, "tracestate");
        /* The body goes at once: waiting for a 100 costs a round trip. */
        if (r == 0) {
                struct bytes *line = &call->webhook->text;
                bytes_clear(line);
                bytes_put(line, "Expect:", sizeof("Expect:"));
                r = add_line(fields, line);
        }
        return r == 0 ? add_signature(call, fields) : r;
}

static void free_fields(struct curl_slist *fields)
{
        for (struct curl_slist *f = fields; f; f = f->next)
                explicit_bzero(f->data, strlen(f->data));
        curl_slist_free_all(fields);
}

/* --- on its way -------------------------------------------------------------------------------------------------- */

/* Whether the destination may be asked now.  QV_DONE or QV_LATER. */
static int32_t ask_destination(const struct call *call)
{
        const struct qv_task *task = call->task;
        const char *name = call->target.destination;
        uint64_t now = now_boot_ms();
        uint64_t try_ms = call->deadline_ms > now ? call->deadline_ms - now : 0;
        (void)pthread_mutex_lock(&lock);
        uint64_t wait_ms = destinations_ask(&destinations, name, now, try_ms + 1000);
        (void)pthread_mutex_unlock(&lock);
        if (!wait_ms)
                return QV_DONE;
        qv_errorf(task, "%s is left alone: it could not be asked before; again in %" PRIu64 " ms", name, wait_ms);
        (void)task->host->retry_after(task->host, task, wait_ms);
        return QV_LATER;
}

/* Remembers how it went. */
static void tell_destination(const struct call *call)
{
        const struct rules *rules = &call->webhook->settings.rules;
        const struct answer *answer = &call->answer;
        const char *name = call->target.destination;
        uint64_t now = now_boot_ms();
        (void)pthread_mutex_lock(&lock);
        switch (answer->kind) {
        case STOPPED:
        case FORBIDDEN:
                destinations_stopped(&destinations, name);
                break;
        case DOWN:
        case SILENT:
                /* If the handler pauses as a whole, the host tries when it is time. */
                if (rules->down != QV_UNAVAILABLE)
                        destinations_failed(&destinations, name, answer->kind == DOWN, now);
                break;
        case ANSWERED:
                destinations_answered(&destinations, name);
                if (answer->status == 503 && answer->retry_after_ms)
                        destinations_close(&destinations, name,
                                answer->retry_after_ms < rules->retry_after_max_ms ? answer->retry_after_ms
                                                                                   : rules->retry_after_max_ms,
                                now);
                break;
        }
        (void)pthread_mutex_unlock(&lock);
}

/* Sends it to call->target.  QV_DONE: call->answer is set; else the outcome. */
static int32_t send_once(struct call *call)
{
        struct webhook *w = call->webhook;
        const struct qv_task *task = call->task;
        struct curl_slist *fields = NULL;
        int r = add_all(call, &fields);
        int32_t outcome = r == 0 ? ask_destination(call) : r == -EINVAL ? QV_REJECT : QV_RETRY;
        if (r == -ENOMEM)
                qv_errorf(task, "out of memory, or a key of sign_keys cannot be used");
        if (outcome == QV_DONE) {
                call->answer = exchange_run(&w->exchange, &w->settings, task,
                        &(struct request){ .url = call->target.url,
                                .fields = fields,
                                .body = task->payload,
                                .body_size = task->payload_size,
                                .deadline_ms = call->deadline_ms });
                tell_destination(call);
        }
        free_fields(fields);
        return outcome;
}

/* Whether the answer is a redirect that may be followed; then call->target is where to. */
static bool follow(struct call *call)
{
        const struct settings *s = &call->webhook->settings;
        const char *where = exchange_redirect(&call->webhook->exchange);
        int status = call->answer.status;
        char why[TARGET_WHY];
        struct target next;
        if (call->answer.kind != ANSWERED || status < 300 || status > 399 || !where)
                return false;
        bool is_same_method = status == 307 || status == 308;
        if (call->redirects >= s->redirects)
                call->why = s->redirects ? "redirected too often" : "redirects are not followed";
        else if (!is_same_method && s->has_body)
                call->why = "only 307 and 308 keep the method and the body";
        if (call->why)
                return false;
        enum target_result result = target_parse(&next, where, &s->allowed, s->proxy != NULL, why);
        if (result == TARGET_FORBIDDEN) {
                call->answer = (struct answer){ .kind = FORBIDDEN };
                (void)snprintf(call->webhook->exchange.refused_text, sizeof(call->webhook->exchange.refused_text),
                        "%.150s", why);
                return false;
        }
        if (result == TARGET_BAD || (call->target.is_https && !next.is_https)) {
                call->why =
                        result == TARGET_BAD ? "it leads to no URL that can be used" : "it leads from https to http";
                if (result == TARGET_GOOD)
                        target_free(&next);
                return false;
        }
        target_free(&call->target);
        call->target = next;
        call->redirects++;
        return true;
}

/* Where the task goes.  QV_DONE or QV_REJECT. */
static int32_t aim(struct call *call)
{
        struct webhook *w = call->webhook;
        const struct settings *s = &w->settings;
        char why[TARGET_WHY];
        bytes_clear(&w->text);
        if (pattern_fill(&s->url, call->task, PATTERN_URL, now_boot_ms(), &w->text) == PATTERN_BAD)
                return QV_REJECT;
        bytes_put(&w->text, "", 1);
        if (w->text.is_broken)
                return qv_errorf(call->task, "out of memory"), QV_RETRY;
        if (!s->url.parts[0].is_raw && target_has_dots(w->text.data))
                return qv_errorf(call->task, "the URL would have . or .. as a part of its path"), QV_REJECT;
        if (target_parse(&call->target, w->text.data, &s->allowed, s->proxy != NULL, why) != TARGET_GOOD)
                return qv_errorf(call->task, "%s", why), QV_REJECT;
        (void)snprintf(call->first, sizeof(call->first), "%s", call->target.destination);
        return QV_DONE;
}

/* --- the outcome ------------------------------------------------------------------------------------------------- */

/* The beginning of the answer, as far as it can be read. */
static const char *shown(const struct bytes *body, char text[SHOWN + 3])
{
        size_t size = 0;
        for (size_t i = 0; i < body->size && size < SHOWN; i++) {
                char c = body->data[i];
                text[2 + size++] = c >= ' ' && c <= '~' ? c : c == '\n' || c == '\r' || c == '\t' ? ' ' : '?';
        }
        memcpy(text, ": ", 2);
        text[size ? size + 2 : 0] = 0;
        return text;
}

static void explain(const struct call *call)
{
        const struct exchange *x = &call->webhook->exchange;
        const char *name = call->target.destination;
        char text[SHOWN + 3];
        switch (call->answer.kind) {
        case ANSWERED:
                qv_errorf(call->task, "%s answered %d%s%s%s", name, call->answer.status, call->why ? ", " : "",
                        call->why ? call->why : "", shown(&x->body, text));
                break;
        case DOWN:
                qv_errorf(call->task, "%s cannot be reached: %s", name, x->problem);
                break;
        case SILENT:
                qv_errorf(call->task, "%s gave no whole answer: %s", name, x->problem);
                break;
        case FORBIDDEN:
                qv_errorf(call->task, "%s is refused: %s", name, x->refused_text);
                break;
        case STOPPED:
                qv_errorf(call->task, "stopped before %s answered", name);
                break;
        }
}

static int32_t give_result(const struct call *call)
{
        const struct webhook *w = call->webhook;
        const struct bytes *body = &w->exchange.body;
        const struct qv_task *task = call->task;
        if (!w->settings.has_result || !body->size)
                return QV_DONE;
        if (w->exchange.is_cut)
                qv_logf(task->host, QV_LOG_WARN,
                        "the answer of %s is longer than max_result = %" PRIu64 " bytes; the result has only these",
                        call->target.destination, w->settings.max_result);
        int32_t r = task->host->result(task->host, task, body->data, body->size);
        if (r < 0)
                qv_logf(task->host, QV_LOG_WARN, "the answer of %zu bytes is no result: %s; lower max_result",
                        body->size, strerror(-r));
        /* The other side has done it: that its answer is too long changes nothing about that. */
        return QV_DONE;
}

static int32_t judge(const struct call *call)
{
        struct verdict v = rules_judge(&call->webhook->settings.rules, &call->answer);
        if (v.outcome == QV_DONE)
                return give_result(call);
        explain(call);
        if (v.delay_ms)
                (void)call->task->host->retry_after(call->task->host, call->task, v.delay_ms);
        return v.outcome;
}

/* --- the plugin -------------------------------------------------------------------------------------------------- */

static uint64_t deadline_of(const struct settings *s, const struct qv_task *task)
{
        uint64_t own_ms = now_boot_ms() + s->timeout_ms;
        uint64_t task_ms = task->deadline_ns / 1000000;
        return task_ms && task_ms < own_ms ? task_ms : own_ms;
}

static int32_t webhook_handle(void *self, const struct qv_task *task)
{
        struct webhook *w = self;
        struct call call = { .webhook = w, .task = task, .deadline_ms = deadline_of(&w->settings, task) };
        int32_t outcome = aim(&call);
        if (outcome != QV_DONE)
                return outcome;
        do
                outcome = send_once(&call);
        while (outcome == QV_DONE && follow(&call));
        if (outcome == QV_DONE)
                outcome = judge(&call);
        target_free(&call.target);
        return outcome;
}

static void webhook_close(void *self)
{
        struct webhook *w = self;
        exchange_close(&w->exchange);
        settings_free(&w->settings);
        bytes_free(&w->text);
        free(w);
}

static int32_t webhook_init(const struct qv_host *host, void **ret_self)
{
        struct webhook *w = calloc(1, sizeof(*w));
        if (!w)
                return qv_init_errorf(host, "out of memory");
        w->host = host;
        if (settings_read(&w->settings, host) < 0) {
                free(w);
                return -1;
        }
        if (exchange_open(&w->exchange) < 0) {
                webhook_close(w);
                return qv_init_errorf(host, "out of memory");
        }
        *ret_self = w;
        return 0;
}

static int32_t webhook_load(const struct qv_host *host)
{
        return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : qv_init_errorf(host, "libcurl cannot be used");
}

static void webhook_unload(void)
{
        destinations_free(&destinations);
        curl_global_cleanup();
}

/* QV_THREADS: what the seats share is under their lock. */
QV_PLUGIN_EX(.flags = QV_THREADS, .name = "webhook", .version = "1.0", .init = webhook_init, .handle = webhook_handle,
        .close = webhook_close, .load = webhook_load, .unload = webhook_unload)
