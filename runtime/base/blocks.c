#include "base/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Under the address sanitizer each block is freed at once, so that a use after that is found. */
#ifdef __SANITIZE_ADDRESS__
#define IS_KEPT 0
#else
#define IS_KEPT 1
#endif

static size_t rounded(size_t size)
{
        return (size + BLOCKS_STEP - 1) / BLOCKS_STEP * BLOCKS_STEP;
}

static void **spare_of(struct blocks *blocks, size_t size)
{
        size_t multiple = rounded(size) / BLOCKS_STEP;
        return IS_KEPT && blocks && multiple && multiple <= BLOCKS_SIZES ? &blocks->spare[multiple - 1] : NULL;
}

void *blocks_take(struct blocks *blocks, size_t size)
{
        void **spare = spare_of(blocks, size);
        if (!spare)
                return memory_alloc(size);
        if (!*spare)
                return memory_or_abort(aligned_alloc(BLOCKS_STEP, rounded(size)));
        void *block = *spare;
        memcpy(spare, block, sizeof(*spare));
        blocks->spare_bytes -= rounded(size);
        return block;
}

void blocks_give(struct blocks *blocks, void *block, size_t size)
{
        void **spare = spare_of(blocks, size);
        if (!block || !spare || blocks->spare_bytes + rounded(size) > BLOCKS_KEPT) {
                free(block);
                return;
        }
        memcpy(block, spare, sizeof(*spare));
        *spare = block;
        blocks->spare_bytes += rounded(size);
}

void blocks_free(struct blocks *blocks)
{
        for (unsigned i = 0; i < BLOCKS_SIZES; i++)
                while (blocks->spare[i]) {
                        void *block = blocks->spare[i];
                        memcpy(&blocks->spare[i], block, sizeof(void *));
                        free(block);
                }
        blocks->spare_bytes = 0;
}
