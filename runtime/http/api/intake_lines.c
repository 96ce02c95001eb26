/* intake_lines.c: POST /v1/tasks: every line of the body is a task in JSON, every line of the answer its result.
 *
 *         {"handler":"mail","key":"user-17","payload":"hello"}      →  {"line":1,"status":202,"id":"9kq2…-12"}
 *         {"handler":"mail","lane":"middle"}                        →  {"line":2,"status":400,"error":"lane: …"}
 *
 * Lines are stored in their order, up to a thousand in one step; the body is not read faster than the store takes it,
 * and not faster than the client reads the answers.  If the store fails, the lines of that step are answered with 503
 * (not stored) or 504 (unknown), and the answer ends there: later lines were not stored. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/memory.h"
#include "http/api/endpoints.h"
#include "http/api/intake.h"
#include "http/json_line.h"
#include "http/server.h"
#include "view/json.h"

#define STEP_BYTES STORE_CALL_BYTES
#define HEAD_ROOM  65536u /* bytes of a line besides its payload */
/* How much is read while a step is being stored: about the thousand lines of the next step. */
#define AHEAD_BYTES 262144u

/* A line of a step. */
struct line_task {
        int index;         /* of its submission; -1: the line was refused */
        struct span error; /* why it was refused */
};

/* One request.  The lines of a step, and everything that their submissions point to, stay in place until it is
 * answered. */
struct intake_lines {
        struct http_exchange *x;
        struct store_submit submit;
        struct store_submission *items;
        struct line_task *lines;
        uint32_t lines_count, items_count;
        size_t bytes;
        uint64_t first_line;       /* of this step */
        struct buffer step;        /* the lines of this step */
        struct arena_chunk *arena; /* converted parts of lines: headers, bytes, JSON as a payload */
        struct buffer scratch;
        struct json_line reader;
        struct buffer input; /* read from the body, but not part of a step yet */
        struct buffer answer;
        bool is_storing; /* a step is being stored */
        bool is_pumping; /* pump() is on the stack, and ends the request if necessary */
        bool is_ended;   /* the whole body was read */
        bool is_over;    /* no further line is stored: the store failed, or the client is gone */
};

/* --- one line ----------------------------------------------------------------------------------------------------- */

/* The text of the value; NULL if it is not a text or contains a NUL. */
static const char *plain_text(struct json_line_value *value)
{
        if (value->kind != JSON_LINE_TEXT)
                return NULL;
        bool had_escapes = value->has_escapes;
        struct span text = json_line_text(value);
        return had_escapes && memchr(text.data, 0, text.size) ? NULL : text.data;
}

