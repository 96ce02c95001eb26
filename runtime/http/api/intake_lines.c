/* intake_lines.c: POST /v1/tasks: every line of the body is a task in JSON, every line of the answer what became of it.
 *
 *         {"handler":"mail","key":"user-17","payload":"hello"}      →  {"line":1,"status":202,"id":"9kq2…-12"}
 *         {"handler":"mail","lane":"middle"}                        →  {"line":2,"status":400,"error":"lane: …"}
 *
 * Lines are stored in their order, up to a thousand in one step; the body is not read faster than the store takes it,
 * and not faster than the client reads the answers.  If the store fails, the lines of that step are answered with 503
 * (not stored) or 504 (not known), and the answer ends there: later lines were not stored. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/api/endpoints.h"
#include "http/api/intake.h"
#include "http/server.h"
#include "view/json.h"

#define STEP_BYTES STORE_CALL_BYTES
#define HEAD_ROOM  65536u /* of a line, besides its payload */
/* What is read while a step is on its way to the store: about the thousand lines of the next one. */
#define AHEAD_BYTES 262144u

/* A line that was read; the submission points into it. */
struct line_task {
        json_t *json;
        struct buffer bytes; /* the payload, if it was in base64 or is JSON itself; and the headers */
        struct buffer headers;
        struct error error;
        int index; /* of its submission; -1: it was refused before */
};

struct intake_lines {
        struct http_exchange *x;
        struct store_submit submit;
        struct store_submission *items;
        struct line_task *lines;
        uint32_t lines_count, items_count;
        size_t bytes;
        uint64_t first_line; /* of this step */
        struct buffer input; /* not read yet */
        bool is_storing;     /* A step is on its way to the store. */
        bool is_pumping;     /* pump() is on the stack: it ends what has to end. */
        bool is_ended;       /* All of the body is here. */
        bool is_over;        /* No further line is stored: the store failed, or the client is gone. */
};

/* --- one line ----------------------------------------------------------------------------------------------------- */

