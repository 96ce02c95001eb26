/* submit.c: what a follow-up task has to look like, and its copy. */
#include <errno.h>

#include "internal.h"

/* As in a host; generous enough that only a mistake meets them. */
#define DELAY_MAX_MS    (UINT64_C(3650) * 86400 * 1000)
#define DEBOUNCE_MAX_MS UINT64_C(86400000)

static bool has_control(const char *text)
{
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
                if (*c < ' ' || *c == 0x7f)
                        return true;
        return false;
}

const char *qv_mock_check_key(const char *key)
{
        size_t size = strlen(key);
        if (size < 1 || size > 255)
                return "is not 1 to 255 bytes long";
        return has_control(key) ? "has a control character" : NULL;
}

const char *qv_mock_check_handler(const char *name)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        static const char others[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
        if (!strspn(name, letters) || strspn(name, others) != strlen(name) || strlen(name) > 64)
                return "is not a name: a letter, then at most 63 letters, digits, _ or -";
        return NULL;
}

/* Writes the text and returns `r`. */
__attribute__((format(printf, 4, 5))) static int32_t wrong(
        char *problem, size_t size, int32_t r, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        (void)vsnprintf(problem, size, format, args);
        va_end(args);
        return r;
}

bool qv_mock_is_bytes(const void *value, size_t size)
{
        const unsigned char *b = value;
        for (size_t i = 0; i < size; i++)
                if (b[i] < ' ' || b[i] == 0x7f)
                        return true;
        return false;
}

static bool is_header_name(const char *name)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
        size_t size = name ? strlen(name) : 0;
        return size >= 1 && size <= 64 && strspn(name, letters) == size;
}

static int32_t check_texts(const struct qv_submit *submit, char *problem, size_t size)
{
        for (size_t i = 0; i < submit->headers_count; i++) {
                const struct qv_header *header = &submit->headers[i];
                if (!is_header_name(header->name) || !header->value)
                        return wrong(problem, size, -EINVAL,
                                "headers[%zu] has no name of 1 to 64 letters, digits, _ or -, or no value", i);
                if (strlen(header->value) > QV_HEADER_MAX)
                        return wrong(problem, size, -EMSGSIZE, "headers[%zu] is over %u bytes", i, QV_HEADER_MAX);
                if (has_control(header->value))
                        return wrong(problem, size, -EINVAL,
                                "headers[%zu] has a control character; headers2 takes any bytes", i);
        }
        return 0;
}

static int32_t check_bytes(const struct qv_submit *submit, char *problem, size_t size)
{
        for (size_t i = 0; i < submit->headers2_count; i++) {
                const struct qv_header2 *header = &submit->headers2[i];
                if (!is_header_name(header->name) || (!header->value && header->value_size))
                        return wrong(problem, size, -EINVAL,
                                "headers2[%zu] has no name of 1 to 64 letters, digits, _ or -, or no value", i);
                size_t max = qv_mock_is_bytes(header->value, header->value_size) ? QV_HEADER_BYTES_MAX : QV_HEADER_MAX;
                if (header->value_size > max)
                        return wrong(problem, size, -EMSGSIZE, "headers2[%zu] is over %zu bytes", i, max);
        }
        return 0;
}

static int32_t check_headers(const struct qv_submit *submit, char *problem, size_t size)
{
        if (!submit->headers && submit->headers_count)
                return wrong(problem, size, -EINVAL, "headers is NULL, headers_count is not 0");
        if (!submit->headers2 && submit->headers2_count)
                return wrong(problem, size, -EINVAL, "headers2 is NULL, headers2_count is not 0");
        if (submit->headers_count > QV_HEADERS_MAX || submit->headers2_count > QV_HEADERS_MAX - submit->headers_count)
                return wrong(problem, size, -EMSGSIZE, "headers_count and headers2_count are over %u", QV_HEADERS_MAX);
        /* The mock is built with the test, and so with the plugin's own header file. */
        if (submit->headers2_count && submit->headers2_stride != sizeof(struct qv_header2))
                return wrong(problem, size, -EINVAL, "headers2_stride is not set; start from QV_SUBMIT_INIT");
        int32_t r = check_texts(submit, problem, size);
        return r ? r : check_bytes(submit, problem, size);
}

