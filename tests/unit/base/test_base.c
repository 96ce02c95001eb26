/* The base library: units, buffers and readers, error texts, log lines. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/units.h"

static void durations_need_a_unit_and_are_exact(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                uint64_t ms;
        } good[] = { { "0", 0 }, { "0s", 0 }, { "250ms", 250 }, { "1.5s", 1500 }, { "30s", 30000 }, { "5m", 300000 },
                { "2h", 7200000 }, { "1d", 86400000 }, { "0.25 s", 250 }, { "0.0004s", 0 },
                { "106751d", 9223286400000 } };
        for (size_t i = 0; i < COUNT(good); i++) {
                uint64_t ms = 77;
                struct error error = { "" };
                assert_int_equal(units_duration_ms(good[i].text, &ms, &error), 0);
                assert_int_equal(ms, good[i].ms);
                assert_string_equal(error.text, "");
        }
}

static void sizes_count_in_powers_of_1024(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                uint64_t bytes;
        } good[] = { { "0", 0 }, { "512", 512 }, { "1B", 1 }, { "64K", 65536 }, { "64KB", 65536 }, { "64KiB", 65536 },
                { "1.5MiB", 1572864 }, { "2G", UINT64_C(2147483648) } };
        for (size_t i = 0; i < COUNT(good); i++) {
                uint64_t bytes = 77;
                assert_int_equal(units_size_bytes(good[i].text, &bytes, NULL), 0);
                assert_int_equal(bytes, good[i].bytes);
        }
}

static void what_is_no_duration_is_refused_and_changes_nothing(void **state)
{
        (void)state;
        static const char *const bad[] = { "", " 1s", "-1s", "+1s", "30", "s", "1x", "1 ", "1.2.3s", "0x10s", "1e3s",
                "inf", "nan", "infs", ".5s", "1s1s", "1S", "1ms ", "1\ns", "999999999999999999d", "1,5s" };
        for (size_t i = 0; i < COUNT(bad); i++) {
                uint64_t ms = 77;
                struct error error = { "" };
                int r = units_duration_ms(bad[i], &ms, &error);
                assert_true(r == -EINVAL || r == -ERANGE);
                assert_int_equal(ms, 77);
                assert_contains(error.text, bad[i]);
        }
        uint64_t ms = 77;
        assert_int_equal(units_duration_ms(NULL, &ms, NULL), -EINVAL);
        char digits[400];
        memset(digits, '9', sizeof(digits));
        digits[sizeof(digits) - 2] = 's';
        digits[sizeof(digits) - 1] = 0;
        assert_int_equal(units_duration_ms(digits, &ms, NULL), -ERANGE);
        assert_int_equal(ms, 77);
}

static void a_refusal_says_what_to_write(void **state)
{
        (void)state;
        uint64_t value = 0;
        struct error error = { "" };
        assert_int_equal(units_duration_ms("30", &value, &error), -EINVAL);
        assert_contains(error.text, "has no unit; write a duration like");
        assert_int_equal(units_size_bytes("3 parsecs", &value, &error), -EINVAL);
        assert_contains(error.text, "unknown unit \"parsecs\"");
        assert_int_equal(units_size_bytes("9999999GiB", &value, &error), -ERANGE);
        assert_contains(error.text, "too large");
}

static void numbers_are_shown_short(void **state)
{
        (void)state;
        char text[UNITS_TEXT_MAX];
        assert_string_equal(units_format_ms(text, 0), "0ms");
        assert_string_equal(units_format_ms(text, 250), "250ms");
        assert_string_equal(units_format_ms(text, 1500), "1.5s");
        assert_string_equal(units_format_ms(text, 600000), "10m");
        assert_string_equal(units_format_ms(text, 5400000), "1.5h");
        assert_string_equal(units_format_ms(text, 3 * 86400000), "3d");
        assert_true(strlen(units_format_ms(text, UINT64_MAX)) < UNITS_TEXT_MAX);
        assert_string_equal(units_format_ns(text, 400), "0.4us");
        assert_string_equal(units_format_ns(text, 2500000), "2.5ms");
        assert_string_equal(units_format_ns(text, 2000000000), "2s");
        assert_string_equal(units_format_bytes(text, 512), "512 B");
        assert_string_equal(units_format_bytes(text, 1536), "1.5 KiB");
        assert_string_equal(units_format_bytes(text, 64 << 20), "64 MiB");
        assert_string_equal(units_format_bytes(text, UINT64_C(5) << 30), "5 GiB");
}

static void what_was_put_is_read_back(void **state)
{
        (void)state;
        struct buffer b = { 0 };
        uint8_t large[3000];
        memset(large, 0xa5, sizeof(large));
        buffer_put_u32(&b, 7);
        buffer_put_text(&b, "text");
        buffer_put_text(&b, NULL);
        buffer_put_block(&b, large, sizeof(large));
        buffer_put_block(&b, NULL, 0);
        buffer_put_u64(&b, UINT64_MAX - 1);

        struct reader r;
        size_t size = 0;
        reader_init(&r, b.data, b.size);
        assert_int_equal(reader_u32(&r), 7);
        assert_string_equal(reader_text(&r), "text");
        assert_string_equal(reader_text(&r), "");
        assert_memory_equal(reader_block(&r, &size), large, sizeof(large));
        assert_int_equal(size, sizeof(large));
        assert_non_null(reader_block(&r, &size));
        assert_int_equal(size, 0);
        assert_int_equal(reader_u64(&r), UINT64_MAX - 1);
        assert_false(r.is_bad);
        assert_int_equal(r.size, 0);
        assert_int_equal(reader_u32(&r), 0);
        assert_true(r.is_bad);
        buffer_free(&b);
}

static void a_buffer_grows_and_can_be_used_again(void **state)
{
        (void)state;
        struct buffer b = { 0 };
        for (int i = 0; i < 1000; i++)
                buffer_printf(&b, "%03d,", i);
        assert_int_equal(b.size, 4000);
        assert_memory_equal(buffer_text(&b) + 3996, "999,", 5);
        assert_int_equal(b.size, 4000);
        buffer_clear(&b);
        assert_string_equal(buffer_text(&b), "");
        struct buffer none = { 0 };
        assert_null(buffer_reserve(&none, 0)); /* no sum with a null pointer */
        uint8_t *at = buffer_reserve(&b, 100000);
        memset(at, 1, 100000);
        assert_int_equal(b.size, 0);
        buffer_free(&b);
        assert_null(b.data);
        buffer_free(&b);
        buffer_free(NULL);
}

