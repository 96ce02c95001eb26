/* Memory for things that come and go: what is taken next, and how much is kept. */
#include "check.h"

#include <stdbool.h>
#include <string.h>

#include "base/blocks.h"

/* Under the address sanitizer nothing is kept. */
static bool keeps(void)
{
        struct blocks blocks = { 0 };
        blocks_give(&blocks, blocks_take(&blocks, 1), 1);
        bool is_kept = blocks.spare_bytes;
        blocks_free(&blocks);
        return is_kept;
}

static void the_block_given_back_last_is_taken_first(void **state)
{
        (void)state;
        if (!keeps())
                skip();
        struct blocks blocks = { 0 };
        void *a = blocks_take(&blocks, 700);
        void *b = blocks_take(&blocks, 700);
        assert_ptr_not_equal(a, b);
        blocks_give(&blocks, a, 700);
        blocks_give(&blocks, b, 700);
        assert_ptr_equal(blocks_take(&blocks, 700), b);
        assert_ptr_equal(blocks_take(&blocks, 690), a); /* of the same multiple of a line */
        blocks_give(&blocks, a, 690);
        blocks_give(&blocks, b, 700);
        blocks_free(&blocks);
        assert_int_equal(blocks.spare_bytes, 0);
}

static void a_block_is_never_smaller_than_it_was_asked_for(void **state)
{
        (void)state;
        struct blocks blocks = { 0 };
        for (size_t size = 0; size < 3000; size++) {
                uint8_t *block = blocks_take(&blocks, size);
                assert_int_equal((uintptr_t)block % _Alignof(max_align_t), 0);
                memset(block, (int)size, size);
                blocks_give(&blocks, block, size);
        }
        /* Nor is one that was given back as a smaller one. */
        void *small = blocks_take(&blocks, 64);
        blocks_give(&blocks, small, 64);
        uint8_t *large = blocks_take(&blocks, 65);
        memset(large, 1, 65);
        blocks_give(&blocks, large, 65);
        blocks_free(&blocks);
}

static void no_more_is_kept_than_the_bound(void **state)
{
        (void)state;
        enum { COUNT_TAKEN = 3000 };
        static void *taken[COUNT_TAKEN];
        struct blocks blocks = { 0 };
        for (int i = 0; i < COUNT_TAKEN; i++)
                taken[i] = blocks_take(&blocks, 2000);
        for (int i = 0; i < COUNT_TAKEN; i++) {
                blocks_give(&blocks, taken[i], 2000);
                assert_true(blocks.spare_bytes <= BLOCKS_KEPT);
        }
        /* Large ones are not kept at all. */
        size_t before = blocks.spare_bytes;
        blocks_give(&blocks, blocks_take(&blocks, 1 << 20), 1 << 20);
        assert_int_equal(blocks.spare_bytes, before);
        blocks_free(&blocks);
}

static void without_blocks_memory_comes_from_malloc(void **state)
{
        (void)state;
        void *block = blocks_take(NULL, 100);
        memset(block, 1, 100);
        blocks_give(NULL, block, 100);
        blocks_give(NULL, NULL, 100);
        struct blocks blocks = { 0 };
        blocks_give(&blocks, NULL, 100);
        assert_int_equal(blocks.spare_bytes, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_block_given_back_last_is_taken_first),
                cmocka_unit_test(a_block_is_never_smaller_than_it_was_asked_for),
                cmocka_unit_test(no_more_is_kept_than_the_bound),
                cmocka_unit_test(without_blocks_memory_comes_from_malloc),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
