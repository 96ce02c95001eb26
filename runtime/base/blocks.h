/* blocks.h: memory for thousands of things of a few sizes that come and go all the time.
 *
 * The block that was given back last is taken first: it is still in the processor's caches.  malloc() would merge it
 * with its neighbours, which are not, and return to it much later.  Not for several threads. */
#ifndef QUIVER_BASE_BLOCKS_H
#define QUIVER_BASE_BLOCKS_H

#include <stddef.h>

#define BLOCKS_STEP  64u        /* sizes are rounded up to multiples of a cache line, where each block begins */
#define BLOCKS_SIZES 32u        /* so many multiples; larger blocks come from malloc() and are freed at once */
#define BLOCKS_KEPT  (4u << 20) /* bytes in spare blocks: more are freed at once */

/* All zero: no spare blocks. */
struct blocks {
        void *spare[BLOCKS_SIZES]; /* per size: a list, each block's first word is the next one; owned */
        size_t spare_bytes;
};

/* Not zeroed.  Running out of memory ends the process.  With `blocks` NULL, here and below: malloc() and free(). */
void *blocks_take(struct blocks *blocks, size_t size);
/* `size` as it was taken. */
void blocks_give(struct blocks *blocks, void *block, size_t size);
/* Frees the spare blocks; those that are in use stay. */
void blocks_free(struct blocks *blocks);

#endif