/* Each prefix stands in memory of just its size, so that ASan sees the first byte too many. */
static void a_reader_stops_at_the_end_wherever_that_is(void **state)
{
        (void)state;
        struct buffer b = { 0 };
        buffer_put_u64(&b, 1);
        buffer_put_text(&b, "key");
        buffer_put_block(&b, "payload", 7);
        for (size_t size = 0; size < b.size; size++) {
                uint8_t *cut = malloc(size + !size);
                assert_non_null(cut);
                memcpy(cut, b.data, size);
                struct reader r;
                size_t block_size = 99;
                reader_init(&r, cut, size);
                (void)reader_u64(&r);
                (void)reader_text(&r);
                assert_non_null(reader_block(&r, &block_size));
                assert_true(r.is_bad);
                assert_int_equal(block_size, 0);
                assert_string_equal(reader_text(&r), "");
                assert_int_equal(reader_u64(&r), 0);
                free(cut);
        }
        buffer_free(&b);
}

static void a_text_has_its_only_nul_at_the_end(void **state)
{
        (void)state;
        static const struct {
                const char *bytes;
                size_t size;
        } bad[] = { { "", 0 }, { "abc", 3 }, { "a\0b", 4 }, { "\0\0", 2 } };
        for (size_t i = 0; i < COUNT(bad); i++) {
                struct buffer b = { 0 };
                buffer_put_block(&b, bad[i].bytes, bad[i].size);
                struct reader r;
                reader_init(&r, b.data, b.size);
                assert_string_equal(reader_text(&r), "");
                assert_true(r.is_bad);
                buffer_free(&b);
        }
}

static void a_huge_length_is_not_believed(void **state)
{
        (void)state;
        struct buffer b = { 0 };
        buffer_put_u32(&b, UINT32_MAX);
        buffer_put_u32(&b, 0);
        struct reader r;
        size_t size = 99;
        reader_init(&r, b.data, b.size);
        (void)reader_block(&r, &size);
        assert_true(r.is_bad);
        assert_int_equal(size, 0);
        buffer_free(&b);
}

