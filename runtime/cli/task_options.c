#include "cli/task_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/json.h"
#include "store/store.h"

void task_options_init(struct task_options *t)
{
        *t = (struct task_options){ .task = QV_CLIENT_TASK_INIT };
}

void task_options_free(struct task_options *t)
{
        for (size_t i = 0; i < TASK_HEADERS_MAX; i++)
                free(t->header_names[i]);
        buffer_free(&t->payload);
}

/* --- one option --------------------------------------------------------------------------------------------------- */

static int take_lane(struct task_options *t, const char *value, struct error *error)
{
        static const int32_t as_number[LANES] = { [LANE_HIGH] = 1, [LANE_NORMAL] = 0, [LANE_LOW] = -1 };
        enum lane lane;
        if (!lane_parse((struct span){ value, strlen(value) }, &lane))
                return error_set(error, -EINVAL, "lane: %s is none; there are high, normal and low", value);
        t->task.lane = as_number[lane];
        return 0;
}

static int take_duration(const char *name, const char *value, uint64_t *ret_ms, struct error *error)
{
        int r = units_duration_ms(value, ret_ms, error);
        return r < 0 ? error_prefix(error, -EINVAL, "%s", name) : 0;
}

static int take_attempts(struct task_options *t, const char *value, struct error *error)
{
        uint64_t number = 0;
        if (!options_number(value, 1, UINT32_MAX, &number))
                return error_set(error, -EINVAL, "attempts: %s is not a number from 1", value);
        t->task.attempts = (uint32_t)number;
        return 0;
}

static int add_header(struct task_options *t, const char *name, const char *value, struct error *error)
{
        if (t->task.headers_count == TASK_HEADERS_MAX)
                return error_set(error, -EINVAL, "header: at most %u", TASK_HEADERS_MAX);
        t->headers[t->task.headers_count++] = (struct qv_client_header){ name, value };
        t->task.headers = t->headers;
        return 0;
}

static int take_header(struct task_options *t, const char *value, struct error *error)
{
        const char *equals = strchr(value, '=');
        if (!equals)
                return error_set(error, -EINVAL, "header: %s has no =; say NAME=VALUE", value);
        size_t at = t->task.headers_count;
        int r = add_header(t, NULL, equals + 1, error);
        if (r < 0)
                return r;
        t->header_names[at] = strndup(value, (size_t)(equals - value));
        t->headers[at].name = t->header_names[at];
        return 0;
}

int task_options_take(struct task_options *t, int id, const char *value, struct error *error)
{
        int r = 0;
        switch (id) {
        case 'k':
                t->task.key = value;
                break;
        case TASK_OPTION_LANE:
                r = take_lane(t, value, error);
                break;
        case TASK_OPTION_DELAY:
                r = take_duration("delay", value, &t->task.delay_ms, error);
                break;
        case TASK_OPTION_UNIQUE:
                r = take_duration("unique", value, &t->task.unique_ms, error);
                break;
        case TASK_OPTION_ATTEMPTS:
                r = take_attempts(t, value, error);
                break;
        case TASK_OPTION_TIMEOUT:
                r = take_duration("timeout", value, &t->task.timeout_ms, error);
                break;
        case TASK_OPTION_HEADER:
                r = take_header(t, value, error);
                break;
        default:
                return 0;
        }
        return r < 0 ? r : 1;
}

/* --- a line of JSON ----------------------------------------------------------------------------------------------- */

/* A text without a NUL inside: what a C string can hold. */
static const char *plain_text(const json_t *value)
{
        if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
                return NULL;
        return json_string_value(value);
}

static int take_json_headers(struct task_options *t, const json_t *headers, struct error *error)
{
        const char *name;
        json_t *value;
        if (!json_is_object(headers))
                return error_set(error, -EINVAL, "headers: must be an object of texts");
        json_object_foreach((json_t *)headers, name, value)
        {
                if (!plain_text(value))
                        return error_set(error, -EINVAL, "headers.%s: must be a text", name);
                int r = add_header(t, name, json_string_value(value), error);
                if (r < 0)
                        return r;
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
        char *text = json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
        if (!text)
                abort();
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
                cli_base64_decode(json_string_value(value), json_string_length(value), &t->payload) < 0)
                return error_set(error, -EINVAL, "payload_base64: is not base64");
        t->task.payload = t->payload.data;
        t->task.payload_size = t->payload.size;
        return 0;
}

static int take_json_option(struct task_options *t, int id, const char *name, const json_t *value, struct error *error)
{
        char number[24];
        const char *text = plain_text(value);
        if (id == TASK_OPTION_ATTEMPTS && json_is_integer(value)) {
                (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                text = number;
        }
        if (!text)
                return error_set(error, -EINVAL, "%s: must be a text without control characters", name);
        return task_options_take(t, id, text, error) < 0 ? -EINVAL : 0;
}

static int take_json_field(struct task_options *t, const char *name, const json_t *value, struct error *error)
{
        static const struct option_spec rows[] = { TASK_OPTION_ROWS };
        static const char *const known[] = { "handler", "key", "lane", "delay", "unique", "attempts", "timeout",
                "headers", "payload", "payload_base64" };
        if (!strcmp(name, "payload"))
                return take_json_payload(t, value);
        if (!strcmp(name, "payload_base64"))
                return take_json_base64(t, value, error);
        if (!strcmp(name, "headers"))
                return take_json_headers(t, value, error);
        if (!strcmp(name, "handler")) {
                t->task.handler = plain_text(value);
                return t->task.handler ? 0 : error_set(error, -EINVAL, "handler: must be a text");
        }
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (rows[i].id != TASK_OPTION_HEADER && !strcmp(rows[i].name, name))
                        return take_json_option(t, rows[i].id, name, value, error);
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

/* --- the payload -------------------------------------------------------------------------------------------------- */

static int read_input(struct buffer *to, struct error *error)
{
        static const uint32_t payload_max = STORE_PAYLOAD_MAX;
        for (;;) {
                uint8_t *at = buffer_reserve(to, 65536);
                ssize_t n = read(STDIN_FILENO, at, 65536);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_set(error, -EINVAL, "standard input: %s", strerror(errno));
                if (n == 0)
                        return 0;
                to->size += (size_t)n;
                if (to->size > payload_max)
                        return error_set(error, -EINVAL, "standard input is larger than any payload may be");
        }
}

int task_options_take_payload(struct task_options *t, const char *word, struct error *error)
{
        if (strcmp(word, "-") != 0) {
                t->task.payload = word;
                t->task.payload_size = strlen(word);
                return 0;
        }
        buffer_clear(&t->payload);
        int r = read_input(&t->payload, error);
        t->task.payload = t->payload.data;
        t->task.payload_size = t->payload.size;
        return r;
}
