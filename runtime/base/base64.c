#include "base/base64.h"

#include <errno.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* -1: not a digit of base64. */
static int value_of(char digit)
{
        const char *at = digit ? strchr(digits, digit) : NULL;
        return at ? (int)(at - digits) : -1;
}

void base64_put(struct buffer *to, const void *data, size_t size)
{
        const uint8_t *b = data;
        for (size_t i = 0; i < size; i += 3) {
                size_t left = size - i;
                uint32_t three =
                        (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0u);
                char four[4] = { digits[three >> 18], digits[three >> 12 & 63],
                        left > 1 ? digits[three >> 6 & 63] : '=', left > 2 ? digits[three & 63] : '=' };
                buffer_put(to, four, sizeof(four));
        }
}

int base64_decode(struct span text, struct buffer *to)
{
        while (text.size && text.data[text.size - 1] == '=')
                text.size--;
        uint32_t bits = 0;
        unsigned held = 0;
        for (size_t i = 0; i < text.size; i++) {
                int value = value_of(text.data[i]);
                if (value < 0)
                        return -EINVAL;
                bits = bits << 6 | (uint32_t)value;
                held += 6;
                if (held >= 8) {
                        held -= 8;
                        uint8_t byte = (uint8_t)(bits >> held);
                        buffer_put(to, &byte, 1);
                }
        }
        /* A single last digit has less than a byte. */
        return text.size % 4 == 1 ? -EINVAL : 0;
}

bool base64_is_exact(struct span text, size_t *ret_size)
{
        size_t padding = 0;
        if (text.size % 4)
                return false;
        while (padding < 2 && padding < text.size && text.data[text.size - 1 - padding] == '=')
                padding++;
        size_t digits_count = text.size - padding;
        for (size_t i = 0; i < digits_count; i++)
                if (value_of(text.data[i]) < 0)
                        return false;
        /* The unused 2 or 4 bits of the last digit must be zero. */
        int spare = padding == 2 ? 15 : padding == 1 ? 3 : 0;
        if (spare && value_of(text.data[digits_count - 1]) & spare)
                return false;
        *ret_size = text.size / 4 * 3 - padding;
        return true;
}
