#include "runner/followup.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/numbers.h"

#define HANDLER_NAME_MAX 64
#define KEY_MAX          255
#define HEADERS_MAX      64
#define HEADER_TEXT_MAX  1024
#define DELAY_MAX_MS     (UINT64_C(3650) * 86400 * 1000) /* ten years; more is likely a negative number converted */

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

static int check_header(const struct qv_header *header, struct error *error)
{
        if (!header->name || !*header->name || !header->value)
                return error_set(error, -EINVAL, "a header needs a name and a value");
        if (strnlen(header->name, HEADER_TEXT_MAX + 1) > HEADER_TEXT_MAX ||
                strnlen(header->value, HEADER_TEXT_MAX + 1) > HEADER_TEXT_MAX)
                return error_set(
                        error, -EMSGSIZE, "header %.32s is longer than %d bytes", header->name, HEADER_TEXT_MAX);
        if (has_control(header->name) || has_control(header->value) || strchr(header->name, ':'))
                return error_set(
                        error, -EINVAL, "a header's name or value has a control character, or its name a colon");
        return 0;
}

static int check_headers(const struct qv_submit *submit, struct error *error)
{
        if (submit->headers_count > HEADERS_MAX)
                return error_set(
                        error, -EMSGSIZE, "headers_count is %zu, at most %d", submit->headers_count, HEADERS_MAX);
        if (submit->headers_count && !submit->headers)
                return error_set(error, -EINVAL, "headers is NULL, headers_count is not 0");
        for (size_t i = 0; i < submit->headers_count; i++) {
                int r = check_header(&submit->headers[i], error);
                if (r < 0)
                        return r;
        }
        return 0;
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
        int r = submit->key ? check_key(submit->key, error) : 0;
        return r < 0 ? r : check_headers(submit, error);
}

static void put(struct buffer *to, const struct qv_submit *submit)
{
        struct buffer headers = { 0 };
        for (size_t i = 0; i < submit->headers_count; i++) {
                buffer_put(&headers, submit->headers[i].name, strlen(submit->headers[i].name) + 1);
                buffer_put(&headers, submit->headers[i].value, strlen(submit->headers[i].value) + 1);
        }
        struct ring_submit packed = {
                .handler = submit->handler,
                .key = submit->key ? submit->key : "",
                .lane = submit->lane,
                .delay_ms = submit->delay_ms,
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
