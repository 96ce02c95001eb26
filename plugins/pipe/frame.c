#include "frame.h"

#include <inttypes.h>

#include "../common/base64.h"

#define LENGTH_SIZE     4u
#define HEADER_PREFIX   "header."
#define HEADER64_PREFIX "header64."

/* --- reading ----------------------------------------------------------------------------------------------------- */

static uint32_t length_at(const char *at)
{
        const unsigned char *b = (const unsigned char *)at;
        return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Turns each line of the head into a NUL-terminated string. */
static int split_head(char *head, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                if (!head[i])
                        return -EBADMSG;
                if (head[i] == '\n')
                        head[i] = 0;
        }
        return 0;
}

static int check_fields(const struct frame *f)
{
        for (const char *at = f->fields; at < f->fields_end; at += strlen(at) + 1)
                if (*at == '=' || !strchr(at, '='))
                        return -EBADMSG;
        return 0;
}

int frame_parse(struct frame *f, struct bytes *in, size_t size_max, const char **ret_why)
{
        if (in->size < LENGTH_SIZE)
                return 0;
        uint32_t size = length_at(in->data);
        *ret_why = "its length is over max_frame: did something print to stdout?";
        if (size > size_max)
                return -EBADMSG;
        if (in->size - LENGTH_SIZE < size)
                return 0;
        char *head = in->data + LENGTH_SIZE;
        char *head_end = memmem(head, size, "\n\n", 2);
        *ret_why = "its head does not end in an empty line";
        if (!head_end)
                return -EBADMSG;
        *ret_why = "its head is not made of lines name=value";
        if (split_head(head, (size_t)(head_end - head) + 1) < 0)
                return -EBADMSG;
        f->kind = head;
        f->fields = head + strlen(head) + 1;
        f->fields_end = head_end;
        f->body = head_end + 2;
        f->body_size = size - (size_t)(f->body - head);
        f->size = LENGTH_SIZE + size;
        return check_fields(f) < 0 ? -EBADMSG : 1;
}

const char *frame_get(const struct frame *f, const char *name)
{
        size_t size = strlen(name);
        for (const char *at = f->fields; at < f->fields_end; at += strlen(at) + 1)
                if (!strncmp(at, name, size) && at[size] == '=')
                        return at + size + 1;
        return NULL;
}

int frame_get_number(const struct frame *f, const char *name, uint64_t fallback, uint64_t *ret)
{
        const char *text = frame_get(f, name);
        char *end;
        *ret = fallback;
        if (!text)
                return 0;
        errno = 0;
        unsigned long long number = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || *end || errno == ERANGE)
                return -EBADMSG;
        *ret = number;
        return 0;
}

/* What stands behind the prefix, if the field begins with it. */
static char *after(char *field, const char *prefix)
{
        size_t size = strlen(prefix);
        return strncmp(field, prefix, size) != 0 ? NULL : field + size;
}

static int add_bytes(struct frame_headers *to, const char *name, char *value)
{
        if (to->bytes_count == QV_HEADERS_MAX)
                return -E2BIG;
        long size = base64_decode(value);
        if (size < 0)
                return -EBADMSG;
        to->bytes[to->bytes_count++] = (struct qv_header2){ .name = name, .value = value, .value_size = (size_t)size };
        return 0;
}

static int add_text(struct frame_headers *to, const char *name, const char *value)
{
        if (to->texts_count == QV_HEADERS_MAX)
                return -E2BIG;
        to->texts[to->texts_count++] = (struct qv_header){ .name = name, .value = value };
        return 0;
}

