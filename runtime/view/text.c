#include "view/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/numbers.h"

/* The last millisecond of the year 9999. */
#define TIME_LAST_MS UINT64_C(253402300799999)
#define TEXT_SHOWN   1024u

const char *text_time(char text[TEXT_TIME_MAX], uint64_t unix_ms)
{
        time_t seconds = (time_t)(unix_ms / 1000);
        struct tm parts = { 0 };
        if (unix_ms > TIME_LAST_MS) {
                (void)snprintf(text, TEXT_TIME_MAX, "%" PRIu64 "ms", unix_ms);
                return text;
        }
        (void)gmtime_r(&seconds, &parts);
        size_t used = strftime(text, TEXT_TIME_MAX, "%Y-%m-%d %H:%M:%S", &parts);
        (void)snprintf(text + used, TEXT_TIME_MAX - used, ".%03uZ", (unsigned)(unix_ms % 1000));
        return text;
}

const char *text_age(char text[UNITS_TEXT_MAX], uint64_t ms)
{
        return ms ? units_format_ms(text, ms) : "-";
}

const char *text_plural(uint64_t count)
{
        return count == 1 ? "" : "s";
}

/* --- bytes --- */

/* The size of the UTF-8 character at `at`; 0 if it is invalid, or would control the terminal. */
static size_t printable_size(const unsigned char *at, size_t left)
{
        if (*at < 0x80)
                return *at >= 0x20 && *at != 0x7f && *at != '\\';
        size_t size = *at >= 0xf0 && *at <= 0xf4 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc2 ? 2 : 0;
        if (!size || size > left || *at > 0xf4 || (*at == 0xc2 && at[1] < 0xa0))
                return 0;
        /* An overlong form, a surrogate, or beyond U+10FFFF. */
        if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
                (*at == 0xf4 && at[1] > 0x8f))
                return 0;
        for (size_t i = 1; i < size; i++)
                if ((at[i] & 0xc0) != 0x80)
                        return 0;
        return size;
}

/* Appends the character at `at`, or its first byte escaped, if that fits into `columns`.  Returns the number of bytes
 * used and subtracts its columns; 0: it does not fit. */
static size_t put_character(struct buffer *to, const char *at, size_t left, size_t *columns)
{
        static const char named[] = "\nn\tt\rr\\\\";
        unsigned char byte = (unsigned char)*at;
        size_t size = printable_size((const unsigned char *)at, left);
        char escaped[8] = { '\\', 0 };
        if (!size) {
                for (const char *n = named; *n && !escaped[1]; n += 2)
                        escaped[1] = (char)(*n == (char)byte ? n[1] : 0);
                if (!escaped[1])
                        (void)snprintf(escaped, sizeof(escaped), "\\x%02x", byte);
        }
        size_t takes = size ? 1 : strlen(escaped);
        if (takes > *columns)
                return 0;
        *columns -= takes;
        buffer_put(to, size ? at : escaped, size ? size : takes);
        return size ? size : 1;
}

void text_put_bytes(struct buffer *to, struct span bytes, size_t max)
{
        size_t shown = min_u64(bytes.size, max);
        size_t columns = SIZE_MAX;
        for (size_t i = 0; i < shown;)
                i += put_character(to, bytes.data + i, shown - i, &columns);
        if (shown < bytes.size)
                buffer_printf(to, "… (%zu bytes more)", bytes.size - shown);
}

void text_put_between(struct buffer *to, const char *before, const char *text, const char *after)
{
        buffer_put(to, before, strlen(before));
        text_put_bytes(to, span_of_text(text), TEXT_SHOWN);
        buffer_put(to, after, strlen(after));
}

void text_put_field(struct buffer *to, const char *label, struct span bytes, size_t max)
{
        buffer_printf(to, "%-12s ", label);
        text_put_bytes(to, bytes, max);
        buffer_put(to, "\n", 1);
}

size_t text_put_column(struct buffer *to, struct span text, size_t width, size_t max)
{
        size_t columns = max;
        for (size_t i = 0, n = 1; i < text.size && n; i += n)
                n = put_character(to, text.data + i, text.size - i, &columns);
        size_t used = max - columns;
        for (; used < width; used++)
                buffer_put(to, " ", 1);
        return used;
}

/* Whether a terminal may get the text unescaped. */
static bool is_printable(struct span text)
{
        for (size_t i = 0, size; i < text.size; i += size) {
                size = printable_size((const unsigned char *)text.data + i, text.size - i);
                if (!size && text.data[i] != '\\')
                        return false;
                size += !size;
        }
        return true;
}

void text_put_word(struct buffer *to, struct span word)
{
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/@+=,%";
        bool is_plain = word.size > 0;
        bool is_coded = !is_printable(word);
        size_t columns = SIZE_MAX;
        for (size_t i = 0; i < word.size; i++)
                is_plain = is_plain && memchr(plain, word.data[i], sizeof(plain) - 1);
        if (word.size && word.data[0] == '-')
                buffer_printf(to, "-- ");
        if (is_plain) {
                buffer_put(to, word.data, word.size);
                return;
        }
        buffer_printf(to, is_coded ? "$'" : "'");
        for (size_t i = 0, size; i < word.size; i += size) {
                size = 1;
                if (word.data[i] == '\'')
                        buffer_printf(to, is_coded ? "\\'" : "'\\''");
                else if (is_coded)
                        size = put_character(to, word.data + i, word.size - i, &columns);
                else
                        buffer_put(to, word.data + i, 1);
        }
        buffer_put(to, "'", 1);
}
