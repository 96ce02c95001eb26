#include "task/envelope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/numbers.h"
#include "task/envelope_private.h"
#include "task/id.h"

#define MAGIC "qv1\n"

enum envelope_field {
        FIELD_KEY,
        FIELD_HANDLER,
        FIELD_ID,
        FIELD_LANE,
        FIELD_NOT_BEFORE,
        FIELD_UNIQUE,
        FIELD_ATTEMPTS,
        FIELD_TIMEOUT,
        FIELD_REPLY,
        FIELD_SUBMITTED,
        FIELD_MERGE,
        FIELD_DEBOUNCE,
        FIELDS
};

static const struct span field_names[FIELDS] = {
        [FIELD_KEY] = SPAN_TEXT("key"),
        [FIELD_HANDLER] = SPAN_TEXT("handler"),
        [FIELD_ID] = SPAN_TEXT("id"),
        [FIELD_LANE] = SPAN_TEXT("lane"),
        [FIELD_NOT_BEFORE] = SPAN_TEXT("not_before"),
        [FIELD_UNIQUE] = SPAN_TEXT("unique"),
        [FIELD_ATTEMPTS] = SPAN_TEXT("attempts"),
        [FIELD_TIMEOUT] = SPAN_TEXT("timeout"),
        [FIELD_REPLY] = SPAN_TEXT("reply"),
        [FIELD_SUBMITTED] = SPAN_TEXT("submitted"),
        [FIELD_MERGE] = SPAN_TEXT("merge"),
        [FIELD_DEBOUNCE] = SPAN_TEXT("debounce"),
};

static const struct span lane_names[LANES] = {
        [LANE_HIGH] = SPAN_TEXT("high"),
        [LANE_NORMAL] = SPAN_TEXT("normal"),
        [LANE_LOW] = SPAN_TEXT("low"),
};

const char *lane_name(enum lane lane)
{
        return (unsigned)lane < LANES ? lane_names[lane].data : "unknown";
}

bool lane_parse(struct span name, enum lane *ret_lane)
{
        for (unsigned lane = 0; lane < LANES; lane++) {
                if (span_is(name, lane_names[lane])) {
                        *ret_lane = (enum lane)lane;
                        return true;
                }
        }
        return false;
}

bool text_has_control(struct span text)
{
        for (size_t i = 0; i < text.size; i++) {
                unsigned char c = (unsigned char)text.data[i];
                if (c < 0x20 || c == 0x7f)
                        return true;
        }
        return false;
}

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool text_is_word(struct span text, size_t max)
{
        if (!text.size || text.size > max)
                return false;
        for (size_t i = 0; i < text.size; i++) {
                char c = text.data[i];
                if (!is_letter(c) && (c < '0' || c > '9') && c != '_' && c != '-')
                        return false;
        }
        return true;
}

int task_key_check(struct span key, struct error *error)
{
        if (!key.size)
                return error_set(error, -EINVAL, "key: empty");
        if (key.size > TASK_KEY_MAX)
                return error_set(error, -EINVAL, "key: %zu bytes, at most %u are allowed", key.size, TASK_KEY_MAX);
        if (text_has_control(key))
                return error_set(error, -EINVAL, "key: holds a control character");
        return 0;
}

int task_handler_check(struct span handler, struct error *error)
{
        if (!handler.size)
                return error_set(error, -EINVAL, "handler: missing");
        if (!text_is_word(handler, TASK_HANDLER_MAX) || !is_letter(handler.data[0]))
                return error_set(error, -EINVAL,
                        "handler: a name begins with a letter and has at most %u letters, digits, _ or -",
                        TASK_HANDLER_MAX);
        return 0;
}

static int number_parse(struct span text, uint64_t *ret_value)
{
        uint64_t value = 0;
        if (!text.size || text.size > 16 || (text.data[0] == '0' && text.size > 1))
                return -EINVAL;
        for (size_t i = 0; i < text.size; i++) {
                if (text.data[i] < '0' || text.data[i] > '9')
                        return -EINVAL;
                value = value * 10 + (uint64_t)(text.data[i] - '0');
        }
        if (value > TASK_NUMBER_MAX)
                return -EINVAL;
        *ret_value = value;
        return 0;
}