static const char *plain_text(const json_t *value)
{
        const char *text = json_string_value(value);
        return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int take_headers(
        struct line_task *line, const char *field, bool is_base64, const json_t *headers, struct error *error)
{
        const char *name;
        json_t *value;
        if (!json_is_object(headers))
                return error_set(error, -EINVAL, "%s: must be an object of texts", field);
        json_object_foreach((json_t *)headers, name, value)
        {
                if (!plain_text(value))
                        return error_set(error, -EINVAL, "%s.%s: must be a text", field, name);
                struct span text = span_of_text(plain_text(value));
                int r = is_base64 ? header_put_base64(&line->headers, span_of_text(name), text, error)
                                  : header_put(&line->headers, span_of_text(name), text, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_payload(
        struct line_task *line, const char *name, const json_t *value, struct span *ret_payload, struct error *error)
{
        if (!strcmp(name, "payload") && json_is_string(value)) {
                *ret_payload = (struct span){ json_string_value(value), json_string_length(value) };
                return 0;
        }
        if (!strcmp(name, "payload")) {
                char *text = memory_or_abort(json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY));
                buffer_put(&line->bytes, text, strlen(text));
                free(text);
        } else if (!json_is_string(value) ||
                   view_base64_decode(json_string_value(value), json_string_length(value), &line->bytes) < 0) {
                return error_set(error, -EINVAL, "payload_base64: is not base64");
        }
        *ret_payload = (struct span){ (const char *)line->bytes.data, line->bytes.size };
        return 0;
}

static int take_field(struct line_task *line, struct store_submission *item, const char *name, const json_t *value,
        struct error *error)
{
        static const char *const known[] = { "handler", "key", "lane", "delay", "at", "unique", "merge", "debounce",
                "timeout", "attempts", "idempotency_key", "headers", "headers_base64", "payload", "payload_base64" };
        static const size_t options_end = 11;
        size_t i = 0;
        while (i < sizeof(known) / sizeof(known[0]) && strcmp(name, known[i]) != 0)
                i++;
        if (i == sizeof(known) / sizeof(known[0])) {
                const char *nearest = error_nearest(name, known, i);
                return error_set(error, -EINVAL, "no field %s%s%s%s", name, nearest ? "; did you mean " : "",
                        nearest ? nearest : "", nearest ? "?" : "");
        }
        if (i >= options_end)
                return !strncmp(name, "headers", 7)
                               ? take_headers(line, name, strcmp(name, "headers") != 0, value, error)
                               : take_payload(line, name, value, &item->envelope.payload, error);
        if (!strcmp(name, "attempts") && json_is_integer(value)) {
                char number[24];
                (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                return intake_set_option(item, name, number, error);
        }
        if (!strcmp(name, "merge") && json_is_boolean(value))
                return intake_set_option(item, name, json_is_true(value) ? "1" : "0", error);
        if (!plain_text(value))
                return error_set(error, -EINVAL, "%s: must be a text", name);
        if (!strcmp(name, "idempotency_key")) {
                item->idempotency = span_of_text(plain_text(value));
                return item->idempotency.size ? 0 : error_set(error, -EINVAL, "idempotency_key: is empty");
        }
        if (strcmp(name, "handler") != 0)
                return intake_set_option(item, name, plain_text(value), error);
        item->envelope.handler = span_of_text(plain_text(value));
        return task_handler_check(item->envelope.handler, error);
}

static int take_line(struct line_task *line, struct store_submission *item, struct span text, struct error *error)
{
        json_error_t where;
        const char *name;
        json_t *value;
        line->json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
        if (!json_is_object(line->json))
                return error_set(error, -EINVAL, line->json ? "is not a JSON object" : "is not JSON: %s", where.text);
        item->envelope.lane = LANE_NORMAL;
        json_object_foreach(line->json, name, value)
        {
                int r = take_field(line, item, name, value, error);
                if (r < 0)
                        return r;
        }
        item->envelope.headers = (struct span){ (const char *)line->headers.data, line->headers.size };
        return item->envelope.handler.size ? 0 : error_set(error, -EINVAL, "handler: is missing");
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static void step_clear(struct intake_lines *in)
{
        for (uint32_t i = 0; i < in->lines_count; i++) {
                json_decref(in->lines[i].json);
                buffer_free(&in->lines[i].bytes);
                buffer_free(&in->lines[i].headers);
        }
        in->first_line += in->lines_count;
        in->lines_count = in->items_count = 0;
        in->bytes = 0;
}

static void lines_free(struct intake_lines *in)
{
        step_clear(in);
        free(in->items);
        free(in->lines);
        buffer_free(&in->input);
        free(in);
}

static void write_line(struct buffer *to, const struct intake_lines *in, uint32_t i, int failure, const char *text)
{
        struct error error;
        const struct line_task *line = &in->lines[i];
        const struct store_submission *item = line->index >= 0 ? &in->items[line->index] : NULL;
        unsigned status = 400;
        error.text[0] = 0;
        if (item && failure)
                status = failure == -ETIMEDOUT || failure == -ECONNRESET ? 504 : 503;
        else if (item)
                status = intake_status(item, &error);
        /* Of a batch nearly all are so, and an id needs no escape. */
        if (status == 202) {
                buffer_printf(to, "{\"line\":%llu,\"status\":202,\"id\":\"%s\"}\n",
                        (unsigned long long)(in->first_line + i), item->id);
                return;
        }
        json_t *answer = json_pack("{s:I, s:i}", "line", (json_int_t)(in->first_line + i), "status", (int)status);
        if (status == 409)
                view_json_set_text(answer, "id", item->id);
        view_json_set_text(answer, "error", !item ? line->error.text : failure ? text : error.text);
        char *dump = memory_or_abort(json_dumps(answer, JSON_COMPACT | JSON_PRESERVE_ORDER));
        json_decref(answer);
        buffer_printf(to, "%s\n", dump);
        free(dump);
}

static void write_step(struct intake_lines *in, int failure, const char *text)
{
        struct buffer out = { 0 };
        for (uint32_t i = 0; i < in->lines_count; i++)
                write_line(&out, in, i, failure, text);
        http_stream_write(in->x, (struct span){ (const char *)out.data, out.size });
        buffer_free(&out);
        step_clear(in);
}

static bool pump(struct intake_lines *in);

/* From outside of a piece: asks for the next one if it is wanted. */
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
        in->is_pumping = true; /* Writing may find out that the client is gone. */
        write_step(in, request->status, request->error.text);
        in->is_pumping = false;
        go_on(in);
}

/* The next line of the input that is complete; the last one needs no newline. */
static bool next_line(const struct intake_lines *in, size_t at, struct span *ret_line)
{
        size_t left = in->input.size - at;
        if (!left)
                return false;
        const char *start = (const char *)in->input.data + at;
        const char *end = memchr(start, '\n', left);
        if (!end && !in->is_ended)
                return false;
        *ret_line = (struct span){ start, end ? (size_t)(end - start) : left };
        return true;
}

static void step_fill(struct intake_lines *in)
{
        size_t at = 0;
        struct span text;
        while (in->lines_count < STORE_SUBMIT_TASKS && in->bytes < STEP_BYTES && next_line(in, at, &text)) {
                struct line_task *line = &in->lines[in->lines_count++];
                struct store_submission *item = &in->items[in->items_count];
                line->json = NULL;
                line->bytes = line->headers = (struct buffer){ 0 };
                line->index = (int)in->items_count;
                line->error.text[0] = 0;
                *item = (struct store_submission){ 0 };
                at += text.size + (at + text.size < in->input.size);
                in->bytes += text.size;
                if (take_line(line, item, text, &line->error) < 0)
                        line->index = -1;
                else
                        in->items_count++;
        }
        if (at)
                memmove(in->input.data, in->input.data + at, in->input.size - at);
        in->input.size -= at;
}

/* Writes the steps that need no store, and hands the next one that does to it.  True if it is under way. */
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

/* While a step is stored the next one is read, so that it is a full one. */
static bool has_room(const struct intake_lines *in)
{
        return in->is_storing && !in->is_over && !in->is_ended && in->input.size < AHEAD_BYTES;
}

/* Goes as far as it can, and ends if there is nothing left; `in` is gone then.  True: more of the body is wanted. */
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
        x->call = in;
        x->gone = on_gone;
        x->piece = on_piece;
        x->drained = on_drained;
        http_stream_begin(x, 200, "application/x-ndjson");
}
