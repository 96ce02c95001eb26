#include "base/log/format.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"

#define NAME_MAX_BYTES 64u

/* The line being written.  `size` bytes hold any possible line; put() checks it nevertheless. */
struct form_draft {
        char *data;
        size_t used;
};

static void put(struct form_draft *d, const void *bytes, size_t size)
{
        if (size > LOG_FORMATTED_MAX - d->used)
                size = LOG_FORMATTED_MAX - d->used;
        memcpy(d->data + d->used, bytes, size);
        d->used += size;
}

static void put_text(struct form_draft *d, const char *text)
{
        put(d, text, strlen(text));
}

/* --- the pairs of a line --- */

struct pair {
        const char *name;
        size_t name_size;
        char value[LOG_LINE_MAX]; /* unquoted and unescaped */
        size_t value_size;
        bool is_quoted;
};

static int hex_digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the byte of an escape that log_quote() wrote, and moves past it. */
static char take_escaped(const char **at)
{
        const char *c = *at;
        *at = c + 1;
        if (*c == 'n')
                return '\n';
        if (*c == 't')
                return '\t';
        int high = *c == 'x' ? hex_digit(c[1]) : -1;
        int low = high >= 0 ? hex_digit(c[2]) : -1;
        if (low >= 0) {
                *at = c + 3;
                return (char)(16 * high + low);
        }
        return *c;
}

static const char *take_quoted(struct pair *pair, const char *at)
{
        pair->is_quoted = true;
        while (*at && *at != '"') {
                char byte = *at++;
                if (byte == '\\' && *at)
                        byte = take_escaped(&at);
                pair->value[pair->value_size++] = byte;
        }
        return *at ? at + 1 : at;
}

/* Takes the next pair off the line; false at its end.  A line that was cut may end within a pair. */
static bool next_pair(const char **line, struct pair *pair)
{
        const char *at = *line + strspn(*line, " ");
        if (!*at)
                return false;
        pair->name = at;
        pair->name_size = strcspn(at, "= ");
        pair->value_size = 0;
        pair->is_quoted = false;
        at += pair->name_size;
        if (*at == '=') {
                at++;
                if (*at == '"')
                        at = take_quoted(pair, at + 1);
                /* A value without quotes, or the rest of one after its quotes. */
                while (*at && *at != ' ')
                        pair->value[pair->value_size++] = *at++;
        }
        *line = at;
        return true;
}

/* --- JSON --- */

bool log_is_number(const char *text, size_t size)
{
        const char *at = text, *end = text + size;
        if (at < end && *at == '-')
                at++;
        const char *digits = at;
        while (at < end && isdigit((unsigned char)*at))
                at++;
        if (at == digits || (at - digits > 1 && *digits == '0') || at - digits > 19)
                return false;
        if (at < end && *at == '.') {
                const char *fraction = ++at;
                while (at < end && isdigit((unsigned char)*at))
                        at++;
                if (at == fraction)
                        return false;
        }
        return at == end;
}

static void put_json_string(struct form_draft *d, const char *text, size_t size)
{
        static const char hex[] = "0123456789abcdef";
        put(d, "\"", 1);
        for (size_t i = 0; i < size;) {
                const unsigned char *c = (const unsigned char *)text + i;
                size_t n = utf8_size(c, size - i);
                if (*c == '"' || *c == '\\')
                        put(d, (char[]){ '\\', (char)*c }, 2);
                else if (*c == '\n')
                        put(d, "\\n", 2);
                else if (*c == '\t')
                        put(d, "\\t", 2);
                else if (*c < ' ' || *c == 0x7f)
                        put(d, (char[]){ '\\', 'u', '0', '0', hex[*c >> 4], hex[*c & 15] }, 6);
                else if (!n)
                        put(d, "\xef\xbf\xbd", 3);
                else
                        put(d, c, n);
                i += n ? n : 1;
        }
        put(d, "\"", 1);
}

static void put_json_text(struct form_draft *d, const char *name, const char *value)
{
        put_json_string(d, name, strlen(name));
        put(d, ":", 1);
        put_json_string(d, value, strlen(value));
}

size_t log_as_json(char out[static LOG_FORMATTED_MAX], const struct log_head *head, const char *pairs)
{
        struct form_draft d = { .data = out };
        struct pair pair;
        put(&d, "{", 1);
        put_json_text(&d, "time", head->time);
        put(&d, ",", 1);
        put_json_text(&d, "level", log_level_name((int)head->level));
        put(&d, ",", 1);
        put_json_text(&d, "event", head->event);
        while (next_pair(&pairs, &pair)) {
                put(&d, ",", 1);
                put_json_string(&d, pair.name, pair.name_size);
                put(&d, ":", 1);
                if (!pair.is_quoted && log_is_number(pair.value, pair.value_size))
                        put(&d, pair.value, pair.value_size);
                else
                        put_json_string(&d, pair.value, pair.value_size);
        }
        put_text(&d, "}\n");
        return d.used;
}

/* --- the journal --- */

/* Appends NAME=value and a newline; a value with a newline is preceded by its length. */
static void put_field(struct form_draft *d, const char *name, const char *value, size_t size)
{
        put_text(d, name);
        if (!memchr(value, '\n', size)) {
                put(d, "=", 1);
        } else {
                unsigned char length[8];
                for (size_t i = 0; i < sizeof(length); i++)
                        length[i] = (unsigned char)((uint64_t)size >> (8 * i));
                put(d, "\n", 1);
                put(d, length, sizeof(length));
        }
        put(d, value, size);
        put(d, "\n", 1);
}

/* The journal allows capitals, digits and underscores. */
static void field_name(char out[static NAME_MAX_BYTES], const struct pair *pair)
{
        size_t n = strlen("QUIVER_");
        memcpy(out, "QUIVER_", n);
        for (size_t i = 0; i < pair->name_size && n + 1 < NAME_MAX_BYTES; i++)
                out[n++] = isalnum((unsigned char)pair->name[i]) ? (char)toupper((unsigned char)pair->name[i]) : '_';
        out[n] = 0;
}

size_t log_as_journal(char out[static LOG_FORMATTED_MAX], const struct log_head *head, const char *pairs)
{
        static const char *const priorities[] = { "3", "4", "6", "7" }; /* of syslog(3): err, warning, info, debug */
        struct form_draft d = { .data = out };
        struct pair pair;
        char name[NAME_MAX_BYTES];
        char message[LOG_LINE_MAX + 64];
        /* `journalctl` shows the event and its pairs. */
        (void)snprintf(message, sizeof(message), "%s%s%s", head->event, *pairs ? " " : "", pairs);
        put_field(&d, "MESSAGE", message, strlen(message));
        put_field(&d, "PRIORITY", priorities[head->level], 1);
        put_field(&d, "SYSLOG_IDENTIFIER", "quiver", strlen("quiver"));
        put_field(&d, "QUIVER_TIME", head->time, strlen(head->time));
        put_field(&d, "QUIVER_LEVEL", log_level_name((int)head->level), strlen(log_level_name((int)head->level)));
        put_field(&d, "QUIVER_EVENT", head->event, strlen(head->event));
        while (next_pair(&pairs, &pair)) {
                field_name(name, &pair);
                put_field(&d, name, pair.value, pair.value_size);
        }
        return d.used;
}
