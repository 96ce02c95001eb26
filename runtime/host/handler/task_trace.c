#include "host/handler/task_trace.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/sha256.h"
#include "host/shard/shard.h"

#define KEY_HASH_BYTES TRACE_SPAN_ID_SIZE
/* A longer wait comes from a wrong submission time. */
#define WAIT_MAX_NS (UINT64_C(365 * 86400) * NS_PER_S)

/* --- finding the trace ------------------------------------------------------------------------------------------- */

void task_trace_of(const struct traces *traces, const struct task_start *start, struct task_trace *ret)
{
        const struct claimed *c = start->claimed;
        struct trace_headers given;
        bool is_on = traces_is_on(traces);
        trace_headers_read(c->headers, &given);
        *ret = (struct task_trace){ .found = given.found, .attempt = given };
        ret->is_known = is_on || given.found == TRACE_GIVEN;
        if (!is_on)
                return;
        struct trace_context begun =
                given.found == TRACE_GIVEN ? given.context : trace_context_begin(span_of_text(traces->app), c->id);
        ret->is_recorded = traces_choose(traces, &begun);
        if (given.found != TRACE_GIVEN && ret->is_recorded)
                begun.flags |= TRACE_FLAG_SAMPLED;
        ret->wait = trace_context_within(&begun, TRACE_SPAN_WAIT, c->id, 0, 0);
        ret->parent = given.found == TRACE_GIVEN ? begun : ret->wait;
        ret->attempt = (struct trace_headers){ .found = TRACE_GIVEN,
                .context =
                        trace_context_within(&begun, TRACE_SPAN_ATTEMPT, c->id, start->fence_epoch, start->fence_start),
                .state = given.state };
}

static bool is_fresh(const struct claimed *c)
{
        return !c->attempts && !c->crashes && !c->interruptions && !c->laters;
}

struct span task_trace_headers(struct traces *traces, const struct task_start *start, struct buffer *room)
{
        struct task_trace trace;
        if (!traces_is_on(traces))
                return start->claimed->headers;
        task_trace_of(traces, start, &trace);
        traces->export.counts.malformed += trace.found == TRACE_MALFORMED && is_fresh(start->claimed);
        buffer_clear(room);
        trace_headers_put(room, start->claimed->headers, &trace.attempt.context, trace.attempt.state);
        return (struct span){ (const char *)room->data, room->size };
}

/* --- the log ----------------------------------------------------------------------------------------------------- */

static const char *put_field(char to[static TASK_TRACE_FIELD], const struct trace_context *context)
{
        char id[TRACE_ID_TEXT];
        (void)snprintf(to, TASK_TRACE_FIELD, " trace=%s", trace_id_put(id, context->trace));
        return to;
}

const char *task_trace_field(
        char to[static TASK_TRACE_FIELD], const struct traces *traces, const struct claimed *claimed)
{
        struct task_trace trace;
        task_trace_of(traces, &(struct task_start){ .claimed = claimed }, &trace);
        return trace.is_known ? put_field(to, &trace.attempt.context) : "";
}

const char *task_trace_field_packed(char to[static TASK_TRACE_FIELD], const struct ring_task *task)
{
        struct reader headers;
        struct ring_task_header header;
        struct trace_context context;
        reader_init(&headers, task->headers, task->headers_size);
        while (headers.size && ring_next_header(&headers, &header) == 0)
                if (!strcasecmp(header.name, "traceparent") &&
                        trace_context_parse((struct span){ header.value, header.value_size }, &context))
                        return put_field(to, &context);
        return "";
}

/* --- spans ------------------------------------------------------------------------------------------------------- */

/* Keys may be names of people.  With a hash, a receiver can tell keys apart but not read them. */
static const char *hash_key(char to[static 2 * KEY_HASH_BYTES + 1], struct span key)
{
        uint8_t digest[SHA256_SIZE];
        struct sha256 hash;
        sha256_init(&hash);
        sha256_put(&hash, key.data, key.size);
        sha256_end(&hash, digest);
        return trace_span_id_put(to, digest);
}

/* "done", "timed_out". */
static const char *outcome_word(char to[static 16], enum outcome outcome)
{
        size_t i = 0;
        for (const char *c = outcome_name((int)outcome); *c && i < 15; c++)
                to[i++] = (char)tolower((unsigned char)*c);
        to[i] = 0;
        return to;
}

static bool is_error(enum outcome outcome)
{
        return outcome == OUTCOME_RETRY || outcome == OUTCOME_REJECT || outcome == OUTCOME_UNAVAILABLE ||
               outcome == OUTCOME_CRASHED || outcome == OUTCOME_TIMED_OUT;
}

static void add_event(struct trace_span *span, const char *name, uint64_t at_ns, struct trace_attributes attributes)
{
        if (span->events_count < TRACE_EVENTS_MAX)
                span->events[span->events_count++] = (struct trace_event){ name, at_ns, attributes };
}

