#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
        const char *name;
        double factor;
};

static const struct unit duration_units[] = { { "ms", 1 }, { "s", 1e3 }, { "m", 60e3 }, { "h", 3600e3 },
        { "d", 86400e3 } };

static const struct unit size_units[] = { { "", 1 }, { "B", 1 }, { "K", 1024 }, { "KB", 1024 }, { "KiB", 1024 },
        { "M", 1048576 }, { "MB", 1048576 }, { "MiB", 1048576 }, { "G", 1073741824 }, { "GB", 1073741824 },
        { "GiB", 1073741824 } };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Above 2^53 a double no longer holds every integer; no setting needs a larger value. */
#define UNITS_LARGEST 9007199254740992.0

static int parse(const char *text, const struct unit *units, size_t count, const char *example, uint64_t *ret,
        struct error *error)
{
        char *end = NULL;
        if (!text || *text < '0' || *text > '9')
                return error_set(error, -EINVAL, "\"%s\" is not %s", text ? text : "", example);
        /* Plain decimals only: strtod() also accepts 0x10, 1e9 and inf. */
        size_t digits = strspn(text, "0123456789.");
        double number = strtod(text, &end);
        if (end != text + digits)
                return error_set(error, -EINVAL, "\"%s\" is not %s", text, example);
        while (*end == ' ')
                end++;
        if (number == 0.0 && *end == '\0') {
                *ret = 0;
                return 0;
        }
        for (size_t i = 0; i < count; i++) {
                if (strcmp(end, units[i].name) != 0)
                        continue;
                number = round(number * units[i].factor);
                if (number > UNITS_LARGEST)
                        return error_set(error, -ERANGE, "\"%s\" is too large", text);
                *ret = (uint64_t)number;
                return 0;
        }
        if (*end == '\0')
                return error_set(error, -EINVAL, "\"%s\" has no unit; write %s", text, example);
        return error_set(error, -EINVAL, "\"%s\": unknown unit \"%s\"; write %s", text, end, example);
}

int units_duration_ms(const char *text, uint64_t *ret_ms, struct error *error)
{
        return parse(
                text, duration_units, COUNT(duration_units), "a duration like 250ms, 30s, 5m, 2h or 1d", ret_ms, error);
}

int units_size_bytes(const char *text, uint64_t *ret_bytes, struct error *error)
{
        return parse(text, size_units, COUNT(size_units), "a size like 512, 64KiB, 1MiB or 2GiB", ret_bytes, error);
}

/* At most one decimal, and none where it would be zero. */
static const char *format(char text[UNITS_TEXT_MAX], double value, const char *unit)
{
        double tenths = round(value * 10);
        if (fmod(tenths, 10) == 0 || value >= 100)
                (void)snprintf(text, UNITS_TEXT_MAX, "%.0f%s", round(value), unit);
        else
                (void)snprintf(text, UNITS_TEXT_MAX, "%.1f%s", tenths / 10, unit);
        return text;
}

const char *units_format_ms(char text[UNITS_TEXT_MAX], uint64_t ms)
{
        if (ms < 1000)
                return format(text, (double)ms, "ms");
        if (ms < 60000)
                return format(text, (double)ms / 1e3, "s");
        if (ms < 3600000)
                return format(text, (double)ms / 60e3, "m");
        if (ms < 86400000)
                return format(text, (double)ms / 3600e3, "h");
        return format(text, (double)ms / 86400e3, "d");
}

const char *units_format_ns(char text[UNITS_TEXT_MAX], uint64_t ns)
{
        if (ns < 1000000)
                return format(text, (double)ns / 1e3, "us");
        if (ns < 1000000000)
                return format(text, (double)ns / 1e6, "ms");
        return units_format_ms(text, ns / 1000000);
}

const char *units_format_bytes(char text[UNITS_TEXT_MAX], uint64_t bytes)
{
        if (bytes < 1024)
                return format(text, (double)bytes, " B");
        if (bytes < 1048576)
                return format(text, (double)bytes / 1024, " KiB");
        if (bytes < 1073741824)
                return format(text, (double)bytes / 1048576, " MiB");
        return format(text, (double)bytes / 1073741824, " GiB");
}

static const char digits[] = "0123456789abcdef";

const char *units_hex(char *text, const void *bytes, size_t size)
{
        const uint8_t *from = bytes;
        for (size_t i = 0; i < size; i++) {
                text[2 * i] = digits[from[i] >> 4];
                text[2 * i + 1] = digits[from[i] & 15];
        }
        text[2 * size] = 0;
        return text;
}

bool units_hex_read(const char *text, size_t text_size, uint8_t *ret_bytes, size_t size)
{
        if (text_size != 2 * size)
                return false;
        for (size_t i = 0; i < text_size; i++) {
                const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
                if (!digit)
                        return false;
                ret_bytes[i / 2] = (uint8_t)(ret_bytes[i / 2] << 4 | (digit - digits));
        }
        return true;
}
