#include "cli/task_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/timestamp.h"
#include "cli/open.h"
#include "view/json.h"

const struct option_choice task_lanes[] = { { "high", 1 }, { "normal", 0 }, { "low", -1 }, { NULL, 0 } };

void task_options_free(struct task_options *t)
{
        for (size_t i = 0; i < t->header_texts_count; i++)
                free(t->header_texts[i]);
        buffer_free(&t->payload);
}

/* Kept until the task is freed. */
static char *keep_text(struct task_options *t, const void *text, size_t size)
{
        return t->header_texts[t->header_texts_count++] = text_copy_part(text, size);
}

static int has_room(const struct task_options *t, struct error *error)
{
        if (t->task.headers_count + t->task.headers2_count >= TASK_HEADERS_MAX)
                return error_set(error, -EINVAL, "at most %u headers", TASK_HEADERS_MAX);
        return 0;
}

static int add_header(struct task_options *t, const char *name, const char *value, struct error *error)
{
        if (has_room(t, error) < 0)
                return -EINVAL;
        t->headers[t->task.headers_count++] = (struct qv_client_header){ name, value };
        t->task.headers = t->headers;
        return 0;
}

static int add_header64(struct task_options *t, const char *name, const char *value, struct error *error)
{
        struct buffer bytes = { 0 };
        size_t size;
        if (has_room(t, error) < 0)
                return -EINVAL;
        if (!base64_is_exact(span_of_text(value), &size))
                return error_set(error, -EINVAL, "header %s: is not base64 with its padding", name);
        (void)base64_decode(span_of_text(value), &bytes);
        t->headers2[t->task.headers2_count++] = (struct qv_client_header2){ .name = name,
                .value = keep_text(t, bytes.size ? (const char *)bytes.data : "", size),
                .value_size = size };
        t->task.headers2 = t->headers2;
        buffer_free(&bytes);
        return 0;
}

/* NAME=VALUE → both. */
static int split_header(
        struct task_options *t, const char *text, const char **ret_name, const char **ret_value, struct error *error)
{
        const char *equals = strchr(text, '=');
        if (!equals)
                return error_set(error, -EINVAL, "%s has no =; say NAME=VALUE", text);
        if (has_room(t, error) < 0)
                return -EINVAL;
        *ret_name = keep_text(t, text, (size_t)(equals - text));
        *ret_value = equals + 1;
        return 0;
}

int task_options_take_at(void *self, const char *value, struct error *error)
{
        struct task_options *t = self;
        return timestamp_parse(value, true, clock_wall_ms(), &t->task.not_before_ms, error);
}

int task_options_take_header(void *self, const char *value, struct error *error)
{
        const char *name = NULL;
        int r = split_header(self, value, &name, &value, error);
        return r < 0 ? r : add_header(self, name, value, error);
}

int task_options_take_header64(void *self, const char *value, struct error *error)
{
        const char *name = NULL;
        int r = split_header(self, value, &name, &value, error);
        return r < 0 ? r : add_header64(self, name, value, error);
}

void task_options_add_trace(struct task_options *t, const char *parent, const char *state)
{
        struct error error;
        for (size_t i = 0; i < t->task.headers_count; i++)
                if (!strcasecmp(t->task.headers[i].name, "traceparent"))
                        return;
        if (add_header(t, "traceparent", parent, &error) == 0 && state)
                (void)add_header(t, "tracestate", state, &error);
}

/* --- a line of JSON --- */

/* A text without a NUL inside: what a C string can hold. */
static const char *plain_text(const json_t *value)
{
        if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
                return NULL;
        return json_string_value(value);
}

static int take_json_headers(struct task_options *t, const char *field, const json_t *headers, struct error *error)
{
        bool is_base64 = strcmp(field, "headers") != 0;
        const char *name;
        json_t *value;
        if (!json_is_object(headers))
                return error_set(error, -EINVAL, "%s: must be an object of texts", field);
        json_object_foreach((json_t *)headers, name, value)
        {
                const char *text = plain_text(value);
                if (!text)
                        return error_set(error, -EINVAL, "%s.%s: must be a text", field, name);
                if ((is_base64 ? add_header64(t, name, text, error) : add_header(t, name, text, error)) < 0)
                        return error_prefix(error, -EINVAL, "%s", field);
        }
        return 0;
}

