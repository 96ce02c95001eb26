/* intake.c: POST /v1/tasks/HANDLER: the body is the payload; with `wait` the answer is the outcome. */
#include "http/api/intake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "http/api/endpoints.h"
#include "http/server.h"
#include "store/results.h"
#include "view/json.h"
#include "view/task.h"

#define WAIT_MAX_MS   60000u
#define WAITS_MAX     256u  /* clients of one host that wait at once */
#define WAIT_SLICE_MS 2000u /* how long a wait may go on after its client has left */
#define KEEP_MS       3600000u

#define HEADER_PREFIX   "quiver-header-"
#define HEADER64_PREFIX "quiver-header64-"

struct intake {
        struct http_exchange *x;
        union {
                struct store_request request;
                struct store_submit submit;
                struct store_reply reply;
        };
        struct store_submission item;
        struct buffer headers;
        uint64_t wait_until_ms; /* by the loop's clock; 0: the client does not wait */
        bool is_gone;
};

int intake_set_option(struct store_submission *item, const char *name, const char *value, struct error *error)
{
        struct envelope *e = &item->envelope;
        struct span text = span_of_text(value);
        uint64_t *ms = NULL;
        if (!strcmp(name, "key")) {
                e->key = text;
                return task_key_check(text, error);
        }
        if (!strcmp(name, "lane"))
                return lane_parse(text, &e->lane)
                               ? 0
                               : error_set(error, -EINVAL, "lane: %s; it is high, normal or low", value);
        if (!strcmp(name, "attempts")) {
                char *end = NULL;
                unsigned long attempts = strtoul(value, &end, 10);
                if (!*value || *end || value[0] == '-' || !attempts || attempts > 1000)
                        return error_set(error, -EINVAL, "attempts: %s; it is a number from 1 to 1000", value);
                e->attempts = (uint32_t)attempts;
                return 0;
        }
        if (!strcmp(name, "merge")) {
                e->is_merge = !strcmp(value, "1") || !strcmp(value, "true");
                return e->is_merge || !strcmp(value, "0") || !strcmp(value, "false")
                               ? 0
                               : error_set(error, -EINVAL, "merge: %s; it is 1 or 0", value);
        }
        if (!strcmp(name, "at"))
                return timestamp_parse(value, false, 0, &e->not_before_ms, error) < 0
                               ? error_prefix(error, -EINVAL, "at")
                               : 0;
        if (!strcmp(name, "delay"))
                ms = &item->delay_ms;
        else if (!strcmp(name, "debounce"))
                ms = &e->debounce_ms;
        else if (!strcmp(name, "unique"))
                ms = &e->unique_ms;
        else
                ms = &e->timeout_ms;
        if (units_duration_ms(value, ms, error) < 0)
                return error_prefix(error, -EINVAL, "%s", name);
        e->is_merge |= e->debounce_ms > 0;
        return 0;
}

unsigned intake_status(const struct store_submission *item, struct error *error)
{
        switch (item->status) {
        case 0:
                return 202;
        case -EEXIST:
                (void)error_set(error, item->status, "unique: there is such a task already: %s", item->id);
                return 409;
        case -ENOTUNIQ:
                (void)error_set(error, item->status,
                        "another handler, payload or option was stored under this idempotency key: %s", item->id);
                return 409;
        case -ENOBUFS:
                (void)error_set(error, item->status,
                        "shard %u remembers as many idempotency keys as it may; nothing was stored, try later",
                        item->shard);
                return 503;
        case -EBADMSG:
                (void)error_set(error, item->status,
                        "what is remembered under this idempotency key cannot be read; quiver fsck --repair removes "
                        "it");
                return 503;
        case -EDQUOT:
                (void)error_set(error, item->status, "the backlog of shard %u is full (store.max_backlog); try later",
                        item->shard);
                return 429;
        case -EMSGSIZE:
                (void)error_set(error, item->status, "payload: %zu bytes are more than store.max_payload",
                        item->envelope.payload.size);
                return 413;
        case -ENOTSUP:
                (void)error_set(error, item->status,
                        "merge: the app has this feature not switched on; when all its hosts know it: quiver app "
                        "upgrade merge");
                return 400;
        default:
                if (envelope_check(&item->envelope, error) == 0)
                        (void)error_set(error, item->status, "unique: needs a key");
                return 400;
        }
}

