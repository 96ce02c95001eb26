/* Ids: layouts, texts, and a generator whose ids are unique whatever the clock does. */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "id/generator.h"
#include "id/text.h"

#define NOW_MS UINT64_C(1794915000000)

static void ids_have_the_texts_of_the_well_known_library(void **state)
{
        (void)state;
        static const struct {
                uint64_t id;
                enum id_base base;
                const char *text;
        } vectors[] = {
                { UINT64_C(1427970479175499776), ID_BASE_32, "b8wjm1zroyyyy" },
                { UINT64_C(1428076403798048768), ID_BASE_58, "4jgmnx8Js8A" },
                { UINT64_C(1427970479175499776), ID_BASE_10, "1427970479175499776" },
                { 0, ID_BASE_32, "y" },
                { 0, ID_BASE_58, "1" },
                { INT64_MAX, ID_BASE_10, "9223372036854775807" },
        };
        for (size_t i = 0; i < COUNT(vectors); i++) {
                char text[ID_TEXT_MAX];
                uint64_t id = 7;
                assert_string_equal(id_format(vectors[i].id, vectors[i].base, text), vectors[i].text);
                assert_true(id_parse(span_of_text(text), vectors[i].base, &id));
                assert_int_equal(id, vectors[i].id);
        }
}

static void a_text_that_is_no_id_is_refused(void **state)
{
        (void)state;
        uint64_t id = 7;
        assert_false(id_parse(span_of_text(""), ID_BASE_10, &id));
        assert_false(id_parse(span_of_text("12x"), ID_BASE_10, &id));
        assert_false(id_parse(span_of_text("-1"), ID_BASE_10, &id));
        assert_false(id_parse(span_of_text("9223372036854775808"), ID_BASE_10, &id)); /* 2^63 */
        assert_false(id_parse(span_of_text("99999999999999999999"), ID_BASE_10, &id));
        assert_false(id_parse(span_of_text("l0"), ID_BASE_58, &id));
        assert_false(id_parse(span_of_text("b8wjm1zroyyyv"), ID_BASE_32, &id));
        assert_false(id_parse(span_of_text("9999999999999"), ID_BASE_32, &id)); /* 65 bits */
        assert_int_equal(id, 7);
}

static void an_id_is_decoded_into_time_slot_and_sequence(void **state)
{
        (void)state;
        struct id_layout snow = id_layout_standard(ID_SNOWFLAKE);
        struct id_parts parts = id_decompose(&snow, UINT64_C(1427970479175499776));
        assert_int_equal(id_time_ms(&snow, parts.time), UINT64_C(1629289667301));
        assert_int_equal(parts.slot, 0);
        assert_int_equal(parts.sequence, 0);
        parts = (struct id_parts){ .time = 5, .slot = 3 << 5 | 7, .sequence = 4095 };
        assert_int_equal(id_compose(&snow, &parts), UINT64_C(5) << 22 | (3 << 5 | 7) << 12 | 4095);
        struct id_layout sony = id_layout_standard(ID_SONYFLAKE);
        parts = (struct id_parts){ .time = 5, .slot = 65535, .sequence = 255 };
        assert_int_equal(id_compose(&sony, &parts), UINT64_C(5) << 24 | UINT64_C(255) << 16 | 65535);
        parts = id_decompose(&sony, id_compose(&sony, &parts));
        assert_int_equal(parts.slot, 65535);
        assert_int_equal(parts.sequence, 255);
        assert_int_equal(id_time_ms(&sony, parts.time), sony.epoch_ms + 50);
}

static void a_layout_is_recorded_as_text_and_read_back(void **state)
{
        (void)state;
        static const char *const good[] = { "41.10.12", "sonyflake:39.16.8", "42.6.15@1700000000000",
                "sonyflake:40.8.15@1", "41.10.12@0" };
        static const char *const bad[] = { "41.10.13", "63.0.0", "41.10", "41.10.12.0", "x", "41.10.12@", "41.10.12@x",
                "41.10.12@99999999999999999", "30.23.10", "sonyflake:", "sonyflake:41.10.13", "41..22", "41.10.12 ",
                "@1", "moonflake:41.10.12" };
        struct id_layout layout;
        for (size_t i = 0; i < COUNT(good); i++) {
                struct buffer text = { 0 };
                assert_true(id_layout_read(span_of_text(good[i]), &layout));
                id_layout_put(&text, &layout);
                assert_string_equal(buffer_text(&text), good[i]);
                buffer_free(&text);
        }
        for (size_t i = 0; i < COUNT(bad); i++)
                if (id_layout_read(span_of_text(bad[i]), &layout))
                        fail_msg("%s was read", bad[i]);
        struct id_layout standard = id_layout_standard(ID_SNOWFLAKE);
        assert_true(id_layout_read(span_of_text(""), &layout));
        assert_true(id_layout_is_same(&layout, &standard));
        assert_true(id_layout_end_ms(&standard) > UINT64_C(3487000000000)); /* 2080 */
}

