#include "host/shard/pending_outcome.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The outcome of nearly every task: done, and nothing else to say.  Shared by all of them, in memory that cannot be
 * written, so that these tasks need no memory for it. */
static const struct pending_outcome plain_done = { .outcome.kind = STORE_DONE };

static struct pending_outcome *make(enum store_outcome_kind kind, size_t room)
{
        struct pending_outcome *pending = memory_alloc(sizeof(*pending) + room);
        *pending = (struct pending_outcome){ .outcome.kind = kind, .room = room };
        return pending;
}

void pending_outcome_free(struct pending_outcome *pending)
{
        if (!pending || pending == &plain_done)
                return;
        free(pending->follow_ups);
        free(pending->merged);
        free(pending);
}

static struct span keep(struct pending_outcome *pending, const void *data, size_t size)
{
        char *to = pending->bytes + pending->size;
        assert(size <= pending->room - pending->size);
        if (size)
                memcpy(to, data, size);
        pending->size += size;
        return (struct span){ to, size };
}

struct pending_outcome *pending_outcome_new(enum store_outcome_kind kind, enum task_cost cost, const char *error)
{
        size_t size = strlen(error);
        struct pending_outcome *pending = make(kind, size);
        pending->outcome.cost = cost;
        pending->outcome.error = keep(pending, error, size);
        return pending;
}

struct pending_outcome *pending_outcome_divert(const char *reason, const char *name)
{
        struct pending_outcome *pending = make(STORE_DIVERT, strlen(reason) + strlen(name));
        pending->outcome.reason = keep(pending, reason, strlen(reason));
        pending->outcome.name = keep(pending, name, strlen(name));
        return pending;
}

struct pending_outcome *pending_outcome_start(const char *holder)
{
        struct pending_outcome *pending = make(STORE_START, strlen(holder));
        pending->outcome.holder = keep(pending, holder, strlen(holder));
        return pending;
}

struct pending_outcome *pending_outcome_checkpoint(const void *data, size_t size)
{
        struct pending_outcome *pending = make(STORE_CHECKPOINT, size);
        pending->outcome.checkpoint = keep(pending, data, size);
        return pending;
}

struct pending_outcome *pending_outcome_merge(uint32_t count)
{
        struct pending_outcome *pending = make(STORE_MERGE, 0);
        pending->merged = memory_zero(count, sizeof(*pending->merged));
        pending->outcome.merged = pending->merged;
        pending->outcome.merged_count = count;
        return pending;
}

static int put_headers(struct buffer *to, const struct ring_submit *submit, struct error *error)
{
        struct reader headers;
        struct ring_task_header header;
        reader_init(&headers, submit->headers, submit->headers_size);
        while (headers.size) {
                if (ring_next_header(&headers, &header) < 0)
                        return error_set(error, -EBADMSG, "a follow-up's headers are malformed");
                int r = header_put_bytes(to, (struct span){ header.name, strlen(header.name) },
                        (struct span){ header.value, header.value_size }, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int put_follow_up(struct pending_outcome *pending, struct store_follow_up *to, const struct ring_submit *submit,
        const struct trace_headers *trace, struct error *error)
{
        struct buffer given = { 0 };
        struct buffer traced = { 0 };
        int r = put_headers(&given, submit, error);
        if (trace)
                trace_headers_add(
                        &traced, (struct span){ (const char *)given.data, given.size }, &trace->context, trace->state);
        const struct buffer *headers = trace ? &traced : &given;
        to->envelope = (struct envelope){
                .handler = keep(pending, submit->handler, strlen(submit->handler)),
                .key = keep(pending, submit->key, strlen(submit->key)),
                .headers = keep(pending, headers->data, headers->size),
                .payload = keep(pending, submit->payload, submit->payload_size),
                .is_merge = submit->is_merge,
                .debounce_ms = submit->debounce_ms,
                .lane = submit->lane > 0   ? LANE_HIGH
                        : submit->lane < 0 ? LANE_LOW
                                           : LANE_NORMAL,
        };
        to->delay_ms = submit->delay_ms;
        buffer_free(&given);
        buffer_free(&traced);
        return r < 0 ? r : envelope_check(&to->envelope, error);
}

/* The packed follow-ups must match the runner's count exactly; they are input from shared memory. */
static int put_follow_ups(struct pending_outcome *pending, const struct ring_reply *reply,
        const struct trace_headers *trace, struct error *error)
{
        struct reader submits;
        struct ring_submit submit;
        uint32_t *count = &pending->outcome.follow_ups_count;
        reader_init(&submits, reply->submits, reply->submits_size);
        for (; *count < reply->submits_count; ++*count) {
                if (ring_next_submit(&submits, &submit) < 0)
                        return error_set(error, -EBADMSG, "follow-up %u is malformed", *count + 1);
                int r = put_follow_up(pending, &pending->follow_ups[*count], &submit, trace, error);
                if (r < 0)
                        return r;
        }
        return submits.size ? error_set(error, -EBADMSG, "there are more follow-ups than were counted") : 0;
}

struct pending_outcome *pending_outcome_done(
        const struct ring_reply *reply, const struct trace_headers *trace, struct error *error)
{
        if (!reply->has_result && !reply->submits_count && !reply->submits_size)
                return (struct pending_outcome *)&plain_done;
        /* A header line takes seven bytes more than its packed form, which has at least three.  A trace's lines take
         * less than TRACE_LINES_ROOM besides the tracestate. */
        size_t traced = trace ? reply->submits_count * (TRACE_LINES_ROOM + trace->state.size) : 0;
        struct pending_outcome *pending =
                make(STORE_DONE, reply->result_size + 4 * (size_t)reply->submits_size + traced);
        pending->outcome.has_result = reply->has_result;
        pending->outcome.result = keep(pending, reply->result, reply->result_size);
        if (reply->submits_count)
                pending->follow_ups = memory_zero(reply->submits_count, sizeof(*pending->follow_ups));
        pending->outcome.follow_ups = pending->follow_ups;
        if (put_follow_ups(pending, reply, trace, error) < 0) {
                pending_outcome_free(pending);
                return NULL;
        }
        return pending;
}
