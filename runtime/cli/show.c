#include "cli/show.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

const char *show_time(char text[SHOW_TIME_MAX], uint64_t unix_ms)
{
        time_t seconds = (time_t)(unix_ms / 1000);
        struct tm parts = { 0 };
        (void)gmtime_r(&seconds, &parts);
        size_t used = strftime(text, SHOW_TIME_MAX, "%Y-%m-%d %H:%M:%S", &parts);
        (void)snprintf(text + used, SHOW_TIME_MAX - used, ".%03uZ", (unsigned)(unix_ms % 1000));
        return text;
}

/* How many bytes the UTF-8 character at `at` has; 0 if it is none, or would act on the terminal. */
static size_t printable_size(const unsigned char *at, size_t left)
{
        if (*at < 0x80)
                return *at >= 0x20 && *at != 0x7f && *at != '\\';
        size_t size = *at >= 0xf0 && *at <= 0xf4 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc2 ? 2 : 0;
        if (!size || size > left || *at > 0xf4 || (*at == 0xc2 && at[1] < 0xa0))
                return 0;
        for (size_t i = 1; i < size; i++)
                if ((at[i] & 0xc0) != 0x80)
                        return 0;
        return size;
}

static void show_escape(FILE *out, unsigned char byte)
{
        switch (byte) {
        case '\n':
                (void)fputs("\\n", out);
                break;
        case '\t':
                (void)fputs("\\t", out);
                break;
        case '\r':
                (void)fputs("\\r", out);
                break;
        case '\\':
                (void)fputs("\\\\", out);
                break;
        default:
                (void)fprintf(out, "\\x%02x", byte);
        }
}

void show_bytes(FILE *out, struct span bytes, size_t max)
{
        size_t shown = bytes.size < max ? bytes.size : max;
        for (size_t i = 0; i < shown;) {
                const unsigned char *at = (const unsigned char *)bytes.data + i;
                size_t size = printable_size(at, shown - i);
                if (size)
                        (void)fwrite(at, 1, size, out);
                else
                        show_escape(out, *at);
                i += size ? size : 1;
        }
        if (shown < bytes.size)
                (void)fprintf(out, "… (%zu bytes more)", bytes.size - shown);
}

void show_word(FILE *out, struct span word)
{
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/@+=,%";
        bool is_plain = word.size > 0;
        for (size_t i = 0; i < word.size; i++)
                is_plain = is_plain && memchr(plain, word.data[i], sizeof(plain) - 1);
        if (word.size && word.data[0] == '-')
                (void)fputs("-- ", out);
        if (is_plain) {
                (void)fwrite(word.data, 1, word.size, out);
                return;
        }
        (void)fputc('\'', out);
        for (size_t i = 0; i < word.size; i++) {
                if (word.data[i] == '\'')
                        (void)fputs("'\\'", out);
                (void)fputc(word.data[i], out);
        }
        (void)fputc('\'', out);
}

void show_history(FILE *out, struct span events)
{
        struct note_event event;
        char time[SHOW_TIME_MAX];
        while (note_event_next(&events, &event)) {
                (void)fprintf(
                        out, "  %s  %-12.*s ", show_time(time, event.at_ms), (int)event.kind.size, event.kind.data);
                show_bytes(out, event.text, NOTE_TEXT_MAX);
                (void)fputc('\n', out);
        }
}

const char *show_plural(uint64_t count)
{
        return count == 1 ? "" : "s";
}