static int number_field(
        enum envelope_field field, struct span value, uint64_t max, uint64_t *ret_value, struct error *error)
{
        uint64_t number;
        if (number_parse(value, &number) || number > max)
                return error_set(
                        error, -EBADMSG, "%s: not a decimal number up to %" PRIu64, field_names[field].data, max);
        *ret_value = number;
        return 0;
}

static int value_parse(struct envelope *e, enum envelope_field field, struct span value, struct error *error)
{
        uint64_t number = 0;
        int r;
        switch (field) {
        case FIELD_KEY:
                e->key = value;
                return value.size && task_key_check(value, error) ? -EBADMSG : 0;
        case FIELD_HANDLER:
                e->handler = value;
                return task_handler_check(value, error) ? -EBADMSG : 0;
        case FIELD_ID:
                e->id = value;
                return task_id_check(value, NULL, error) ? -EBADMSG : 0;
        case FIELD_LANE:
                if (!lane_parse(value, &e->lane))
                        return error_set(error, -EBADMSG, "lane: not high, normal or low");
                return 0;
        case FIELD_NOT_BEFORE:
                return number_field(field, value, TASK_NUMBER_MAX, &e->not_before_ms, error);
        case FIELD_UNIQUE:
                return number_field(field, value, TASK_NUMBER_MAX, &e->unique_ms, error);
        case FIELD_TIMEOUT:
                return number_field(field, value, TASK_NUMBER_MAX, &e->timeout_ms, error);
        case FIELD_REPLY:
                return number_field(field, value, TASK_NUMBER_MAX, &e->reply_ms, error);
        case FIELD_SUBMITTED:
                return number_field(field, value, TASK_NUMBER_MAX, &e->submitted_ms, error);
        case FIELD_ATTEMPTS:
                r = number_field(field, value, UINT32_MAX, &number, error);
                e->attempts = (uint32_t)number;
                return r;
        case FIELD_MERGE:
                r = number_field(field, value, 1, &number, error);
                e->is_merge = number;
                return r;
        case FIELD_DEBOUNCE:
                return number_field(field, value, TASK_DEBOUNCE_MAX, &e->debounce_ms, error);
        default:
                return -EBADMSG;
        }
}

static enum envelope_field field_find(struct span name)
{
        for (unsigned i = 0; i < FIELDS; i++)
                if (span_is(name, field_names[i]))
                        return (enum envelope_field)i;
        return FIELDS;
}

static int lines_fit(size_t size, struct error *error)
{
        if (size > TASK_HEADER_LINES_MAX)
                return error_set(error, -EINVAL, "header: all together, with unknown names, over %u bytes",
                        TASK_HEADER_LINES_MAX);
        return 0;
}

/* Splits a line at its first colon. */
int line_split(struct span line, struct span *ret_name, struct span *ret_value, struct error *error)
{
        const char *colon = memchr(line.data, ':', line.size);
        if (!colon)
                return error_set(error, -EBADMSG, "a line of the head has no colon");
        *ret_name = (struct span){ line.data, (size_t)(colon - line.data) };
        *ret_value = (struct span){ colon + 1, line.size - ret_name->size - 1 };
        return 0;
}

bool name_is_known(struct span name)
{
        return name_is_header(name) || field_find(name) != FIELDS;
}

/* The state of envelope_parse(): the names that it has seen, and how many bytes its headers and unknown names have. */
struct progress {
        unsigned seen;
        unsigned headers;
        unsigned headers64; /* of these, header64 lines */
        unsigned others;
        size_t lines_size;
        struct envelope *envelope;
};

/* Extends `lines` to this line, with everything between. */
static int lines_extend(struct progress *p, struct span *lines, struct span line, struct error *error)
{
        if (!lines->size)
                lines->data = line.data;
        lines->size = (size_t)(line.data + line.size + 1 - lines->data);
        p->lines_size += line.size + 1;
        return lines_fit(p->lines_size, error) ? -EBADMSG : 0;
}

static int header_parse(struct progress *p, struct span line, struct span name, struct span value, struct error *error)
{
        if (header_line_check(name, value, error))
                return -EBADMSG;
        p->headers64 += name_is_header64(name);
        if (p->headers64 > TASK_OTHERS_MAX)
                return error_set(error, -EBADMSG, "header64: more than %u", TASK_OTHERS_MAX);
        if (++p->headers > TASK_HEADERS_MAX)
                return error_set(error, -EBADMSG, "header: more than %u", TASK_HEADERS_MAX);
        return lines_extend(p, &p->envelope->headers, line, error);
}

