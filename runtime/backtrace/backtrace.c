#include "backtrace/backtrace.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

#define ADDRESS_DIGITS 16 /* as addr2line -a writes them, after 0x */

static bool next_line(struct span *text, struct span *ret)
{
        if (!text->size)
                return false;
        const char *newline = memchr(text->data, '\n', text->size);
        size_t size = newline ? (size_t)(newline - text->data) : text->size;
        *ret = (struct span){ text->data, size };
        size += newline ? 1 : 0;
        text->data += size;
        text->size -= size;
        return true;
}

/* --- the request --- */

bool backtrace_begin(struct buffer *request, const char *plugin)
{
        if (!*plugin || strchr(plugin, '\n') || strlen(plugin) > BACKTRACE_REQUEST_MAX / 4)
                return false;
        buffer_printf(request, "%s\n", plugin);
        return true;
}

bool backtrace_add(struct buffer *request, size_t *lines, const char *text, const uint64_t *places, size_t places_count)
{
        struct span rest = span_of_text(text);
        struct span line;
        size_t before = request->size;
        size_t count = 0;
        for (; next_line(&rest, &line); count++) {
                buffer_printf(request, "%" PRIx64 " ", count < places_count ? places[count] : 0);
                buffer_put(request, line.data, line.size);
                buffer_put(request, "\n", 1);
        }
        if (*lines + count > BACKTRACE_LINES_MAX || request->size > BACKTRACE_REQUEST_MAX) {
                request->size = before;
                return false;
        }
        *lines += count;
        return true;
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_line(struct span line, struct backtrace_line *ret)
{
        uint64_t place = 0;
        size_t at = 0;
        for (; at < line.size && at < 16 && hex_digit(line.data[at]) >= 0; at++)
                place = place << 4 | (uint64_t)hex_digit(line.data[at]);
        if (!at || at == line.size || line.data[at] != ' ')
                return -EBADMSG;
        *ret = (struct backtrace_line){ .text = { line.data + at + 1, line.size - at - 1 }, .place = place };
        return 0;
}

int backtrace_parse(struct span bytes, struct backtrace_request *ret)
{
        struct span line;
        ret->count = 0;
        if (bytes.size > BACKTRACE_REQUEST_MAX || memchr(bytes.data, 0, bytes.size) ||
                !next_line(&bytes, &ret->plugin) || !ret->plugin.size)
                return -EBADMSG;
        while (next_line(&bytes, &line))
                if (ret->count == BACKTRACE_LINES_MAX || parse_line(line, &ret->lines[ret->count++]) < 0)
                        return -EBADMSG;
        return 0;
}

/* --- the text --- */

static bool is_address(struct span line)
{
        if (line.size != ADDRESS_DIGITS + 2 || memcmp(line.data, "0x", 2) != 0)
                return false;
        for (size_t i = 2; i < line.size; i++)
                if (hex_digit(line.data[i]) < 0)
                        return false;
        return true;
}

void backtrace_divide(struct span output, struct backtrace_source *sources, size_t count)
{
        struct backtrace_source *current = NULL;
        struct span line;
        size_t at = 0;
        memset(sources, 0, count * sizeof(*sources));
        while (next_line(&output, &line)) {
                if (is_address(line)) {
                        if (at == count)
                                return;
                        current = &sources[at++];
                } else if (current) {
                        if (!current->lines.data)
                                current->lines.data = line.data;
                        current->lines.size = (size_t)(line.data + line.size - current->lines.data);
                }
        }
}

/* "src/row:12 (discriminator 3)" as "row:12"; empty if it is unknown. */
static struct span short_place(struct span place)
{
        const char *slash = memrchr(place.data, '/', place.size);
        if (slash)
                place = (struct span){ slash + 1, (size_t)(place.data + place.size - slash - 1) };
        const char *space = memchr(place.data, ' ', place.size);
        if (space)
                place.size = (size_t)(space - place.data);
        if (place.size >= 2 &&
                (!memcmp(place.data + place.size - 2, ":?", 2) || !memcmp(place.data + place.size - 2, ":0", 2)))
                place.size -= 2;
        return place.size && place.data[0] != '?' ? place : (struct span){ 0 };
}

/* Cuts the name to BACKTRACE_NAME_MAX bytes; a template's name may have thousands. */
static void put_name(struct buffer *to, struct span name, backtrace_demangle_fn *demangle)
{
        char mangled[BACKTRACE_REQUEST_MAX / 64];
        char *readable = NULL;
        if (demangle && name.size > 2 && !memcmp(name.data, "_Z", 2) && name.size < sizeof(mangled)) {
                memcpy(mangled, name.data, name.size);
                mangled[name.size] = 0;
                readable = demangle(mangled);
        }
        struct span shown = readable ? span_of_text(readable) : name;
        buffer_put(to, shown.data, min_u64(shown.size, BACKTRACE_NAME_MAX));
        if (shown.size > BACKTRACE_NAME_MAX)
                buffer_put(to, "...", 3);
        free(readable);
}

/* " (mine.so)", from the end of a frame's line; empty: none. */
static struct span file_of(struct span line)
{
        const char *open = memrchr(line.data, '(', line.size);
        if (!open || open == line.data || line.data[line.size - 1] != ')')
                return (struct span){ 0 };
        return (struct span){ open - 1, (size_t)(line.data + line.size - open + 1) };
}

/* The name at the beginning of a frame's line: "name+0x12 (file)". */
static struct span name_of(struct span line)
{
        size_t size = 0;
        while (size < line.size && line.data[size] != '+' && line.data[size] != ' ')
                size++;
        return (struct span){ line.data, size };
}

bool backtrace_put_line(
        struct buffer *to, struct span line, const struct backtrace_source *source, backtrace_demangle_fn *demangle)
{
        struct span rest = source->lines;
        struct span function;
        struct span place;
        struct span here = { 0 };
        bool is_known = false;
        while (next_line(&rest, &function) && next_line(&rest, &place)) {
                here = short_place(place);
                is_known |= here.size > 0;
                if (!rest.size)
                        break; /* the frame itself, which already has a line */
                put_name(to, function, demangle);
                buffer_put(to, file_of(line).data, file_of(line).size);
                if (here.size)
                        buffer_printf(to, " at %.*s", (int)here.size, here.data);
                buffer_printf(to, ", inlined\n");
        }
        struct span name = name_of(line);
        put_name(to, name, demangle);
        buffer_put(to, line.data + name.size, line.size - name.size);
        if (here.size)
                buffer_printf(to, " at %.*s", (int)here.size, here.data);
        return is_known;
}

/* --- the answer --- */

const char *backtrace_next(struct span *answer)
{
        const char *text = answer->data;
        const char *end = answer->size ? memchr(text, 0, answer->size) : NULL;
        if (!end)
                return NULL;
        answer->size -= (size_t)(end + 1 - text);
        answer->data = end + 1;
        return text;
}
