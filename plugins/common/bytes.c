#include "bytes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP_BYTES 65536u

void bytes_free(struct bytes *b)
{
        free(b->data);
        *b = (struct bytes){ 0 };
}

void bytes_clear(struct bytes *b)
{
        b->size = 0;
        if (b->is_broken || b->room > KEEP_BYTES)
                bytes_free(b);
}

static bool has_room(struct bytes *b, size_t more)
{
        if (b->is_broken || b->room - b->size >= more)
                return !b->is_broken;
        size_t room = b->room ? b->room : 256;
        while (room - b->size < more)
                room *= 2;
        char *data = realloc(b->data, room);
        if (!data) {
                b->is_broken = true;
                return false;
        }
        b->data = data;
        b->room = room;
        return true;
}

void bytes_put(struct bytes *b, const void *data, size_t size)
{
        if (!size || !has_room(b, size))
                return;
        memcpy(b->data + b->size, data, size);
        b->size += size;
}

void bytes_put_text(struct bytes *b, const char *text)
{
        bytes_put(b, text, strlen(text));
}

void bytes_printf(struct bytes *b, const char *format, ...)
{
        char text[1024];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        if (n < 0 || (size_t)n >= sizeof(text))
                b->is_broken = true;
        else
                bytes_put(b, text, (size_t)n);
}

void bytes_drop(struct bytes *b, size_t size)
{
        if (!size)
                return;
        b->size -= size;
        if (b->size)
                memmove(b->data, b->data + size, b->size);
}

long bytes_read(struct bytes *b, int fd, size_t size)
{
        ssize_t n;
        if (!has_room(b, size))
                return -ENOMEM;
        do
                n = read(fd, b->data + b->size, size);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        b->size += (size_t)n;
        return n;
}