static int other_parse(struct progress *p, struct span line, struct span name, struct span value, struct error *error)
{
        if (other_check(name, value, p->envelope->others, error))
                return -EBADMSG;
        if (++p->others > TASK_OTHERS_MAX)
                return error_set(error, -EBADMSG, "%.*s: more than %u unknown names", (int)name.size, name.data,
                        TASK_OTHERS_MAX);
        return lines_extend(p, &p->envelope->others, line, error);
}

static int line_parse(struct progress *p, struct span line, struct error *error)
{
        struct span name = { 0 };
        struct span value = { 0 };
        int r = line_split(line, &name, &value, error);
        if (r)
                return r;
        if (!p->seen && !span_is(name, field_names[FIELD_KEY]))
                return error_set(error, -EBADMSG, "key: must be the first line");
        if (name_is_header(name))
                return header_parse(p, line, name, value, error);
        enum envelope_field field = field_find(name);
        if (field == FIELDS)
                return other_parse(p, line, name, value, error);
        if (p->headers)
                return error_set(error, -EBADMSG, "%s: stands after a header", field_names[field].data);
        if (p->seen & (1u << field))
                return error_set(error, -EBADMSG, "%s: stands twice", field_names[field].data);
        p->seen |= 1u << field;
        return value_parse(p->envelope, field, value, error);
}

static int merge_check(const struct envelope *e, struct error *error)
{
        if (e->is_merge && !e->key.size)
                return error_set(error, -EINVAL, "merge: needs a key");
        if (e->debounce_ms && !e->is_merge)
                return error_set(error, -EINVAL, "debounce: needs merge");
        return 0;
}

int envelope_parse(const void *data, size_t size, struct envelope *ret_envelope, struct error *error)
{
        const char *at = data;
        size_t magic = sizeof(MAGIC) - 1;
        if (size < magic || memcmp(at, MAGIC, magic) != 0)
                return error_set(error, -EPROTO, "not a qv1 envelope");
        struct envelope e = { .lane = LANE_NORMAL };
        struct progress p = { .envelope = &e };
        /* The search is bounded, so that a head without an empty line does not cost a scan of the whole payload. */
        size_t head = min_u64(size, TASK_HEAD_MAX);
        const char *end = at + head;
        for (at += magic;;) {
                const char *newline = memchr(at, '\n', (size_t)(end - at));
                if (!newline)
                        return error_set(error, -EBADMSG, "no empty line within %u bytes", TASK_HEAD_MAX);
                struct span line = { at, (size_t)(newline - at) };
                at = newline + 1;
                if (!line.size)
                        break;
                int r = line_parse(&p, line, error);
                if (r)
                        return r;
        }
        if (!(p.seen & (1u << FIELD_KEY)))
                return error_set(error, -EBADMSG, "key: missing");
        if (!(p.seen & (1u << FIELD_HANDLER)))
                return error_set(error, -EBADMSG, "handler: missing");
        if (merge_check(&e, error))
                return -EBADMSG;
        e.payload = (struct span){ at, size - (size_t)(at - (const char *)data) };
        *ret_envelope = e;
        return 0;
}

static int line_without_end(struct error *error)
{
        return error_set(error, -EINVAL, "header: a line without a colon or an end");
}

/* In a parsed envelope headers and unknown names may be mixed; in one that the caller fills in they are separate. */
static int headers_check(struct progress *p, const struct envelope *e, struct error *error)
{
        struct span lines = e->headers;
        struct span line = { 0 };
        struct span name = { 0 };
        struct span value = { 0 };
        while (line_next(&lines, &line)) {
                if (line_split(line, &name, &value, error))
                        return line_without_end(error);
                if (!name_is_header(name) && !e->others.size)
                        return error_set(error, -EINVAL, "header: a line does not begin with header.");
                if (name_is_header(name) && header_parse(p, line, name, value, error))
                        return -EINVAL;
        }
        return lines.size ? line_without_end(error) : 0;
}