/* --- the request -------------------------------------------------------------------------------------------------- */

static bool begins_with(struct span *name, const char *prefix)
{
        size_t size = strlen(prefix);
        if (name->size <= size || memcmp(name->data, prefix, size) != 0)
                return false;
        *name = (struct span){ name->data + size, name->size - size };
        return true;
}

/* Takes the caller's trace.  A malformed trace is not a reason to refuse the task: the task then belongs to no trace.
 * With two traceparents neither is trusted; several tracestates are joined. */
static void take_trace(struct intake *in)
{
        const struct http_head *head = in->x->head;
        const struct span *parent = NULL;
        struct buffer state = { 0 };
        uint32_t parents = 0;
        for (uint32_t i = 0; i < head->fields_count; i++) {
                struct span value = head->fields[i].value;
                if (span_is(head->fields[i].name, SPAN_TEXT("traceparent"))) {
                        parent = &head->fields[i].value;
                        parents++;
                } else if (span_is(head->fields[i].name, SPAN_TEXT("tracestate")) && value.size) {
                        buffer_put(&state, ",", state.size > 0);
                        buffer_put(&state, value.data, value.size);
                }
        }
        if (parents == 1 && header_put(&in->headers, SPAN_TEXT("traceparent"), *parent, NULL) == 0 && state.size)
                (void)header_put(&in->headers, SPAN_TEXT("tracestate"),
                        (struct span){ (const char *)state.data, state.size }, NULL);
        buffer_free(&state);
}

/* Quiver-Header-NAME, Quiver-Header64-NAME, traceparent and tracestate go with the task. */
static int take_headers(struct intake *in, struct error *error)
{
        const struct http_head *head = in->x->head;
        for (uint32_t i = 0; i < head->fields_count; i++) {
                struct span name = head->fields[i].name;
                struct span value = head->fields[i].value;
                int r = 0;
                if (begins_with(&name, HEADER64_PREFIX))
                        r = header_put_base64(&in->headers, name, value, error);
                else if (begins_with(&name, HEADER_PREFIX))
                        r = header_put(&in->headers, name, value, error);
                if (r < 0)
                        return r;
        }
        take_trace(in);
        in->item.envelope.headers = (struct span){ (const char *)in->headers.data, in->headers.size };
        return 0;
}

