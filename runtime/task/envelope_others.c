/* envelope_others.c: names that this build does not know: kept, ignored and passed on. */
#include <errno.h>
#include <string.h>

#include "base/numbers.h"
#include "task/envelope_private.h"

#define NAME_MAX_SIZE  64u
#define VALUE_MAX_SIZE 1024u

/* Names of later features.  A name that ends in a dot stands for all that begin with it. */
static const struct span reserved[] = {
        SPAN_TEXT("gate"),
        SPAN_TEXT("expires"),
        SPAN_TEXT("group"),
        SPAN_TEXT("backoff"),
        SPAN_TEXT("backoff_max"),
        SPAN_TEXT("crashes"),
};

bool line_next(struct span *lines, struct span *ret_line)
{
        const char *newline = lines->size ? memchr(lines->data, '\n', lines->size) : NULL;
        if (!newline)
                return false;
        *ret_line = (struct span){ lines->data, (size_t)(newline - lines->data) };
        lines->data += ret_line->size + 1;
        lines->size -= ret_line->size + 1;
        return true;
}

bool others_next(struct span *lines, struct span *ret_name, struct span *ret_value)
{
        struct span line = { 0 };
        while (line_next(lines, &line))
                if (!line_split(line, ret_name, ret_value, NULL) && !name_is_known(*ret_name))
                        return true;
        return false;
}

static bool is_name(struct span name)
{
        if (name.size && name.data[0] == '!') {
                name.data++;
                name.size--;
        }
        for (size_t i = 0; i < name.size; i++) {
                char c = name.data[i];
                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' &&
                        c != '-' && c != '.')
                        return false;
        }
        return name.size && name.size <= NAME_MAX_SIZE;
}

int other_check(struct span name, struct span value, struct span before, struct error *error)
{
        if (text_has_control(name))
                return error_set(error, -EINVAL, "a name holds a control character");
        int shown = (int)min_u64(name.size, NAME_MAX_SIZE + 1);
        if (!is_name(name))
                return error_set(error, -EINVAL, "%.*s: is not a name; a name has 1 to %u letters, digits, _, - or .",
                        shown, name.data ? name.data : "", NAME_MAX_SIZE);
        if (value.size > VALUE_MAX_SIZE)
                return error_set(error, -EINVAL, "%.*s: %zu bytes, at most %u are allowed", shown, name.data,
                        value.size, VALUE_MAX_SIZE);
        if (text_has_control(value))
                return error_set(error, -EINVAL, "%.*s: holds a control character", shown, name.data);
        struct span other = { 0 };
        struct span its_value = { 0 };
        while (others_next(&before, &other, &its_value))
                if (span_is(other, name))
                        return error_set(error, -EINVAL, "%.*s: stands twice", shown, name.data);
        return 0;
}

void line_put(struct buffer *to, struct span prefix, struct span name, struct span value)
{
        buffer_put(to, prefix.data, prefix.size);
        buffer_put(to, name.data, name.size);
        buffer_put(to, ":", 1);
        buffer_put(to, value.data, value.size);
        buffer_put(to, "\n", 1);
}

void envelope_put_others(struct buffer *to, const struct envelope *e)
{
        struct span lines = e->others;
        struct span name = { 0 };
        struct span value = { 0 };
        while (others_next(&lines, &name, &value))
                line_put(to, (struct span){ 0 }, name, value);
}

void envelope_put_headers(struct buffer *to, const struct envelope *e)
{
        struct span lines = e->headers;
        struct task_header header = { 0 };
        if (!e->others.size) {
                buffer_put(to, lines.data, lines.size);
                return;
        }
        while (header_next(&lines, &header))
                line_put(to, header.is_base64 ? SPAN_TEXT("header64.") : SPAN_TEXT("header."), header.name,
                        header.value);
}

struct span envelope_needs(const struct envelope *e)
{
        struct span lines = e->others;
        struct span name = { 0 };
        struct span value = { 0 };
        while (others_next(&lines, &name, &value))
                if (name.data[0] == '!')
                        return (struct span){ name.data + 1, name.size - 1 };
        return (struct span){ 0 };
}

bool task_name_is_reserved(struct span name)
{
        if (name.size && name.data[0] == '!') {
                name = (struct span){ name.data + 1, name.size - 1 };
                /* A known name with a `!`: the task would wait for a Quiver that never comes. */
                if (name_is_known(name))
                        return true;
        }
        for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
                struct span r = reserved[i];
                bool is_prefix = r.data[r.size - 1] == '.';
                if (is_prefix ? name.size > r.size && !memcmp(name.data, r.data, r.size) : span_is(name, r))
                        return true;
        }
        return false;
}

int envelope_check_reserved(const struct envelope *e, struct error *error)
{
        struct span lines = e->others;
        struct span name = { 0 };
        struct span value = { 0 };
        while (others_next(&lines, &name, &value))
                if (task_name_is_reserved(name))
                        return error_set(error, -EINVAL,
                                "%.*s: a name that is reserved for a newer Quiver, and this one would ignore it; "
                                "leave it out, or use header.%.*s for something of your own",
                                (int)name.size, name.data, (int)name.size - (name.data[0] == '!'),
                                name.data + (name.data[0] == '!'));
        return 0;
}