/* --- the generator ------------------------------------------------------------------------------------------------ */

static struct id_generator g;
static struct id_block block;

static void make(enum id_kind kind, uint32_t slot, uint64_t from_ms, uint64_t until_ms)
{
        struct id_layout layout = id_layout_standard(kind);
        id_generator_init(&g, &layout);
        id_generator_grant(&g, slot, from_ms, until_ms);
}

static enum id_verdict take_at(uint64_t now_ms, uint32_t want)
{
        return id_generator_take(&g, now_ms * NS_PER_MS, want, &block);
}

static uint64_t time_of(uint64_t id)
{
        return id_time_ms(&g.layout, id_decompose(&g.layout, id).time);
}

static void ids_grow_and_carry_time_and_slot(void **state)
{
        (void)state;
        make(ID_SNOWFLAKE, 77, NOW_MS, NOW_MS + 10000);
        uint64_t last = 0;
        for (unsigned i = 0; i < 10000; i++) {
                assert_int_equal(take_at(NOW_MS + i / 1000, 1), ID_GIVEN);
                assert_true(block.first > last);
                last = block.first;
                assert_int_equal(time_of(last), NOW_MS + i / 1000);
                assert_int_equal(id_decompose(&g.layout, last).slot, 77);
        }
}

static void a_unit_has_as_many_ids_as_its_sequence_and_then_the_next_is_waited_for(void **state)
{
        (void)state;
        make(ID_SNOWFLAKE, 1, NOW_MS, NOW_MS + 10000);
        assert_int_equal(take_at(NOW_MS, 4000), ID_GIVEN);
        assert_int_equal(block.count, 4000);
        assert_int_equal(take_at(NOW_MS, 4000), ID_GIVEN);
        assert_int_equal(block.count, 96);
        assert_int_equal(block.first + 95, (block.first | 4095));
        assert_int_equal(id_generator_take(&g, NOW_MS * NS_PER_MS + 400000, 1, &block), ID_WAIT);
        assert_int_equal(block.wait_ns, 600000);
        assert_int_equal(take_at(NOW_MS + 1, 1), ID_GIVEN);
        make(ID_SONYFLAKE, 1, NOW_MS, NOW_MS + 10000);
        assert_int_equal(take_at(NOW_MS + 3, 1000), ID_GIVEN);
        assert_int_equal(block.count, 256);
        assert_int_equal(block.step, 65536);
        assert_int_equal(take_at(NOW_MS + 3, 1), ID_WAIT);
        assert_int_equal(block.wait_ns, 7 * NS_PER_MS);
        assert_int_equal(take_at(NOW_MS + 10, 1), ID_GIVEN);
}

static void a_small_step_back_of_the_clock_waits_and_a_large_one_is_an_error(void **state)
{
        (void)state;
        make(ID_SNOWFLAKE, 1, NOW_MS, NOW_MS + 10000);
        assert_int_equal(take_at(NOW_MS + 100, 4096), ID_GIVEN);
        assert_int_equal(take_at(NOW_MS + 95, 1), ID_WAIT);
        assert_int_equal(block.wait_ns, 6 * NS_PER_MS);
        assert_int_equal(take_at(NOW_MS + 100 - 3600000, 1), ID_BACKWARD);
        assert_int_equal(block.back_ms, 3600001);
        assert_int_equal(take_at(NOW_MS + 101, 1), ID_GIVEN);
}

static void no_id_is_given_beyond_the_horizon_or_before_the_grant(void **state)
{
        (void)state;
        make(ID_SNOWFLAKE, 1, NOW_MS + 50, NOW_MS + 100);
        assert_int_equal(take_at(NOW_MS, 1), ID_WAIT); /* the last owner may have given ids of these */
        assert_int_equal(block.wait_ns, 50 * NS_PER_MS);
        assert_int_equal(take_at(NOW_MS + 50, 1), ID_GIVEN);
        assert_int_equal(take_at(NOW_MS + 99, 1), ID_GIVEN);
        assert_int_equal(take_at(NOW_MS + 100, 1), ID_BEYOND);
        id_generator_grant(&g, 1, NOW_MS + 100, NOW_MS + 200);
        assert_int_equal(take_at(NOW_MS + 100, 1), ID_GIVEN);
        /* A unit of 10 ms counts as a whole, at both ends. */
        make(ID_SONYFLAKE, 1, NOW_MS + 1, NOW_MS + 29);
        assert_int_equal(take_at(NOW_MS + 9, 1), ID_WAIT);
        assert_int_equal(take_at(NOW_MS + 10, 1), ID_GIVEN);
        assert_int_equal(take_at(NOW_MS + 20, 1), ID_BEYOND);
}