static int take_json_payload(struct task_options *t, const json_t *value)
{
        if (json_is_string(value)) {
                t->task.payload = json_string_value(value);
                t->task.payload_size = json_string_length(value);
                return 0;
        }
        char *text = memory_or_abort(json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY));
        buffer_clear(&t->payload);
        buffer_put(&t->payload, text, strlen(text));
        free(text);
        t->task.payload = t->payload.data;
        t->task.payload_size = t->payload.size;
        return 0;
}

static int take_json_base64(struct task_options *t, const json_t *value, struct error *error)
{
        buffer_clear(&t->payload);
        if (!json_is_string(value) ||
                view_base64_decode(json_string_value(value), json_string_length(value), &t->payload) < 0)
                return error_set(error, -EINVAL, "payload_base64: is not base64");
        t->task.payload = t->payload.data;
        t->task.payload_size = t->payload.size;
        return 0;
}

static int take_json_option(const struct option *row, const char *name, const json_t *value, struct error *error)
{
        char number[24];
        const char *text = plain_text(value);
        if (row->kind == OPTION_FLAG) {
                *row->to.flag = json_is_true(value);
                return json_is_boolean(value) ? 0 : error_set(error, -EINVAL, "%s: must be true or false", name);
        }
        if (row->kind == OPTION_U32 && json_is_integer(value)) {
                (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                text = number;
        }
        if (!text)
                return error_set(error, -EINVAL, "%s: must be a text without control characters", name);
        return option_set(row, text, error) < 0 ? error_prefix(error, -EINVAL, "%s", name) : 0;
}

static int take_json_field(struct task_options *t, const char *name, const json_t *value, struct error *error)
{
        const struct option rows[] = { TASK_OPTIONS(t) };
        static const char *const known[] = { "handler", "key", "lane", "delay", "at", "unique", "merge", "debounce",
                "attempts", "timeout", "headers", "headers_base64", "payload", "payload_base64", "idempotency_key" };
        if (!strcmp(name, "payload"))
                return take_json_payload(t, value);
        if (!strcmp(name, "payload_base64"))
                return take_json_base64(t, value, error);
        if (!strcmp(name, "headers") || !strcmp(name, "headers_base64"))
                return take_json_headers(t, name, value, error);
        if (!strcmp(name, "handler")) {
                t->task.handler = plain_text(value);
                return t->task.handler ? 0 : error_set(error, -EINVAL, "handler: must be a text");
        }
        if (!strcmp(name, "idempotency_key")) {
                t->task.idempotency_key = plain_text(value);
                return t->task.idempotency_key ? 0 : error_set(error, -EINVAL, "idempotency_key: must be a text");
        }
        if (!strcmp(name, "at")) {
                if (!plain_text(value))
                        return error_set(error, -EINVAL, "at: must be a text");
                return task_options_take_at(t, plain_text(value), error) < 0 ? error_prefix(error, -EINVAL, "at") : 0;
        }
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (rows[i].kind != OPTION_CALL && option_is(&rows[i], name, strlen(name)))
                        return take_json_option(&rows[i], name, value, error);
        if (task_name_is_reserved(span_of_text(name)))
                return error_set(error, -EINVAL, "%s: reserved for a newer Quiver, this one does not use it", name);
        const char *nearest = error_nearest(name, known, sizeof(known) / sizeof(known[0]));
        return error_set(error, -EINVAL, "no field %s%s%s%s", name, nearest ? "; did you mean " : "",
                nearest ? nearest : "", nearest ? "?" : "");
}

int task_options_take_json(struct task_options *t, const json_t *object, struct error *error)
{
        const char *name;
        json_t *value;
        if (!json_is_object(object))
                return error_set(error, -EINVAL, "is not a JSON object");
        json_object_foreach((json_t *)object, name, value)
        {
                int r = take_json_field(t, name, value, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- the payload --- */

int task_options_take_payload(struct task_options *t, const char *word, struct error *error)
{
        if (strcmp(word, "-") != 0) {
                t->task.payload = word;
                t->task.payload_size = strlen(word);
                return 0;
        }
        buffer_clear(&t->payload);
        int r = cli_read_all(STDIN_FILENO, STORE_PAYLOAD_MAX, &t->payload);
        t->task.payload = t->payload.data;
        t->task.payload_size = t->payload.size;
        if (r == -EMSGSIZE)
                return error_set(error, -EINVAL, "standard input is larger than any payload may be");
        return r < 0 ? error_set(error, -EINVAL, "standard input: %s", strerror(-r)) : 0;
}
