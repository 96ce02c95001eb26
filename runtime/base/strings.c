#include "base/strings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

char *text_copy_part(const char *text, size_t size)
{
        char *copy = memory_alloc(size + 1);
        memcpy(copy, text, size);
        copy[size] = 0;
        return copy;
}

char *text_copy(const char *text)
{
        return text ? text_copy_part(text, strlen(text)) : NULL;
}

char *text_printf(const char *format, ...)
{
        char *text = NULL;
        va_list args;
        va_start(args, format);
        int n = vasprintf(&text, format, args);
        va_end(args);
        if (n < 0)
                abort();
        return text;
}

void text_free_secret(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

void *array_grow(void *items, size_t count, size_t size)
{
        /* The capacity doubles, so the array is full exactly when the count is zero or a power of two. */
        if ((count & (count - 1)) == 0)
                items = memory_or_abort(reallocarray(items, count ? 2 * count : 1, size));
        memset((char *)items + count * size, 0, size);
        return items;
}

void strings_add(struct strings *t, const char *text)
{
        t->items = array_grow(t->items, t->count, sizeof(*t->items));
        t->items[t->count++] = text_copy(text);
}

bool strings_has(const struct strings *t, const char *text)
{
        for (size_t i = 0; i < t->count; i++)
                if (!strcmp(t->items[i], text))
                        return true;
        return false;
}

void strings_free(struct strings *t)
{
        for (size_t i = 0; i < t->count; i++)
                free(t->items[i]);
        free(t->items);
        *t = (struct strings){ 0 };
}

size_t utf8_size(const unsigned char *at, size_t left)
{
        size_t size = *at < 0x80                  ? 1
                      : *at >= 0xc2 && *at < 0xe0 ? 2
                      : *at >= 0xe0 && *at < 0xf0 ? 3
                      : *at >= 0xf0 && *at < 0xf5 ? 4
                                                  : 0;
        if (!size || size > left)
                return 0;
        for (size_t i = 1; i < size; i++)
                if ((at[i] & 0xc0) != 0x80)
                        return 0;
        /* An overlong form, a surrogate, or beyond U+10FFFF. */
        if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
                (*at == 0xf4 && at[1] > 0x8f))
                return 0;
        return size;
}
