/* signal_text.h: builds text without printf(), for the fault handler: no locale, no lock, no allocation. */
#ifndef QUIVER_RUNNER_SIGNAL_TEXT_H
#define QUIVER_RUNNER_SIGNAL_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* A text in the caller's memory, always NUL-terminated; cut to fit. */
struct signal_text {
        char *text;
        size_t size; /* of the memory; at least 1 */
        size_t used; /* bytes of text, without the NUL */
};

void signal_text_init(struct signal_text *p, char *text, size_t size);
void signal_text_put(struct signal_text *p, const char *text);
void signal_text_put_number(struct signal_text *p, int64_t number);
/* Appends the number with "0x" before it. */
void signal_text_put_hex(struct signal_text *p, uint64_t number);

#endif
