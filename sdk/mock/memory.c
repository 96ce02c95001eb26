#include <stdarg.h>

#include "internal.h"

struct block {
        struct block *next;
        max_align_t data[];
};

void qv_mock_wrong(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        (void)fprintf(stderr, "quiver mock: ");
        (void)vfprintf(stderr, format, args);
        (void)fprintf(stderr, "\n");
        va_end(args);
        abort();
}

void *qv_mock_keep(struct block **list, size_t size)
{
        struct block *block = calloc(1, sizeof(*block) + size);
        if (!block)
                qv_mock_wrong("out of memory");
        block->next = *list;
        *list = block;
        return block->data;
}

void *qv_mock_keep_bytes(struct block **list, const void *data, size_t size)
{
        char *copy = qv_mock_keep(list, size + 1);
        if (size)
                memcpy(copy, data, size);
        return copy;
}

char *qv_mock_keep_text(struct block **list, const char *text)
{
        return qv_mock_keep_bytes(list, text, strlen(text));
}

void qv_mock_drop(struct block **list)
{
        while (*list) {
                struct block *block = *list;
                *list = block->next;
                free(block);
        }
}
