#include "store/idempotency.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "task/id.h"

int idempotency_check(struct span name, struct error *error)
{
        struct error what;
        if (!task_key_check(name, &what))
                return 0;
        return error_set(error, -EINVAL, "idempotency key: 1 to %u bytes without control characters", TASK_KEY_MAX);
}

static bool is_of_the_call(struct span header)
{
        return span_is(header, SPAN_TEXT("traceparent")) || span_is(header, SPAN_TEXT("tracestate"));
}

void idempotency_digest(const struct envelope *envelope, uint64_t delay_ms, uint8_t ret_digest[SHA256_SIZE])
{
        struct envelope e = *envelope;
        struct buffer text = { 0 };
        struct buffer headers = { 0 };
        struct span rest = e.headers;
        struct task_header header;
        struct buffer value = { 0 };
        struct sha256 h;
        while (header_next(&rest, &header)) {
                if (is_of_the_call(header.name))
                        continue;
                buffer_clear(&value);
                header_put_value(&value, &header);
                (void)header_put_bytes(
                        &headers, header.name, (struct span){ (const char *)value.data, value.size }, NULL);
        }
        e.headers = (struct span){ (const char *)headers.data, headers.size };
        e.id = (struct span){ 0 };
        e.submitted_ms = 0;
        buffer_printf(&text, "delay %" PRIu64 "\n", delay_ms);
        envelope_put_head(&text, &e);
        sha256_init(&h);
        sha256_put(&h, text.data, text.size);
        sha256_put(&h, e.payload.data, e.payload.size);
        sha256_end(&h, ret_digest);
        buffer_free(&value);
        buffer_free(&headers);
        buffer_free(&text);
}

bool idempotency_scope_split(struct span scope, struct span *ret_name, struct span *ret_key)
{
        const char *end = scope.size ? memchr(scope.data, '\n', scope.size) : NULL;
        if (!end)
                return false;
        *ret_name = (struct span){ scope.data, (size_t)(end - scope.data) };
        *ret_key = (struct span){ end + 1, scope.size - ret_name->size - 1 };
        return !task_key_check(*ret_name, NULL) && (!ret_key->size || !task_key_check(*ret_key, NULL));
}

bool idempotency_is_fit(const struct store_remembered *record)
{
        struct span name;
        struct span key;
        return idempotency_scope_split(record->scope, &name, &key) && !task_id_check(record->id, NULL, NULL) &&
               record->digest.size == SHA256_SIZE && record->left_ms && record->left_ms <= TASK_NUMBER_MAX / 2;
}

struct span idempotency_scope(struct span name, struct span key, char scope[IDEMPOTENCY_SCOPE_MAX])
{
        char *at = mempcpy(scope, name.data, name.size);
        *at++ = '\n';
        if (key.size)
                at = mempcpy(at, key.data, key.size);
        return (struct span){ scope, (size_t)(at - scope) };
}