static void an_error_is_set_prefixed_and_cut(void **state)
{
        (void)state;
        struct error error = { "" };
        assert_int_equal(error_set(&error, -ENOENT, "%s is not there", "x.so"), -ENOENT);
        assert_int_equal(error_prefix(&error, -EINVAL, "handler %s", "echo"), -EINVAL);
        assert_string_equal(error.text, "handler echo: x.so is not there");
        assert_int_equal(error_set(NULL, -EIO, "nobody reads this"), -EIO);
        assert_int_equal(error_prefix(NULL, -EIO, "nor this"), -EIO);
        char large[2 * ERROR_TEXT_MAX];
        memset(large, 'x', sizeof(large));
        large[sizeof(large) - 1] = 0;
        (void)error_prefix(&error, 0, "%s", large);
        assert_int_equal(strlen(error.text), ERROR_TEXT_MAX - 1);
        (void)error_set(&error, 0, "%s", large);
        (void)error_prefix(&error, 0, "short");
        assert_int_equal(strlen(error.text), ERROR_TEXT_MAX - 1);
        assert_memory_equal(error.text, "short: xxx", 10);
}

static void the_nearest_name_is_what_was_meant_or_nothing(void **state)
{
        (void)state;
        static const char *const known[] = { "status", "submit", "run", "reload", "threads" };
        assert_string_equal(error_nearest("sttaus", known, COUNT(known)), "status");
        assert_string_equal(error_nearest("STATUS", known, COUNT(known)), "status");
        assert_string_equal(error_nearest("stat", known, COUNT(known)), "status");
        assert_string_equal(error_nearest("thread", known, COUNT(known)), "threads");
        assert_string_equal(error_nearest("relaod", known, COUNT(known)), "reload");
        assert_string_equal(error_nearest("subnit", known, COUNT(known)), "submit");
        assert_null(error_nearest("frobnicate", known, COUNT(known)));
        assert_null(error_nearest("", known, COUNT(known)));
        assert_null(error_nearest("x", known, COUNT(known)));
        assert_null(error_nearest("status", known, 0));
        char large[1000];
        memset(large, 's', sizeof(large));
        large[sizeof(large) - 1] = 0;
        assert_null(error_nearest(large, known, COUNT(known)));
}