int32_t qv_mock_check_submit(const struct qv_submit *submit, char *problem, size_t size)
{
        const char *what = submit->handler ? qv_mock_check_handler(submit->handler) : "is NULL";
        if (what)
                return wrong(problem, size, -EINVAL, "handler %s", what);
        what = submit->key ? qv_mock_check_key(submit->key) : NULL;
        if (what)
                return wrong(problem, size, -EINVAL, "key %s", what);
        if (submit->lane < -1 || submit->lane > 1)
                return wrong(problem, size, -EINVAL, "lane is %d; -1 low, 0 normal, 1 high", submit->lane);
        if (submit->delay_ms > DELAY_MAX_MS)
                return wrong(problem, size, -EINVAL, "delay_ms is more than ten years");
        if (submit->debounce_ms > DEBOUNCE_MAX_MS)
                return wrong(problem, size, -EINVAL, "debounce_ms is more than a day");
        if ((submit->merge || submit->debounce_ms) && !submit->key)
                return wrong(problem, size, -EINVAL, "merge needs a key");
        if (!submit->payload && submit->payload_size)
                return wrong(problem, size, -EINVAL, "payload is NULL, payload_size is not 0");
        if (submit->payload_size > QV_MOCK_PAYLOAD_MAX)
                return wrong(problem, size, -EMSGSIZE, "payload_size is over %u", QV_MOCK_PAYLOAD_MAX);
        return check_headers(submit, problem, size);
}

void qv_mock_stage_submit(struct qv_mock *mock, struct staged *staged, const struct qv_submit *submit)
{
        if (staged->submits_count == staged->submits_room) {
                size_t room = staged->submits_room ? 2 * staged->submits_room : 8;
                struct qv_submit *submits = qv_mock_keep(&mock->kept, room * sizeof(*submits));
                if (staged->submits_count)
                        memcpy(submits, staged->submits, staged->submits_count * sizeof(*submits));
                staged->submits = submits;
                staged->submits_room = room;
        }
        struct qv_header *headers = qv_mock_keep(&mock->kept, submit->headers_count * sizeof(*headers));
        for (size_t i = 0; i < submit->headers_count; i++) {
                headers[i].name = qv_mock_keep_text(&mock->kept, submit->headers[i].name);
                headers[i].value = qv_mock_keep_text(&mock->kept, submit->headers[i].value);
        }
        struct qv_header2 *headers2 = qv_mock_keep(&mock->kept, submit->headers2_count * sizeof(*headers2));
        for (size_t i = 0; i < submit->headers2_count; i++) {
                const struct qv_header2 *from = &submit->headers2[i];
                headers2[i].name = qv_mock_keep_text(&mock->kept, from->name);
                headers2[i].value = qv_mock_keep_bytes(&mock->kept, from->value, from->value_size);
                headers2[i].value_size = from->value_size;
                headers2[i].is_bytes = qv_mock_is_bytes(from->value, from->value_size);
        }
        staged->submits[staged->submits_count++] = (struct qv_submit){
                .size = sizeof(*submit),
                .lane = submit->lane,
                .handler = qv_mock_keep_text(&mock->kept, submit->handler),
                .key = submit->key ? qv_mock_keep_text(&mock->kept, submit->key) : NULL,
                .payload = qv_mock_keep_bytes(&mock->kept, submit->payload, submit->payload_size),
                .payload_size = submit->payload_size,
                .delay_ms = submit->delay_ms,
                .headers = headers,
                .headers_count = submit->headers_count,
                .headers2 = headers2,
                .headers2_count = submit->headers2_count,
                .headers2_stride = sizeof(*headers2),
                .merge = submit->merge || submit->debounce_ms,
                .debounce_ms = submit->debounce_ms,
        };
}
