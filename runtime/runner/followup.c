#include "runner/followup.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/numbers.h"

#define HANDLER_NAME_MAX 64
#define KEY_MAX          255
#define HEADER_NAME_MAX  64
#define DELAY_MAX_MS     (UINT64_C(3650) * 86400 * 1000) /* ten years; more is likely a negative number converted */
#define DEBOUNCE_MAX_MS  UINT64_C(86400000)              /* a day */

static bool has_control(const char *text)
{
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
                if (*c < ' ' || *c == 0x7f)
                        return true;
        return false;
}

/* [A-Za-z][A-Za-z0-9_-]{0,63} */
static bool is_handler_name(const char *name)
{
        size_t length = strnlen(name, HANDLER_NAME_MAX + 1);
        if (!isascii(*name) || !isalpha((unsigned char)*name) || length > HANDLER_NAME_MAX)
                return false;
        for (size_t i = 0; i < length; i++)
                if (!isascii(name[i]) || (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-'))
                        return false;
        return true;
}

static int check_key(const char *key, struct error *error)
{
        size_t length = strnlen(key, KEY_MAX + 1);
        if (!length || length > KEY_MAX)
                return error_set(error, -EINVAL, "key has to be 1 to %d bytes; NULL for none", KEY_MAX);
        if (has_control(key))
                return error_set(error, -EINVAL, "key has a control character");
        return 0;
}

static int check_name(const char *name, struct error *error)
{
        size_t length = name ? strnlen(name, HEADER_NAME_MAX + 1) : 0;
        bool is_word = length && length <= HEADER_NAME_MAX;
        for (size_t i = 0; is_word && i < length; i++)
                is_word = isascii(name[i]) && (isalnum((unsigned char)name[i]) || name[i] == '_' || name[i] == '-');
        if (!is_word)
                return error_set(
                        error, -EINVAL, "a header's name has 1 to %d letters, digits, _ or -", HEADER_NAME_MAX);
        return 0;
}

static int check_header(const struct qv_header *header, struct error *error)
{
        int r = check_name(header->name, error);
        if (r < 0)
                return r;
        if (!header->value)
                return error_set(error, -EINVAL, "header %s has no value", header->name);
        if (strnlen(header->value, QV_HEADER_MAX + 1) > QV_HEADER_MAX)
                return error_set(error, -EMSGSIZE, "header %s is longer than %u bytes", header->name, QV_HEADER_MAX);
        if (has_control(header->value))
                return error_set(
                        error, -EINVAL, "header %s has a control character; headers2 takes any bytes", header->name);
        return 0;
}

static bool is_bytes(const struct qv_header2 *header)
{
        const unsigned char *value = header->value;
        for (size_t i = 0; i < header->value_size; i++)
                if (value[i] < ' ' || value[i] == 0x7f)
                        return true;
        return false;
}

static int check_header2(const struct qv_header2 *header, struct error *error)
{
        int r = check_name(header->name, error);
        if (r < 0)
                return r;
        if (header->value_size && !header->value)
                return error_set(error, -EINVAL, "header %s has a size and no value", header->name);
        size_t max = header->value_size <= QV_HEADER_MAX && is_bytes(header) ? QV_HEADER_BYTES_MAX : QV_HEADER_MAX;
        if (header->value_size > max)
                return error_set(error, -EMSGSIZE, "header %s is longer than %zu bytes%s", header->name, max,
                        max == QV_HEADER_BYTES_MAX ? ", and has control characters" : "");
        return 0;
}

/* The plugin may be older or newer than this host: its elements have the size that it states. */
static struct qv_header2 header2_at(const struct qv_submit *submit, size_t index)
{
        struct qv_header2 header = { 0 };
        memcpy(&header, (const char *)submit->headers2 + index * submit->headers2_stride,
                min_u64(submit->headers2_stride, sizeof(header)));
        return header;
}

static int check_headers(const struct qv_submit *submit, struct error *error)
{
        int r = 0;
        if (submit->headers_count > QV_HEADERS_MAX)
                return error_set(
                        error, -EMSGSIZE, "headers_count is %zu, at most %u", submit->headers_count, QV_HEADERS_MAX);
        if (submit->headers2_count > QV_HEADERS_MAX - submit->headers_count)
                return error_set(error, -EMSGSIZE, "headers2_count is %zu, at most %u with headers_count",
                        submit->headers2_count, QV_HEADERS_MAX);
        if (submit->headers_count && !submit->headers)
                return error_set(error, -EINVAL, "headers is NULL, headers_count is not 0");
        if (submit->headers2_count && !submit->headers2)
                return error_set(error, -EINVAL, "headers2 is NULL, headers2_count is not 0");
        if (submit->headers2_count && submit->headers2_stride < offsetof(struct qv_header2, is_bytes))
                return error_set(
                        error, -EINVAL, "headers2_stride is %zu; start from QV_SUBMIT_INIT", submit->headers2_stride);
        for (size_t i = 0; r == 0 && i < submit->headers_count; i++)
                r = check_header(&submit->headers[i], error);
        for (size_t i = 0; r == 0 && i < submit->headers2_count; i++) {
                struct qv_header2 header = header2_at(submit, i);
                r = check_header2(&header, error);
        }
        return r;
}

static int check(const struct qv_submit *submit, uint64_t payload_max, struct error *error)
{
        if (!submit->handler || !is_handler_name(submit->handler))
                return error_set(error, -EINVAL, "handler has to be a letter and up to %d letters, digits, _ or -",
                        HANDLER_NAME_MAX - 1);
        if (submit->lane < -1 || submit->lane > 1)
                return error_set(error, -EINVAL, "lane is %d; -1 low, 0 normal, 1 high", submit->lane);
        if (submit->payload_size && !submit->payload)
                return error_set(error, -EINVAL, "payload is NULL, payload_size is not 0");
        if (submit->payload_size > payload_max)
                return error_set(error, -EMSGSIZE, "payload_size is %zu, at most %llu", submit->payload_size,
                        (unsigned long long)payload_max);
        if (submit->delay_ms > DELAY_MAX_MS)
                return error_set(
                        error, -EINVAL, "delay_ms is %llu, at most ten years", (unsigned long long)submit->delay_ms);
        if (submit->debounce_ms > DEBOUNCE_MAX_MS)
                return error_set(
                        error, -EINVAL, "debounce_ms is %llu, at most a day", (unsigned long long)submit->debounce_ms);
        if ((submit->merge || submit->debounce_ms) && !submit->key)
                return error_set(error, -EINVAL, "merge needs a key");
        int r = submit->key ? check_key(submit->key, error) : 0;
        return r < 0 ? r : check_headers(submit, error);
}

static void put(struct buffer *to, const struct qv_submit *submit)
{
        struct buffer headers = { 0 };
        for (size_t i = 0; i < submit->headers_count; i++)
                ring_put_header(&headers, &(struct ring_task_header){ .name = submit->headers[i].name,
                                                  .value = submit->headers[i].value,
                                                  .value_size = strlen(submit->headers[i].value) });
        for (size_t i = 0; i < submit->headers2_count; i++) {
                struct qv_header2 header = header2_at(submit, i);
                ring_put_header(&headers, &(struct ring_task_header){ .name = header.name,
                                                  .value = header.value,
                                                  .value_size = header.value_size,
                                                  .is_bytes = is_bytes(&header) });
        }
        struct ring_submit packed = {
                .handler = submit->handler,
                .key = submit->key ? submit->key : "",
                .lane = submit->lane,
                .delay_ms = submit->delay_ms,
                .is_merge = submit->merge || submit->debounce_ms,
                .debounce_ms = submit->debounce_ms,
                .headers = headers.data,
                .headers_size = headers.size,
                .payload = submit->payload,
                .payload_size = submit->payload_size,
        };
        ring_put_submit(to, &packed);
        buffer_free(&headers);
}

int followup_stage(struct seat_task *w, const struct qv_submit *submit, uint64_t payload_max, uint64_t answer_max,
        struct error *error)
{
        struct qv_submit known = { 0 };
        if (submit->size < offsetof(struct qv_submit, key))
                return error_set(error, -EINVAL, "size is %u; start from QV_SUBMIT_INIT", submit->size);
        memcpy(&known, submit, min_u64(submit->size, sizeof(known)));
        if (w->submits_count >= QV_SUBMITS_MAX)
                return error_set(error, -E2BIG, "more than %u follow-ups of one task", QV_SUBMITS_MAX);
        int r = check(&known, payload_max, error);
        if (r < 0)
                return r;
        size_t staged = w->submits.size;
        put(&w->submits, &known);
        if (seat_task_size(w) > answer_max) {
                w->submits.size = staged;
                return error_set(error, -EMSGSIZE, "result and follow-ups together are over %llu bytes",
                        (unsigned long long)answer_max);
        }
        w->submits_count++;
        return 0;
}
