/* header.c: the headers of an envelope: texts, and bytes in base64. */
#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "task/envelope_private.h"

#define HEADER_PREFIX   "header."
#define HEADER64_PREFIX "header64."
#define HEADER_NAME_MAX 64u

#define HEADER_PREFIX_SIZE   (sizeof(HEADER_PREFIX) - 1)
#define HEADER64_PREFIX_SIZE (sizeof(HEADER64_PREFIX) - 1)

bool name_is_header64(struct span name)
{
        return name.size > HEADER64_PREFIX_SIZE && !memcmp(name.data, HEADER64_PREFIX, HEADER64_PREFIX_SIZE);
}

bool name_is_header(struct span name)
{
        return name_is_header64(name) ||
               (name.size > HEADER_PREFIX_SIZE && !memcmp(name.data, HEADER_PREFIX, HEADER_PREFIX_SIZE));
}

/* The name without its "header." or "header64." prefix. */
static struct span bare_name(struct span name)
{
        size_t prefix = name_is_header64(name) ? HEADER64_PREFIX_SIZE : HEADER_PREFIX_SIZE;
        return (struct span){ name.data + prefix, name.size - prefix };
}

static int header_name_check(struct span name, struct error *error)
{
        if (!text_is_word(name, HEADER_NAME_MAX))
                return error_set(error, -EINVAL, "header: a name has 1 to %u letters, digits, _ or -", HEADER_NAME_MAX);
        return 0;
}

static int header_check(struct span name, struct span value, struct error *error)
{
        if (header_name_check(name, error))
                return -EINVAL;
        if (value.size > TASK_HEADER_MAX)
                return error_set(error, -EINVAL, "header.%.*s: %zu bytes, at most %u are allowed", (int)name.size,
                        name.data, value.size, TASK_HEADER_MAX);
        if (text_has_control(value))
                return error_set(error, -EINVAL, "header.%.*s: holds a control character", (int)name.size, name.data);
        return 0;
}

static int bytes_fit(struct span name, size_t size, struct error *error)
{
        if (size > TASK_HEADER_BYTES_MAX)
                return error_set(error, -EINVAL, "header64.%.*s: %zu bytes, at most %u are allowed", (int)name.size,
                        name.data, size, TASK_HEADER_BYTES_MAX);
        return 0;
}

static int header64_check(struct span name, struct span value, struct error *error)
{
        size_t size = 0;
        if (header_name_check(name, error))
                return -EINVAL;
        if (!base64_is_exact(value, &size))
                return error_set(
                        error, -EINVAL, "header64.%.*s: is not base64 with its padding", (int)name.size, name.data);
        return bytes_fit(name, size, error);
}

int header_line_check(struct span name, struct span value, struct error *error)
{
        struct span bare = bare_name(name);
        return name_is_header64(name) ? header64_check(bare, value, error) : header_check(bare, value, error);
}

int header_put(struct buffer *to, struct span name, struct span value, struct error *error)
{
        int r = header_check(name, value, error);
        if (r)
                return r;
        line_put(to, SPAN_TEXT(HEADER_PREFIX), name, value);
        return 0;
}

int header_put_bytes(struct buffer *to, struct span name, struct span value, struct error *error)
{
        if (!text_has_control(value))
                return header_put(to, name, value, error);
        int r = header_name_check(name, error);
        if (!r)
                r = bytes_fit(name, value.size, error);
        if (r)
                return r;
        buffer_put(to, HEADER64_PREFIX, HEADER64_PREFIX_SIZE);
        buffer_put(to, name.data, name.size);
        buffer_put(to, ":", 1);
        base64_put(to, value.data, value.size);
        buffer_put(to, "\n", 1);
        return 0;
}

int header_put_base64(struct buffer *to, struct span name, struct span value, struct error *error)
{
        struct buffer bytes = { 0 };
        size_t size;
        int r = header_name_check(name, error);
        if (!r && !base64_is_exact(value, &size))
                r = error_set(
                        error, -EINVAL, "header64.%.*s: is not base64 with its padding", (int)name.size, name.data);
        if (!r)
                r = base64_decode(value, &bytes);
        if (!r)
                r = header_put_bytes(to, name, (struct span){ (const char *)bytes.data, bytes.size }, error);
        buffer_free(&bytes);
        return r;
}

bool header_next(struct span *lines, struct task_header *ret_header)
{
        struct span line = { 0 };
        struct span name = { 0 };
        while (line_next(lines, &line)) {
                if (line_split(line, &name, &ret_header->value, NULL) || !name_is_header(name))
                        continue;
                ret_header->name = bare_name(name);
                ret_header->is_base64 = name_is_header64(name);
                return true;
        }
        return false;
}

void header_put_value(struct buffer *to, const struct task_header *header)
{
        if (header->is_base64)
                (void)base64_decode(header->value, to);
        else
                buffer_put(to, header->value.data, header->value.size);
}
