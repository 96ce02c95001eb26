/* choices.h: a fuzzer's bytes as a row of decisions, so that what is made of them is nearly right more often than not.
 */
#ifndef QUIVER_TESTS_FUZZ_CHOICES_H
#define QUIVER_TESTS_FUZZ_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct choices {
        const uint8_t *data;
        size_t size;
};

/* 0 when there are none left. */
static inline uint8_t choose_byte(struct choices *c)
{
        if (!c->size)
                return 0;
        c->size--;
        return *c->data++;
}

static inline unsigned choose(struct choices *c, unsigned below)
{
        return choose_byte(c) % below;
}

static inline uint64_t choose_number(struct choices *c)
{
        static const uint64_t edges[] = { 0, 1, 2, 3, 5, 7, 9999999999, 10000000000, UINT32_MAX, INT64_MAX, UINT64_MAX,
                UINT64_MAX - 1, UINT64_C(9007199254740991), UINT64_C(9007199254740992) };
        unsigned which = choose(c, 32);
        if (which < sizeof(edges) / sizeof(edges[0]))
                return edges[which];
        return (uint64_t)choose_byte(c) << (which % 8 * 8);
}

/* What failed is said: the optimiser makes one place of many. */
static inline void demand_at(bool is_true, const char *what, const char *file, int line)
{
        if (is_true)
                return;
        (void)fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
        abort();
}
#define demand(is_true) demand_at(is_true, #is_true, __FILE__, __LINE__)

#endif