static int take_request(struct intake *in, struct error *error)
{
        struct http_exchange *x = in->x;
        struct envelope *e = &in->item.envelope;
        e->lane = LANE_NORMAL;
        e->handler = span_of_text(http_parameter(x, "handler"));
        e->payload = x->body;
        int r = task_handler_check(e->handler, error);
        for (uint32_t i = 0; r == 0 && i < x->parameters_count; i++) {
                const struct http_parameter *p = &x->parameters[i];
                if (!strcmp(p->name, "handler"))
                        continue;
                if (strcmp(p->name, "wait") != 0) {
                        r = intake_set_option(&in->item, p->name, p->value, error);
                        continue;
                }
                uint64_t ms;
                r = units_duration_ms(p->value, &ms, error);
                if (r == 0 && ms > WAIT_MAX_MS)
                        r = error_set(error, -EINVAL, "%s; at most 60s", p->value);
                if (r < 0)
                        return error_prefix(error, r, "wait");
                in->wait_until_ms = uv_now(x->server->loop) + ms;
                e->reply_ms = KEEP_MS;
        }
        const struct span *idempotency = http_head_field(x->head, "idempotency-key");
        if (idempotency)
                in->item.idempotency = *idempotency;
        if (idempotency && !idempotency->size)
                return error_set(error, -EINVAL, "Idempotency-Key: is empty");
        return r < 0 ? r : take_headers(in, error);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static void intake_free(struct intake *in)
{
        if (in->wait_until_ms)
                in->x->server->waits--;
        buffer_free(&in->headers);
        free(in);
}

/* The task is stored, and its outcome is unknown; also the answer when the wait times out. */
static void answer_stored(struct intake *in)
{
        struct http_exchange *x = in->x;
        char place[TASK_ID_MAX + 16];
        (void)snprintf(place, sizeof(place), "/v1/tasks/%s", in->item.id);
        http_answer_field(x, "Location", place);
        json_t *body = json_pack("{s:s}", "id", in->item.id);
        if (in->item.is_repeat)
                (void)json_object_set_new(body, "duplicate", json_true());
        intake_free(in);
        http_answer_json(x, 202, body);
}

static void answer_outcome(struct intake *in)
{
        struct http_exchange *x = in->x;
        const struct store_reply *reply = &in->reply;
        http_answer_field(x, "Quiver-Task", in->item.id);
        if (reply->state == REPLY_DONE) {
                /* The result points into the reply, which outlives this call. */
                struct span data = reply->data;
                intake_free(in);
                http_answer(x, data.size ? 200 : 204, "application/octet-stream", data);
                return;
        }
        json_t *body = json_pack("{s:i, s:s, s:s, s:o}", "status", 422, "detail", "the task is dead", "id", in->item.id,
                "reason", view_json_text_span(reply->reason));
        note_as_json(body, &reply->note);
        intake_free(in);
        http_answer_json(x, 422, body);
}

static void wait_on(struct intake *in);

static void on_reply(struct store_request *request)
{
        struct intake *in = container_of(request, struct intake, request);
        if (request->status == 0 && in->reply.state != REPLY_PENDING)
                answer_outcome(in);
        else if (request->status == 0 && !in->is_gone && uv_now(in->x->server->loop) < in->wait_until_ms)
                wait_on(in);
        else
                /* The task is stored even if the wait failed. */
                answer_stored(in);
}

static void wait_on(struct intake *in)
{
        uint64_t now = uv_now(in->x->server->loop);
        uint64_t left = in->wait_until_ms > now ? in->wait_until_ms - now : 0;
        in->reply = (struct store_reply){
                .request.done = on_reply, .id = span_of_text(in->item.id), .wait_ms = min_u64(left, WAIT_SLICE_MS)
        };
        store_reply(in->x->services->store, &in->reply);
}

static void on_submitted(struct store_request *request)
{
        struct intake *in = container_of(request, struct intake, request);
        struct http_exchange *x = in->x;
        struct error error = { { 0 } };
        if (request->status < 0) {
                int status = request->status;
                error = request->error;
                intake_free(in);
                http_answer_store_problem(x, status, error.text);
                return;
        }
        unsigned status = intake_status(&in->item, &error);
        if (status != 202) {
                if (status == 429)
                        http_answer_field(x, "Retry-After", "1");
                intake_free(in);
                http_answer_problem(x, status, "%s", error.text);
        } else if (in->wait_until_ms && !in->is_gone) {
                wait_on(in);
        } else {
                answer_stored(in);
        }
}

static void on_gone(struct http_exchange *x)
{
        struct intake *in = x->call;
        in->is_gone = true;
}

void http_post_task(struct http_exchange *x)
{
        struct error error = { { 0 } };
        struct intake *in = memory_zero(1, sizeof(*in));
        in->x = x;
        if (take_request(in, &error) < 0) {
                in->wait_until_ms = 0;
                intake_free(in);
                http_answer_problem(x, 400, "%s", error.text);
                return;
        }
        if (in->wait_until_ms && x->server->waits == WAITS_MAX) {
                x->server->counts.limited++;
                in->wait_until_ms = 0;
                intake_free(in);
                http_answer_field(x, "Retry-After", "1");
                http_answer_problem(x, 503,
                        "%u clients wait already; nothing was stored, try again or submit without wait", WAITS_MAX);
                return;
        }
        x->server->waits += in->wait_until_ms != 0;
        x->call = in;
        x->gone = on_gone;
        in->submit = (struct store_submit){ .request.done = on_submitted, .items = &in->item, .items_count = 1 };
        store_submit(x->services->store, &in->submit);
}