static void a_log_value_is_quoted_only_where_needed(void **state)
{
        (void)state;
        char text[64];
        assert_string_equal(log_quote(text, sizeof(text), "plain/value:1"), "plain/value:1");
        assert_string_equal(log_quote(text, sizeof(text), ""), "\"\"");
        assert_string_equal(log_quote(text, sizeof(text), "42"), "\"42\"");
        assert_string_equal(log_quote(text, sizeof(text), "two words"), "\"two words\"");
        assert_string_equal(log_quote(text, sizeof(text), "a=b"), "\"a=b\"");
        assert_string_equal(log_quote(text, sizeof(text), "say \"hi\" \\"), "\"say \\\"hi\\\" \\\\\"");
        assert_string_equal(log_quote(text, sizeof(text), "a\nb\tc\x01\x7f"), "\"a\\nb\\tc\\x01\\x7f\"");
        assert_string_equal(log_quote(text, sizeof(text), "gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

/* Every size, every length, a character that grows to four at every place: never a byte beyond the buffer. */
static void a_log_value_is_cut_to_fit(void **state)
{
        (void)state;
        for (size_t size = 8; size < 40; size++) {
                for (size_t length = 0; length < 48; length++) {
                        for (size_t odd = 0; odd <= length; odd++) {
                                char value[64];
                                memset(value, 'v', length);
                                value[length] = 0;
                                if (odd < length)
                                        value[odd] = '\x02';
                                char *text = malloc(size + 1);
                                assert_non_null(text);
                                text[size] = '!';
                                assert_ptr_equal(log_quote(text, size, value), text);
                                assert_true(strlen(text) < size);
                                assert_int_equal(text[size], '!');
                                free(text);
                        }
                }
        }
}

static void a_log_line_is_one_line_of_logfmt(void **state)
{
        (void)state;
        char text[2 * LOG_LINE_MAX];
        struct capture c;
        capture_start(&c, STDERR_FILENO);
        log_event(LEVEL_WARN, "takeover", "shard=%d from=%s", 7, LOG_QUOTE("host a"));
        log_event(LEVEL_INFO, "ready", "%s", "");
        log_event(LEVEL_DEBUG, "hidden", "x=1");
        capture_stop(&c, text, sizeof(text));
        assert_memory_equal(text, "time=", 5);
        assert_int_equal(strspn(text + 5, "0123456789-"), 10);
        assert_memory_equal(text + 24, ".", 1);
        assert_memory_equal(text + 28, "Z level=warn event=takeover shard=7 from=\"host a\"\n", 50);
        assert_contains(text, " level=info event=ready");
        assert_null(strstr(text, "hidden"));
}

static void a_long_log_line_is_cut_and_still_ends(void **state)
{
        (void)state;
        char value[2 * LOG_LINE_MAX];
        char text[2 * LOG_LINE_MAX];
        memset(value, 'v', sizeof(value));
        value[sizeof(value) - 1] = 0;
        struct capture c;
        capture_start(&c, STDERR_FILENO);
        log_event(LEVEL_ERROR, "long", "value=%s", value);
        log_event(LEVEL_ERROR, "next", "x=1");
        capture_stop(&c, text, sizeof(text));
        char *end = strchr(text, '\n');
        assert_non_null(end);
        assert_true(end - text < LOG_LINE_MAX);
        assert_contains(end, " level=error event=next x=1\n");
}

static void log_levels_have_names(void **state)
{
        (void)state;
        enum log_level level = LEVEL_INFO;
        assert_true(log_level_parse("debug", &level));
        assert_int_equal(level, LEVEL_DEBUG);
        assert_false(log_level_parse("DEBUG!", &level));
        assert_int_equal(level, LEVEL_DEBUG);
        assert_string_equal(log_level_name(LEVEL_WARN), "warn");
        assert_string_equal(log_level_name(-1), "unknown");
        assert_string_equal(log_level_name(99), "unknown");
        log_set_level(LEVEL_ERROR);
        assert_int_equal(log_level_get(), LEVEL_ERROR);
        log_set_level(LEVEL_INFO);
}

/* --- sha256 --- */

static void expect_digest(const char *text, size_t repeat, const char *hex)
{
        struct sha256 h;
        uint8_t digest[SHA256_SIZE];
        char shown[2 * SHA256_SIZE + 1];
        sha256_init(&h);
        for (size_t i = 0; i < repeat; i++)
                sha256_put(&h, text, strlen(text));
        sha256_end(&h, digest);
        assert_string_equal(units_hex(shown, digest, SHA256_SIZE), hex);
}

/* The standard's own vectors. */
static void sha256_is_the_standards(void **state)
{
        (void)state;
        expect_digest("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        expect_digest("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        expect_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        expect_digest("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(durations_need_a_unit_and_are_exact),
                cmocka_unit_test(sizes_count_in_powers_of_1024),
                cmocka_unit_test(what_is_no_duration_is_refused_and_changes_nothing),
                cmocka_unit_test(a_refusal_says_what_to_write),
                cmocka_unit_test(numbers_are_shown_short),
                cmocka_unit_test(what_was_put_is_read_back),
                cmocka_unit_test(a_buffer_grows_and_can_be_used_again),
                cmocka_unit_test(a_reader_stops_at_the_end_wherever_that_is),
                cmocka_unit_test(a_text_has_its_only_nul_at_the_end),
                cmocka_unit_test(a_huge_length_is_not_believed),
                cmocka_unit_test(an_error_is_set_prefixed_and_cut),
                cmocka_unit_test(the_nearest_name_is_what_was_meant_or_nothing),
                cmocka_unit_test(a_log_value_is_quoted_only_where_needed),
                cmocka_unit_test(a_log_value_is_cut_to_fit),
                cmocka_unit_test(a_log_line_is_one_line_of_logfmt),
                cmocka_unit_test(a_long_log_line_is_cut_and_still_ends),
                cmocka_unit_test(log_levels_have_names),
                cmocka_unit_test(sha256_is_the_standards),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
