#include "base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct bytes *to, const void *data, size_t size)
{
        const unsigned char *b = data;
        for (size_t i = 0; i < size; i += 3) {
                size_t left = size - i;
                uint32_t three =
                        (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0u);
                char four[4] = { digits[three >> 18], digits[three >> 12 & 63],
                        left > 1 ? digits[three >> 6 & 63] : '=', left > 2 ? digits[three & 63] : '=' };
                bytes_put(to, four, sizeof(four));
        }
}

long base64_decode(char *text)
{
        size_t size = strlen(text);
        long written = 0;
        uint32_t bits = 0;
        unsigned held = 0;
        while (size && text[size - 1] == '=')
                size--;
        for (size_t i = 0; i < size; i++) {
                const char *digit = strchr(digits, text[i]);
                if (!digit)
                        return -1;
                bits = bits << 6 | (uint32_t)(digit - digits);
                held += 6;
                if (held >= 8) {
                        held -= 8;
                        text[written++] = (char)(bits >> held);
                }
        }
        return size % 4 == 1 ? -1 : written;
}