static void another_slot_goes_on_with_larger_ids(void **state)
{
        (void)state;
        make(ID_SNOWFLAKE, 900, NOW_MS, NOW_MS + 100);
        assert_int_equal(take_at(NOW_MS + 10, 1), ID_GIVEN);
        uint64_t last = block.first;
        id_generator_grant(&g, 3, NOW_MS, NOW_MS + 100);
        assert_int_equal(take_at(NOW_MS + 10, 1), ID_WAIT);
        assert_int_equal(take_at(NOW_MS + 11, 1), ID_GIVEN);
        assert_true(block.first > last);
        assert_int_equal(id_decompose(&g.layout, block.first).slot, 3);
}

static void what_is_given_back_ends_behind_the_last_id(void **state)
{
        (void)state;
        make(ID_SNOWFLAKE, 1, NOW_MS, NOW_MS + 10000);
        assert_int_equal(take_at(NOW_MS + 10, 1), ID_GIVEN);
        assert_int_equal(id_generator_stop(&g), NOW_MS + 11);
        assert_int_equal(take_at(NOW_MS + 12, 1), ID_BEYOND);
        /* None was given: the grant of the owner before ended where this one began. */
        make(ID_SNOWFLAKE, 1, NOW_MS, NOW_MS + 10000);
        assert_int_equal(id_generator_stop(&g), NOW_MS);
}

static void a_clock_outside_the_layouts_times_is_an_error(void **state)
{
        (void)state;
        make(ID_SNOWFLAKE, 1, NOW_MS, UINT64_MAX);
        uint64_t end_ms = id_layout_end_ms(&g.layout);
        assert_int_equal(take_at(g.layout.epoch_ms - 1, 1), ID_OVERFLOW);
        assert_int_equal(take_at(end_ms, 1), ID_OVERFLOW);
        assert_int_equal(take_at(end_ms - 1, 4096), ID_GIVEN);
        assert_true(block.first + 4095 <= INT64_MAX);
        assert_int_equal(take_at(end_ms - 1, 1), ID_WAIT);
}

/* --- many at once ------------------------------------------------------------------------------------------------- */

#define THREADS 10
#define EACH    100000

static uint64_t now_ns(void)
{
        struct timespec t;
        (void)clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void *take_many(void *self)
{
        uint64_t *ids = self;
        struct id_block mine;
        for (unsigned i = 0; i < EACH;) {
                enum id_verdict verdict = id_generator_take(&g, now_ns(), 1, &mine);
                if (verdict == ID_GIVEN)
                        ids[i++] = mine.first;
                else if (verdict != ID_WAIT)
                        break;
        }
        return NULL;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a;
        uint64_t y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

static void ten_threads_take_a_million_different_ids(void **state)
{
        (void)state;
        uint64_t now_ms = now_ns() / NS_PER_MS;
        uint64_t *ids = calloc((size_t)THREADS * EACH, sizeof(*ids));
        pthread_t threads[THREADS];
        make(ID_SNOWFLAKE, 5, now_ms, now_ms + 3600000);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, take_many, ids + (size_t)i * EACH), 0);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        for (unsigned i = 0; i < THREADS; i++)
                for (unsigned k = 1; k < EACH; k++)
                        assert_true(ids[i * EACH + k] > ids[i * EACH + k - 1]);
        qsort(ids, (size_t)THREADS * EACH, sizeof(*ids), compare);
        for (size_t i = 1; i < (size_t)THREADS * EACH; i++)
                assert_true(ids[i] > ids[i - 1]);
        free(ids);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ids_have_the_texts_of_the_well_known_library),
                cmocka_unit_test(a_text_that_is_no_id_is_refused),
                cmocka_unit_test(an_id_is_decoded_into_time_slot_and_sequence),
                cmocka_unit_test(a_layout_is_recorded_as_text_and_read_back),
                cmocka_unit_test(ids_grow_and_carry_time_and_slot),
                cmocka_unit_test(a_unit_has_as_many_ids_as_its_sequence_and_then_the_next_is_waited_for),
                cmocka_unit_test(a_small_step_back_of_the_clock_waits_and_a_large_one_is_an_error),
                cmocka_unit_test(no_id_is_given_beyond_the_horizon_or_before_the_grant),
                cmocka_unit_test(another_slot_goes_on_with_larger_ids),
                cmocka_unit_test(what_is_given_back_ends_behind_the_last_id),
                cmocka_unit_test(a_clock_outside_the_layouts_times_is_an_error),
                cmocka_unit_test(ten_threads_take_a_million_different_ids),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
