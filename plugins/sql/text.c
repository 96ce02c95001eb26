#include "text.h"

#include <string.h>

size_t text_cut(const char *text, size_t most)
{
        size_t size = strnlen(text, most + 1);
        if (size <= most)
                return size;
        /* A byte 10xxxxxx continues a character. */
        for (size = most; size && ((unsigned char)text[size] & 0xc0) == 0x80;)
                size--;
        return size;
}

const char *text_shown(const char *text, char buffer[SHOWN_SIZE])
{
        size_t size = text_cut(text, SHOWN_SIZE - 4);
        if (!text[size])
                return text;
        memcpy(buffer, text, size);
        memcpy(buffer + size, "...", 4);
        return buffer;
}