static void add_events(struct trace_span *span, const struct task_attempt *attempt)
{
        const struct settled *settled = attempt->settled;
        const struct store_outcome *next = attempt->pending ? &attempt->pending->outcome : NULL;
        struct trace_attributes list = { .count = 0 };
        if (settled->outcome == OUTCOME_CRASHED || settled->outcome == OUTCOME_TIMED_OUT || settled->is_suspect) {
                trace_add_text(&list, "exception.message", span_of_text(settled->error));
                add_event(span, settled->is_suspect ? "suspect" : "crash", span->end_ns, list);
                list.count = 0;
        }
        if (next && next->kind == STORE_RETRY) {
                trace_add_number(&list, "quiver.again_ms", next->delay_ms);
                add_event(span, "retry", span->end_ns, list);
        } else if (next && (next->kind == STORE_DEAD || next->kind == STORE_HOLD)) {
                trace_add_text(&list, "quiver.reason", next->reason);
                add_event(span, next->kind == STORE_DEAD ? "dead" : "held", span->end_ns, list);
        } else if (settled->outcome == OUTCOME_INTERRUPTED) {
                trace_add_text(&list, "quiver.reason", span_of_text(settled->error));
                add_event(span, "interrupted", span->end_ns, list);
        }
}

static void record_wait(struct traces *traces, const struct task_trace *trace, const struct task_start *start,
        const struct task_attempt *attempt, uint64_t now_ms)
{
        const struct claimed *c = start->claimed;
        char name[TASK_HANDLER_MAX + 8];
        uint64_t end_ns = attempt->started_ns + attempt->wall_ahead_ns;
        uint64_t begin_ns =
                c->submitted_ms ? c->submitted_ms * NS_PER_MS : c->claimed_ms * NS_PER_MS + attempt->wall_ahead_ns;
        /* A producer's clock may be ahead of ours. */
        if (begin_ns > end_ns || end_ns - begin_ns > WAIT_MAX_NS)
                begin_ns = end_ns;
        (void)snprintf(name, sizeof(name), "wait %.*s", (int)c->handler.size, c->handler.data);
        bool has_parent = trace->found == TRACE_GIVEN;
        struct trace_span span = { .context = trace->wait,
                .parent = has_parent ? trace->parent : (struct trace_context){ .flags = 0 },
                .has_link = has_parent,
                .state = trace->attempt.state,
                .name = name,
                .kind = TRACE_KIND_INTERNAL,
                .start_ns = begin_ns,
                .end_ns = end_ns };
        trace_add_text(&span.attributes, "messaging.message.id", c->id);
        trace_add_text(&span.attributes, "quiver.handler", c->handler);
        trace_add_number(&span.attributes, "quiver.shard", attempt->shard->number);
        traces_record(traces, &span, now_ms);
}

static void describe(struct trace_span *span, const struct task_start *start, const struct task_attempt *attempt,
        const char *key_hash, const char *fence, const char *outcome)
{
        const struct claimed *c = start->claimed;
        struct trace_attributes *to = &span->attributes;
        trace_add_text(to, "messaging.system", SPAN_TEXT("quiver"));
        trace_add_text(to, "messaging.operation.name", SPAN_TEXT("process"));
        trace_add_text(to, "messaging.operation.type", SPAN_TEXT("process"));
        trace_add_text(to, "messaging.destination.name", c->handler);
        trace_add_text(to, "messaging.message.id", c->id);
        trace_add_text(to, "quiver.handler", span_of_text(attempt->handler));
        trace_add_text(to, "quiver.host", span_of_text(attempt->host));
        if (attempt->worker)
                trace_add_text(to, "quiver.worker", span_of_text(attempt->worker));
        if (attempt->is_borrowed)
                trace_add_text(to, "quiver.seat", SPAN_TEXT("borrowed"));
        if (*attempt->generation)
                trace_add_text(to, "quiver.plugin_version", span_of_text(attempt->generation));
        trace_add_number(to, "quiver.attempt", (uint64_t)c->attempts + 1);
        trace_add_number(to, "quiver.crashes", c->crashes);
        trace_add_text(to, "quiver.outcome", span_of_text(outcome));
        trace_add_text(to, "quiver.lane", span_of_text(lane_name(STORE_SEQ_LANE(c->seq))));
        trace_add_number(to, "quiver.shard", attempt->shard->number);
        trace_add_text(to, "quiver.key_hash", span_of_text(key_hash));
        trace_add_text(to, "quiver.fence", span_of_text(fence));
        if (span->error)
                trace_add_text(to, "error.type", span_of_text(outcome));
}

void task_trace_record(
        struct traces *traces, const struct task_start *start, const struct task_attempt *attempt, uint64_t now_ms)
{
        const struct claimed *c = start->claimed;
        char name[TASK_HANDLER_MAX + 16], key_hash[2 * KEY_HASH_BYTES + 1], fence[48], outcome[16];
        struct task_trace trace;
        task_trace_of(traces, start, &trace);
        if (!trace.is_recorded)
                return;
        if (is_fresh(c))
                record_wait(traces, &trace, start, attempt, now_ms);
        (void)snprintf(name, sizeof(name), "process %.*s", (int)c->handler.size, c->handler.data);
        (void)snprintf(fence, sizeof(fence), "%" PRIu64 ".%" PRIu64, start->fence_epoch, start->fence_start);
        struct trace_span span = { .context = trace.attempt.context,
                .parent = trace.parent,
                .has_link = trace.found == TRACE_GIVEN,
                .state = trace.attempt.state,
                .name = name,
                .kind = TRACE_KIND_CONSUMER,
                .start_ns = attempt->started_ns + attempt->wall_ahead_ns,
                .end_ns = attempt->ended_ns + attempt->wall_ahead_ns,
                .error = is_error(attempt->settled->outcome) ? attempt->settled->error : NULL };
        describe(&span, start, attempt, hash_key(key_hash, c->key), fence,
                outcome_word(outcome, attempt->settled->outcome));
        add_events(&span, attempt);
        traces_record(traces, &span, now_ms);
}