/* Appends the headers of this line to in->scratch. */
static int take_headers(struct intake_lines *in, const char *field, bool is_base64, struct json_line_value *headers,
        struct error *error)
{
        struct json_line_member header;
        if (headers->kind != JSON_LINE_OBJECT)
                return error_set(error, -EINVAL, "%s: must be an object of texts", field);
        for (size_t at = 0; json_line_next(headers, &at, &header);) {
                struct span name = json_line_text(&header.name);
                const char *text = plain_text(&header.value);
                if (!text)
                        return error_set(error, -EINVAL, "%s.%s: must be a text", field, name.data);
                int r = is_base64 ? header_put_base64(&in->scratch, name, span_of_text(text), error)
                                  : header_put(&in->scratch, name, span_of_text(text), error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_payload(struct intake_lines *in, const char *name, struct json_line_value *value,
        struct span *ret_payload, struct error *error)
{
        struct buffer bytes = { 0 };
        bool is_text = value->kind == JSON_LINE_TEXT;
        int r = 0;
        if (!strcmp(name, "payload") && is_text) {
                *ret_payload = json_line_text(value);
                return 0;
        }
        if (!strcmp(name, "payload"))
                json_line_put(&bytes, value);
        else
                r = is_text ? base64_decode(json_line_text(value), &bytes) : -EINVAL;
        *ret_payload = arena_copy(&in->arena, (struct span){ (const char *)bytes.data, bytes.size });
        buffer_free(&bytes);
        return r < 0 ? error_set(error, r, "payload_base64: is not base64") : 0;
}

static const char *const known[] = { "handler", "key", "lane", "delay", "at", "unique", "merge", "debounce", "timeout",
        "attempts", "idempotency_key", "headers", "headers_base64", "payload", "payload_base64" };
enum {
        KNOWN_HANDLER = 0,
        KNOWN_MERGE = 6,
        KNOWN_ATTEMPTS = 9,
        KNOWN_IDEMPOTENCY = 10,
        KNOWN_HEADERS = 11,
        KNOWN_HEADERS64 = 12,
        KNOWN_PAYLOAD = 13,
        KNOWN_COUNT = 15
};

static int take_option(
        struct store_submission *item, unsigned which, struct json_line_value *value, struct error *error)
{
        const char *name = known[which];
        const char *text = plain_text(value);
        char number[24];
        if (which == KNOWN_ATTEMPTS && value->kind == JSON_LINE_INTEGER) {
                (void)snprintf(number, sizeof(number), "%lld", strtoll(value->data, NULL, 10));
                return intake_set_option(item, name, number, error);
        }
        if (which == KNOWN_MERGE && (value->kind == JSON_LINE_TRUE || value->kind == JSON_LINE_FALSE))
                return intake_set_option(item, name, value->kind == JSON_LINE_TRUE ? "1" : "0", error);
        if (!text)
                return error_set(error, -EINVAL, "%s: must be a text", name);
        if (which == KNOWN_IDEMPOTENCY) {
                item->idempotency = (struct span){ text, value->size };
                return value->size ? 0 : error_set(error, -EINVAL, "idempotency_key: is empty");
        }
        if (which != KNOWN_HANDLER)
                return intake_set_option(item, name, text, error);
        item->envelope.handler = (struct span){ text, value->size };
        return task_handler_check(item->envelope.handler, error);
}

static int take_member(
        struct intake_lines *in, struct store_submission *item, struct json_line_member *member, struct error *error)
{
        struct span name = json_line_text(&member->name);
        unsigned which = 0;
        while (which < KNOWN_COUNT && strcmp(name.data, known[which]) != 0)
                which++;
        if (which < KNOWN_HEADERS)
                return take_option(item, which, &member->value, error);
        if (which < KNOWN_PAYLOAD)
                return take_headers(in, name.data, which == KNOWN_HEADERS64, &member->value, error);
        if (which < KNOWN_COUNT)
                return take_payload(in, name.data, &member->value, &item->envelope.payload, error);
        const char *nearest = error_nearest(name.data, known, KNOWN_COUNT);
        return error_set(error, -EINVAL, "no field %s%s%s%s", name.data, nearest ? "; did you mean " : "",
                nearest ? nearest : "", nearest ? "?" : "");
}

static int take_line(
        struct intake_lines *in, struct store_submission *item, char *text, size_t size, struct error *error)
{
        int r = json_line_read(&in->reader, text, size, error);
        item->envelope.lane = LANE_NORMAL;
        buffer_clear(&in->scratch);
        for (size_t i = 0; r == 0 && i < in->reader.count; i++)
                r = take_member(in, item, &in->reader.members[i], error);
        if (r < 0)
                return r;
        struct span headers = { (const char *)in->scratch.data, in->scratch.size };
        if (headers.size)
                item->envelope.headers = arena_copy(&in->arena, headers);
        return item->envelope.handler.size ? 0 : error_set(error, -EINVAL, "handler: is missing");
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static void step_clear(struct intake_lines *in)
{
        arena_free(in->arena);
        in->arena = NULL;
        in->first_line += in->lines_count;
        in->lines_count = in->items_count = 0;
        in->bytes = 0;
}

static void lines_free(struct intake_lines *in)
{
        step_clear(in);
        json_line_free(&in->reader);
        buffer_free(&in->step);
        buffer_free(&in->scratch);
        buffer_free(&in->input);
        buffer_free(&in->answer);
        free(in->items);
        free(in->lines);
        free(in);
}

static void put_span(struct buffer *to, struct span bytes)
{
        buffer_put(to, bytes.data, bytes.size);
}

/* Avoids jansson: nearly all lines of a batch succeed, and an id needs no escape. */
static void write_stored(struct buffer *to, uint64_t line, const char *id)
{
        char digits[24];
        char *first = digits + sizeof(digits);
        do
                *--first = (char)('0' + line % 10);
        while (line /= 10);
        put_span(to, SPAN_TEXT("{\"line\":"));
        buffer_put(to, first, (size_t)(digits + sizeof(digits) - first));
        put_span(to, SPAN_TEXT(",\"status\":202,\"id\":\""));
        put_span(to, span_of_text(id));
        put_span(to, SPAN_TEXT("\"}\n"));
}

static void write_line(struct buffer *to, const struct intake_lines *in, uint32_t i, int failure, const char *text)
{
        struct error error;
        const struct line_task *line = &in->lines[i];
        const struct store_submission *item = line->index >= 0 ? &in->items[line->index] : NULL;
        uint64_t number = in->first_line + i;
        unsigned status = 400;
        error.text[0] = 0;
        if (item && failure)
                status = failure == -ETIMEDOUT || failure == -ECONNRESET ? 504 : 503;
        else if (item)
                status = intake_status(item, &error);
        if (status == 202) {
                write_stored(to, number, item->id);
                return;
        }
        json_t *answer = json_pack("{s:I, s:i}", "line", (json_int_t)number, "status", (int)status);
        if (status == 409)
                view_json_set_text(answer, "id", item->id);
        view_json_set_text(answer, "error", !item ? line->error.data : failure ? text : error.text);
        char *dump = memory_or_abort(json_dumps(answer, JSON_COMPACT | JSON_PRESERVE_ORDER));
        json_decref(answer);
        buffer_printf(to, "%s\n", dump);
        free(dump);
}

static void write_step(struct intake_lines *in, int failure, const char *text)
{
        buffer_clear(&in->answer);
        for (uint32_t i = 0; i < in->lines_count; i++)
                write_line(&in->answer, in, i, failure, text);
        http_stream_write(in->x, (struct span){ (const char *)in->answer.data, in->answer.size });
        step_clear(in);
}

static bool pump(struct intake_lines *in);

/* Called from outside a piece callback: pumps, and asks for the next piece if it is wanted. */
static void go_on(struct intake_lines *in)
{
        struct http_exchange *x = in->x;
        if (pump(in))
                http_exchange_go_on(x);
}

static void on_stored(struct store_request *request)
{
        struct intake_lines *in = container_of(request, struct intake_lines, submit.request);
        in->is_storing = false;
        in->is_over |= request->status < 0;
        in->is_pumping = true; /* writing may reveal that the client is gone */
        write_step(in, request->status, request->error.text);
        in->is_pumping = false;
        go_on(in);
}

/* Takes the lines of one step off the input: complete lines, and at the end of the body the last one, which needs no
 * newline.  The rest of the input moves to a buffer of its own. */
static void step_fill(struct intake_lines *in)
{
        char *data = (char *)buffer_reserve(&in->input, 1) - in->input.size;
        size_t at = 0;
        while (at < in->input.size && in->lines_count < STORE_SUBMIT_TASKS && in->bytes < STEP_BYTES) {
                struct error error;
                char *end = memchr(data + at, '\n', in->input.size - at);
                if (!end && !in->is_ended)
                        break;
                size_t size = end ? (size_t)(end - data) - at : in->input.size - at;
                struct line_task *line = &in->lines[in->lines_count++];
                struct store_submission *item = &in->items[in->items_count];
                *item = (struct store_submission){ 0 };
                if (take_line(in, item, data + at, size, &error) < 0)
                        *line = (struct line_task){ -1, arena_copy(&in->arena, span_of_text(error.text)) };
                else
                        *line = (struct line_task){ (int)in->items_count++, { 0 } };
                at += size + (end != NULL);
                in->bytes += size;
        }
        if (!at)
                return;
        struct buffer read = in->input;
        in->input = in->step;
        in->step = read;
        buffer_clear(&in->input);
        buffer_put(&in->input, read.data + at, read.size - at);
}

/* Answers steps whose lines were all refused, and starts the next one that needs the store.  True: a step is being
 * stored. */
static bool start_step(struct intake_lines *in)
{
        while (!in->is_over && !http_stream_is_full(in->x)) {
                step_fill(in);
                if (in->items_count) {
                        in->is_storing = true;
                        in->submit = (struct store_submit){
                                .request.done = on_stored, .items = in->items, .items_count = in->items_count
                        };
                        store_submit(in->x->services->store, &in->submit);
                        return true;
                }
                if (!in->lines_count)
                        return false;
                write_step(in, 0, "");
        }
        return false;
}

/* While a step is stored, input for the next one is read, so that it is a full one. */
static bool has_room(const struct intake_lines *in)
{
        return in->is_storing && !in->is_over && !in->is_ended && in->input.size < AHEAD_BYTES;
}

/* Goes as far as possible, and ends the request if nothing is left, which frees `in`.  True: more of the body is
 * wanted. */
static bool pump(struct intake_lines *in)
{
        struct http_exchange *x = in->x;
        if (in->is_storing || in->is_pumping)
                return has_room(in);
        in->is_pumping = true;
        bool is_busy = start_step(in);
        in->is_pumping = false;
        if (is_busy)
                return has_room(in);
        if (in->is_over || (in->is_ended && !in->input.size)) {
                lines_free(in);
                http_stream_end(x);
                return false;
        }
        return !http_stream_is_full(x);
}

static bool on_piece(struct http_exchange *x, struct span piece)
{
        static const char too_long[] = "{\"status\":413,\"error\":\"a line is longer than any task may be\"}\n";
        struct intake_lines *in = x->call;
        const struct config *config = x->services->config(x->services->self);
        in->is_ended |= !piece.size;
        buffer_put(&in->input, piece.data, piece.size);
        if (in->input.size > 2 * config->store.payload_max_bytes + HEAD_ROOM &&
                !memchr(in->input.data, '\n', in->input.size)) {
                in->is_over = true;
                in->is_pumping = true;
                http_stream_write(x, (struct span){ too_long, sizeof(too_long) - 1 });
                in->is_pumping = false;
        }
        return pump(in);
}

static void on_gone(struct http_exchange *x)
{
        struct intake_lines *in = x->call;
        in->is_over = true;
        (void)pump(in);
}

static void on_drained(struct http_exchange *x)
{
        go_on(x->call);
}

void http_post_tasks(struct http_exchange *x)
{
        struct intake_lines *in = memory_zero(1, sizeof(*in));
        in->x = x;
        in->first_line = 1;
        in->items = memory_zero(STORE_SUBMIT_TASKS, sizeof(*in->items));
        in->lines = memory_zero(STORE_SUBMIT_TASKS, sizeof(*in->lines));
        json_line_init(&in->reader);
        x->call = in;
        x->gone = on_gone;
        x->piece = on_piece;
        x->drained = on_drained;
        http_stream_begin(x, 200, "application/x-ndjson");
}