int frame_get_headers(const struct frame *f, struct frame_headers *ret)
{
        int r = 0;
        char *next;
        ret->texts_count = ret->bytes_count = 0;
        for (char *at = f->fields; r == 0 && at < f->fields_end; at = next) {
                next = at + strlen(at) + 1;
                char *text = after(at, HEADER_PREFIX);
                char *bytes = after(at, HEADER64_PREFIX);
                if (!text && !bytes)
                        continue;
                char *equals = strchr(at, '=');
                *equals = 0;
                r = text ? add_text(ret, text, equals + 1) : add_bytes(ret, bytes, equals + 1);
        }
        return r;
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

/* Begins a frame; end() fills in its length. */
static size_t begin(struct bytes *out, const char *kind)
{
        size_t start = out->size;
        bytes_put(out, "\0\0\0\0", LENGTH_SIZE);
        bytes_put_text(out, kind);
        bytes_put(out, "\n", 1);
        return start;
}

static void end(struct bytes *out, size_t start)
{
        if (out->is_broken)
                return;
        size_t size = out->size - start - LENGTH_SIZE;
        if (size > UINT32_MAX) {
                out->is_broken = true;
                return;
        }
        for (unsigned i = 0; i < LENGTH_SIZE; i++)
                out->data[start + i] = (char)(size >> (8 * (LENGTH_SIZE - 1 - i)));
}

static void put_field(struct bytes *out, const char *name, const char *value)
{
        bytes_put_text(out, name);
        bytes_put(out, "=", 1);
        bytes_put_text(out, value);
        bytes_put(out, "\n", 1);
}

static void put_number(struct bytes *out, const char *name, uint64_t value)
{
        bytes_printf(out, "%s=%" PRIu64 "\n", name, value);
}

/* The ABI allows any string in a header; one that would break the frame is left out. */
static void put_header(struct bytes *out, const struct qv_header *header)
{
        if (strpbrk(header->name, "=\n") || strchr(header->value, '\n'))
                return;
        bytes_put_text(out, HEADER_PREFIX);
        put_field(out, header->name, header->value);
}

static void put_header64(struct bytes *out, const struct qv_header2 *header)
{
        bytes_put_text(out, HEADER64_PREFIX);
        bytes_put_text(out, header->name);
        bytes_put(out, "=", 1);
        base64_put(out, header->value, header->value_size);
        bytes_put(out, "\n", 1);
}

void frame_put_hello(struct bytes *out, const struct qv_host *host)
{
        size_t start = begin(out, "hello");
        put_field(out, "protocol", FRAME_PROTOCOL);
        put_field(out, "handler", host->handler);
        put_number(out, "seat", host->seat);
        bytes_put(out, "\n", 1);
        end(out, start);
}

void frame_put_task(struct bytes *out, const struct qv_task *task, uint64_t deadline_left_ms)
{
        size_t start = begin(out, "task");
        put_field(out, "id", task->id);
        put_field(out, "key", task->key);
        put_field(out, "handler", task->handler);
        put_number(out, "attempt", task->attempt);
        put_number(out, "fence_epoch", task->fence_epoch);
        put_number(out, "fence_start", task->fence_start);
        if (task->deadline_ns)
                put_number(out, "deadline_ms", deadline_left_ms);
        /* The host may be older than this plugin. */
        if (QV_HAS(task, crashes)) {
                put_number(out, "attempts_max", task->attempts_max);
                put_number(out, "submitted_ms", task->submitted_ms);
                put_number(out, "crashes", task->crashes);
                put_field(out, "lane", task->lane < 0 ? "low" : task->lane > 0 ? "high" : "normal");
        }
        if (task->checkpoint_size)
                put_number(out, "checkpoint_size", task->checkpoint_size);
        for (size_t i = 0; i < task->headers_count; i++)
                put_header(out, &task->headers[i]);
        const struct qv_header2 *header;
        for (size_t i = 0; (header = qv_header_at(task, i)); i++)
                if (header->is_bytes)
                        put_header64(out, header);
        bytes_put(out, "\n", 1);
        bytes_put(out, task->payload, task->payload_size);
        bytes_put(out, task->checkpoint, task->checkpoint_size);
        end(out, start);
}

/* The errors of plugin.h by their names, which other languages know, too. */
static const char *error_name(int32_t status)
{
        static const struct {
                int32_t number;
                const char *name;
        } names[] = { { EBUSY, "EBUSY" }, { EINVAL, "EINVAL" }, { EAGAIN, "EAGAIN" }, { ENOTSUP, "ENOTSUP" },
                { ETIMEDOUT, "ETIMEDOUT" }, { ENOENT, "ENOENT" }, { EDOM, "EDOM" }, { EOVERFLOW, "EOVERFLOW" },
                { EMSGSIZE, "EMSGSIZE" }, { E2BIG, "E2BIG" } };
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (names[i].number == -status)
                        return names[i].name;
        return "EIO";
}

void frame_put_answer(struct bytes *out, const char *id, const char *kind, int32_t status, uint64_t value)
{
        size_t start = begin(out, "answer");
        put_field(out, "id", id);
        put_field(out, "to", kind);
        if (status < 0)
                put_field(out, "error", error_name(status));
        else
                put_number(out, "value", value);
        bytes_put(out, "\n", 1);
        if (status < 0)
                bytes_put_text(out, strerror(-status));
        end(out, start);
}
