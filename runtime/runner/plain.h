/* plain.h: text put together without printf, for the fault handler: no locale, no lock, no memory. */
#ifndef QUIVER_RUNNER_PLAIN_H
#define QUIVER_RUNNER_PLAIN_H

#include <stddef.h>
#include <stdint.h>

/* A text in the caller's memory, always NUL-terminated; what does not fit is left out. */
struct plain {
        char *text;
        size_t size; /* of the memory, at least 1 */
        size_t used; /* without the NUL */
};

void plain_init(struct plain *p, char *text, size_t size);
void plain_put(struct plain *p, const char *text);
void plain_put_number(struct plain *p, int64_t number);
/* With "0x" before it. */
void plain_put_hex(struct plain *p, uint64_t number);

#endif
