#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void buffer_free(struct buffer *b)
{
        if (!b)
                return;
        free(b->data);
        *b = (struct buffer){ 0 };
}

void buffer_clear(struct buffer *b)
{
        b->size = 0;
}

uint8_t *buffer_reserve(struct buffer *b, size_t size)
{
        if (b->room - b->size < size) {
                size_t room = b->room ? b->room : 256;
                while (room - b->size < size)
                        room *= 2;
                uint8_t *data = memory_resize(b->data, room);
                b->data = data;
                b->room = room;
        }
        return b->size ? b->data + b->size : b->data;
}

void buffer_put(struct buffer *b, const void *data, size_t size)
{
        if (!size)
                return;
        memcpy(buffer_reserve(b, size), data, size);
        b->size += size;
}

void buffer_put_u32(struct buffer *b, uint32_t value)
{
        buffer_put(b, &value, sizeof(value));
}

void buffer_put_u64(struct buffer *b, uint64_t value)
{
        buffer_put(b, &value, sizeof(value));
}

void buffer_put_block(struct buffer *b, const void *data, size_t size)
{
        buffer_put_u32(b, (uint32_t)size);
        buffer_put(b, data, size);
}

void buffer_put_text(struct buffer *b, const char *text)
{
        if (!text)
                text = "";
        buffer_put_block(b, text, strlen(text) + 1);
}

void buffer_printf(struct buffer *b, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        int n = vsnprintf(NULL, 0, format, args);
        va_end(args);
        if (n <= 0)
                return;
        char *to = (char *)buffer_reserve(b, (size_t)n + 1);
        va_start(args, format);
        (void)vsnprintf(to, (size_t)n + 1, format, args);
        va_end(args);
        b->size += (size_t)n;
}

const char *buffer_text(struct buffer *b)
{
        *buffer_reserve(b, 1) = 0;
        return (const char *)b->data;
}

void reader_init(struct reader *r, const void *data, size_t size)
{
        *r = (struct reader){ .data = data, .size = size };
}

static const uint8_t *take(struct reader *r, size_t size)
{
        if (r->is_bad || size > r->size) {
                r->is_bad = true;
                return NULL;
        }
        const uint8_t *at = r->data;
        r->data += size;
        r->size -= size;
        return at;
}

uint32_t reader_u32(struct reader *r)
{
        uint32_t value = 0;
        const uint8_t *at = take(r, sizeof(value));
        if (at)
                memcpy(&value, at, sizeof(value));
        return value;
}

uint64_t reader_u64(struct reader *r)
{
        uint64_t value = 0;
        const uint8_t *at = take(r, sizeof(value));
        if (at)
                memcpy(&value, at, sizeof(value));
        return value;
}

const void *reader_block(struct reader *r, size_t *ret_size)
{
        uint32_t size = reader_u32(r);
        const uint8_t *at = take(r, size);
        *ret_size = at ? size : 0;
        return at ? (const void *)at : "";
}

const char *reader_text(struct reader *r)
{
        size_t size;
        const char *text = reader_block(r, &size);
        if (r->is_bad)
                return "";
        if (!size || memchr(text, 0, size) != text + size - 1) {
                r->is_bad = true;
                return "";
        }
        return text;
}
