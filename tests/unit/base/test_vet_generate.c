/* The random payloads of `quiver vet`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/vet/vet.h"

#define MANY 5000

static const struct vet_corpus nothing;

static void the_same_seed_gives_the_same_payloads(void **state)
{
        (void)state;
        struct buffer a = { 0 };
        struct buffer b = { 0 };
        uint64_t differing = 0;
        for (uint64_t i = 0; i < MANY; i++) {
                vet_generate(7, i, &nothing, &a);
                vet_generate(7, i, &nothing, &b);
                assert_int_equal(a.size, b.size);
                assert_true(!a.size || !memcmp(a.data, b.data, a.size));
                vet_generate(8, i, &nothing, &b);
                differing += a.size != b.size || (a.size && memcmp(a.data, b.data, a.size) != 0);
        }
        assert_true(differing > MANY * 3 / 4);
        buffer_free(&a);
        buffer_free(&b);
}

static bool has_byte(const struct buffer *payload, int byte)
{
        return payload->size && memchr(payload->data, byte, payload->size);
}

static void every_kind_of_payload_occurs_and_none_is_over_the_limit(void **state)
{
        (void)state;
        struct buffer payload = { 0 };
        uint64_t empty = 0;
        uint64_t with_nul = 0;
        uint64_t objects = 0;
        uint64_t beyond_ascii = 0;
        uint64_t large = 0;
        uint64_t largest = 0;
        for (uint64_t i = 0; i < MANY; i++) {
                vet_generate(1, i, &nothing, &payload);
                assert_true(payload.size <= VET_PAYLOAD_MAX);
                empty += !payload.size;
                with_nul += has_byte(&payload, 0);
                objects += payload.size > 6 && !memcmp(payload.data, "{\"id\":", 6);
                beyond_ascii += has_byte(&payload, 0xc3);
                large += payload.size > 4096;
                largest += payload.size == VET_PAYLOAD_MAX;
        }
        assert_true(empty && with_nul && objects && beyond_ascii && largest);
        assert_true(large > largest);
        /* A run of ten thousand must not be all about copying. */
        assert_true(largest < MANY / 100);
        buffer_free(&payload);
}

static void a_corpus_comes_first_and_is_changed_within_the_limit(void **state)
{
        (void)state;
        struct buffer items[2] = { { 0 } };
        const struct vet_corpus corpus = { items, 2 };
        struct buffer a = { 0 };
        struct buffer b = { 0 };
        uint64_t akin = 0;
        buffer_put(&items[0], "order 7", 7);
        memset(buffer_reserve(&items[1], VET_PAYLOAD_MAX), 'x', VET_PAYLOAD_MAX);
        items[1].size = VET_PAYLOAD_MAX;
        vet_generate(7, 0, &corpus, &a);
        assert_int_equal(a.size, 7);
        vet_generate(7, 1, &corpus, &a);
        assert_int_equal(a.size, VET_PAYLOAD_MAX);
        vet_generate(7, 2, &corpus, &a);
        assert_int_equal(a.size, 0); /* the first that is tried without a corpus */
        for (uint64_t i = 2; i < 1000; i++) {
                vet_generate(7, i, &corpus, &a);
                vet_generate(7, i, &corpus, &b);
                assert_true(a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size)));
                assert_true(a.size <= VET_PAYLOAD_MAX);
                akin += a.size > 3 && memmem(a.data, a.size, "ord", 3);
        }
        assert_true(akin > 100);
        buffer_free(&items[0]);
        buffer_free(&items[1]);
        buffer_free(&a);
        buffer_free(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_same_seed_gives_the_same_payloads),
                cmocka_unit_test(a_corpus_comes_first_and_is_changed_within_the_limit),
                cmocka_unit_test(every_kind_of_payload_occurs_and_none_is_over_the_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