static int others_check(struct progress *p, const struct envelope *e, struct error *error)
{
        struct span lines = e->others;
        struct span line = { 0 };
        struct span name = { 0 };
        struct span value = { 0 };
        while (line_next(&lines, &line)) {
                if (line_split(line, &name, &value, error))
                        return line_without_end(error);
                if (!name_is_known(name) && other_parse(p, line, name, value, error))
                        return -EINVAL;
        }
        return lines.size ? line_without_end(error) : 0;
}

int envelope_check(const struct envelope *e, struct error *error)
{
        struct envelope seen = { .lane = LANE_NORMAL };
        struct progress p = { .envelope = &seen };
        int r = e->key.size ? task_key_check(e->key, error) : 0;
        if (!r)
                r = task_handler_check(e->handler, error);
        if (!r && e->id.size)
                r = task_id_check(e->id, NULL, error);
        if (!r)
                r = headers_check(&p, e, error);
        if (!r)
                r = others_check(&p, e, error);
        if (r)
                return r;
        if ((unsigned)e->lane >= LANES)
                return error_set(error, -EINVAL, "lane: not high, normal or low");
        if (e->not_before_ms > TASK_NUMBER_MAX || e->unique_ms > TASK_NUMBER_MAX || e->timeout_ms > TASK_NUMBER_MAX ||
                e->reply_ms > TASK_NUMBER_MAX || e->submitted_ms > TASK_NUMBER_MAX)
                return error_set(error, -EINVAL, "a time is above %" PRIu64, TASK_NUMBER_MAX);
        if (e->debounce_ms > TASK_DEBOUNCE_MAX)
                return error_set(error, -EINVAL, "debounce: %" PRIu64 " ms, at most a day is allowed", e->debounce_ms);
        return merge_check(e, error);
}

static void put_span(struct buffer *to, enum envelope_field field, struct span value)
{
        char *at = (char *)buffer_reserve(to, field_names[field].size + value.size + 2);
        char *start = at;
        at = mempcpy(at, field_names[field].data, field_names[field].size);
        *at++ = ':';
        at = value.size ? mempcpy(at, value.data, value.size) : at;
        *at++ = '\n';
        to->size += (size_t)(at - start);
}

static void put_number(struct buffer *to, enum envelope_field field, uint64_t value)
{
        char digits[20];
        size_t at = sizeof(digits);
        if (!value)
                return;
        for (; value; value /= 10)
                digits[--at] = (char)('0' + value % 10);
        put_span(to, field, (struct span){ digits + at, sizeof(digits) - at });
}

void envelope_put_head(struct buffer *to, const struct envelope *e)
{
        buffer_put(to, MAGIC, sizeof(MAGIC) - 1);
        put_span(to, FIELD_KEY, e->key);
        put_span(to, FIELD_HANDLER, e->handler);
        if (e->id.size)
                put_span(to, FIELD_ID, e->id);
        if (e->lane != LANE_NORMAL)
                put_span(to, FIELD_LANE, lane_names[e->lane]);
        put_number(to, FIELD_NOT_BEFORE, e->not_before_ms);
        put_number(to, FIELD_UNIQUE, e->unique_ms);
        put_number(to, FIELD_ATTEMPTS, e->attempts);
        put_number(to, FIELD_TIMEOUT, e->timeout_ms);
        put_number(to, FIELD_REPLY, e->reply_ms);
        put_number(to, FIELD_SUBMITTED, e->submitted_ms);
        put_number(to, FIELD_MERGE, e->is_merge);
        put_number(to, FIELD_DEBOUNCE, e->debounce_ms);
        envelope_put_others(to, e);
        envelope_put_headers(to, e);
        buffer_put(to, "\n", 1);
}

void envelope_put(struct buffer *to, const struct envelope *e)
{
        envelope_put_head(to, e);
        buffer_put(to, e->payload.data, e->payload.size);
}

struct envelope envelope_merge(const struct envelope *into, const struct envelope *later)
{
        struct envelope merged = *later;
        merged.id = into->id;
        merged.lane = into->lane;
        merged.submitted_ms = into->submitted_ms;
        merged.reply_ms = max_u64(into->reply_ms, later->reply_ms);
        return merged;
}

uint32_t shard_of_key(struct span key, uint32_t shards)
{
        return (uint32_t)crc32(0, (const Bytef *)key.data, (uInt)key.size) % shards;
}
