#include "runner/signal_text.h"

#define DIGITS_MAX 24

void signal_text_init(struct signal_text *p, char *text, size_t size)
{
        *p = (struct signal_text){ .text = text, .size = size };
        text[0] = 0;
}

void signal_text_put(struct signal_text *p, const char *text)
{
        while (*text && p->used + 1 < p->size)
                p->text[p->used++] = *text++;
        p->text[p->used] = 0;
}

static void put_unsigned(struct signal_text *p, uint64_t number, unsigned base)
{
        char digits[DIGITS_MAX];
        char *at = digits + sizeof(digits) - 1;
        *at = 0;
        do {
                *--at = "0123456789abcdef"[number % base];
                number /= base;
        } while (number);
        signal_text_put(p, at);
}

void signal_text_put_number(struct signal_text *p, int64_t number)
{
        if (number < 0)
                signal_text_put(p, "-");
        put_unsigned(p, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10);
}

void signal_text_put_hex(struct signal_text *p, uint64_t number)
{
        signal_text_put(p, "0x");
        put_unsigned(p, number, 16);
}
