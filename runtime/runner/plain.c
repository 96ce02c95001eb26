#include "runner/plain.h"

#define DIGITS_MAX 24

void plain_init(struct plain *p, char *text, size_t size)
{
        *p = (struct plain){ .text = text, .size = size };
        text[0] = 0;
}

void plain_put(struct plain *p, const char *text)
{
        while (*text && p->used + 1 < p->size)
                p->text[p->used++] = *text++;
        p->text[p->used] = 0;
}

static void put_unsigned(struct plain *p, uint64_t number, unsigned base)
{
        char digits[DIGITS_MAX];
        char *at = digits + sizeof(digits) - 1;
        *at = 0;
        do {
                *--at = "0123456789abcdef"[number % base];
                number /= base;
        } while (number);
        plain_put(p, at);
}

void plain_put_number(struct plain *p, int64_t number)
{
        if (number < 0)
                plain_put(p, "-");
        put_unsigned(p, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10);
}

void plain_put_hex(struct plain *p, uint64_t number)
{
        plain_put(p, "0x");
        put_unsigned(p, number, 16);
}
