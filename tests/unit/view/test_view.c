/* How bytes, times, tasks, keys and results are shown. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "view/json.h"
#include "view/key.h"
#include "view/task.h"
#include "view/text.h"

static struct buffer text;

static int forget_text(void **state)
{
        (void)state;
        buffer_free(&text);
        return 0;
}

static const struct key_more no_more = { 0 };

#define TEXT(put) (buffer_clear(&text), (put), buffer_text(&text))

static void assert_json(json_t *json, const char *expected)
{
        char *found = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);
        assert_non_null(found);
        assert_string_equal(found, expected);
        free(found);
        json_decref(json);
}

/* --- text --- */

static void bytes_are_shown_on_one_line(void **state)
{
        (void)state;
        static const struct {
                struct span bytes;
                const char *shown;
        } cases[] = {
                { SPAN_TEXT(""), "" },
                { SPAN_TEXT("plain, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
                        "plain, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
                { SPAN_TEXT("a\nb\tc\rd\\e"), "a\\nb\\tc\\rd\\\\e" },
                { SPAN_TEXT("\0\x1b[2J\x7f"), "\\x00\\x1b[2J\\x7f" }, { SPAN_TEXT("\xff\xc3"), "\\xff\\xc3" },
                { SPAN_TEXT("\xc2\x9b"), "\\xc2\\x9b" },          /* as an escape and [ to some terminals */
                { SPAN_TEXT("\xed\xa0\x80"), "\\xed\\xa0\\x80" }, /* half a surrogate pair */
                { SPAN_TEXT("\xc0\x80\xe0\x80\x80"), "\\xc0\\x80\\xe0\\x80\\x80" },
                { SPAN_TEXT("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80" }, /* past the last character */
        };
        for (size_t i = 0; i < COUNT(cases); i++)
                assert_string_equal(TEXT(text_put_bytes(&text, cases[i].bytes, 100)), cases[i].shown);
        assert_string_equal(TEXT(text_put_bytes(&text, SPAN_TEXT("hello"), 2)), "he… (3 bytes more)");
        assert_string_equal(TEXT(text_put_bytes(&text, (struct span){ 0 }, 2)), "");
}

static void a_column_has_its_width(void **state)
{
        (void)state;
        assert_string_equal(TEXT(text_put_column(&text, SPAN_TEXT("ab"), 4, 4)), "ab  ");
        assert_string_equal(TEXT(text_put_column(&text, SPAN_TEXT("abcdef"), 4, 4)), "abcd");
        assert_string_equal(TEXT(text_put_column(&text, SPAN_TEXT("abcdef"), 4, 9)), "abcdef");
        assert_string_equal(
                TEXT(text_put_column(&text, SPAN_TEXT("\xc3\xa9\xc3\xa9\xc3\xa9"), 2, 2)), "\xc3\xa9\xc3\xa9");
        assert_string_equal(TEXT(text_put_column(&text, SPAN_TEXT("a\x1b"), 6, 6)), "a\\x1b ");
        assert_string_equal(TEXT(text_put_column(&text, SPAN_TEXT("a\x1b"), 4, 4)), "a   ");
}

static void a_word_reaches_a_shell_as_it_is(void **state)
{
        (void)state;
        assert_string_equal(TEXT(text_put_word(&text, SPAN_TEXT("user-17"))), "user-17");
        assert_string_equal(TEXT(text_put_word(&text, SPAN_TEXT(""))), "''");
        assert_string_equal(TEXT(text_put_word(&text, SPAN_TEXT("user 1"))), "'user 1'");
        assert_string_equal(TEXT(text_put_word(&text, SPAN_TEXT("it's"))), "'it'\\''s'");
        assert_string_equal(TEXT(text_put_word(&text, SPAN_TEXT("$x\\"))), "'$x\\'");
        assert_string_equal(TEXT(text_put_word(&text, SPAN_TEXT("-f"))), "-- -f");
        assert_string_equal(TEXT(text_put_word(&text, SPAN_TEXT("\033c'\\"))), "$'\\x1bc\\'\\\\'");
}

static void times_and_ages_are_readable(void **state)
{
        (void)state;
        char room[TEXT_TIME_MAX];
        char age[UNITS_TEXT_MAX];
        assert_string_equal(text_time(room, 0), "1970-01-01 00:00:00.000Z");
        assert_string_equal(text_time(room, UINT64_C(1763256000123)), "2025-11-16 01:20:00.123Z");
        assert_string_equal(text_time(room, UINT64_C(253402300799999)), "9999-12-31 23:59:59.999Z");
        assert_string_equal(text_time(room, UINT64_MAX), "18446744073709551615ms");
        assert_string_equal(text_age(age, 0), "-");
        assert_string_equal(text_age(age, 1500), "1.5s");
        assert_string_equal(text_plural(0), "s");
        assert_string_equal(text_plural(1), "");
}

/* --- JSON --- */

static void bytes_that_are_no_text_are_base64(void **state)
{
        (void)state;
        json_t *o = json_object();
        view_json_span(o, "a", SPAN_TEXT("\xc3\xa9\0!"));
        view_json_span(o, "b", SPAN_TEXT("\xff"));
        view_json_span(o, "c", SPAN_TEXT("\xff\xfe"));
        view_json_span(o, "d", SPAN_TEXT("\xff\xfe\xfd"));
        view_json_span(o, "e", (struct span){ 0 });
        assert_json(o, "{\"a\":\"\xc3\xa9\\u0000!\",\"b_base64\":\"/w==\",\"c_base64\":\"//4=\",\"d_base64\":\"//"
                       "79\",\"e\":\"\"}");
}

static void base64_is_read_back(void **state)
{
        (void)state;
        static const char *const wrong[] = { "?", "a", "ab=d", "////A" };
        assert_int_equal(view_base64_decode("//79/w==", 8, &text), 0);
        assert_int_equal(text.size, 4);
        assert_memory_equal(text.data, "\xff\xfe\xfd\xff", 4);
        for (size_t i = 0; i < COUNT(wrong); i++)
                assert_int_equal(view_base64_decode(wrong[i], strlen(wrong[i]), &text), -EINVAL);
        assert_int_equal(view_base64_decode("a\0b=", 4, &text), -EINVAL);
}

static void a_text_that_is_none_is_escaped(void **state)
{
        (void)state;
        assert_json(json_pack("[o, o]", view_json_text("caf\xc3\xa9\n"), view_json_text("caf\xc3")),
                "[\"caf\xc3\xa9\\n\",\"caf\\\\xc3\"]");
}

static void what_a_document_does_not_say_is_nothing(void **state)
{
        (void)state;
        json_t *o = json_pack("{s:i, s:s, s:f, s:n}", "n", -1, "s", "7", "f", 2.5, "null");
        static const char *const names[] = { "n", "f", "null", "missing" };
        for (size_t i = 0; i < COUNT(names); i++) {
                assert_int_equal(view_json_get_number(o, names[i]), 0);
                assert_string_equal(view_json_get_text(o, names[i]), "");
        }
        assert_int_equal(view_json_get_number(o, "s"), 0);
        assert_string_equal(view_json_get_text(NULL, "s"), "");
        assert_int_equal(view_json_get_number(json_object_get(o, "s"), "s"), 0);
        view_json_number(o, "n", UINT64_MAX);
        assert_true(view_json_get_number(o, "n") == INT64_MAX);
        json_decref(o);
}

/* --- tasks --- */

static struct store_listed dead_task(void)
{
        return (struct store_listed){
                .state = STATE_DEAD,
                .id = SPAN_TEXT("9kq2v7d3c0a8x1m5r4t6-12"),
                .key = SPAN_TEXT("user 1"),
                .reason = SPAN_TEXT("exhausted"),
                .at_ms = UINT64_C(1763256000123),
                .note = { .attempts = 2,
                        .crashes = 1,
                        .events =
                                SPAN_TEXT("event:1763256000001 attempt connection refused\n"
                                          "event:1763256000002 crash SIGSEGV at 0x10\x1fhandle+0x9 (m.so)\x1f@a pid=7 "
                                          "generation=1 plugin=9f0c1a2b version=1.0\n"),
                        .checkpoint = SPAN_TEXT("\x01") },
                .envelope = { .handler = SPAN_TEXT("mail"),
                        .lane = LANE_HIGH,
                        .submitted_ms = UINT64_C(1763256000000),
                        .not_before_ms = UINT64_C(1763256000000),
                        .unique_ms = 60000,
                        .timeout_ms = 1500,
                        .reply_ms = 1000,
                        .attempts = 5,
                        .headers = SPAN_TEXT("header.trace:abc\n"),
                        .payload = SPAN_TEXT("to: a@b\n\xff") },
        };
}

static void a_task_as_json_has_this_shape(void **state)
{
        (void)state;
        struct store_listed task = dead_task();
        assert_json(listed_as_json(&task),
                "{\"id\":\"9kq2v7d3c0a8x1m5r4t6-12\",\"state\":\"dead\",\"key\":\"user 1\",\"reason\":\"exhausted\","
                "\"at_ms\":1763256000123,\"attempts\":2,\"crashes\":1,\"interruptions\":0,\"laters\":0,\"history\":["
                "{\"at_ms\":1763256000001,\"kind\":\"attempt\",\"text\":\"connection refused\"},"
                "{\"at_ms\":1763256000002,\"kind\":\"crash\",\"text\":\"SIGSEGV at 0x10\\nhandle+0x9 "
                "(m.so)\",\"host\":\"a\","
                "\"pid\":7,\"generation\":1,\"hash\":\"9f0c1a2b\",\"version\":\"1.0\"}],"
                "\"checkpoint\":\"\\u0001\",\"handler\":\"mail\",\"lane\":\"high\",\"submitted_ms\":1763256000000,"
                "\"not_before_ms\":1763256000000,\"unique_ms\":60000,\"timeout_ms\":1500,\"reply_ms\":1000,"
                "\"attempts_max\":5,\"headers\":{\"trace\":\"abc\"},\"payload_base64\":\"dG86IGFAYgr/\"}");
}

static void a_task_as_text_has_this_shape(void **state)
{
        (void)state;
        struct store_listed task = dead_task();
        assert_string_equal(TEXT(listed_as_text(&text, &task, NULL, 0)),
                "task         9kq2v7d3c0a8x1m5r4t6-12\n"
                "state        dead (exhausted) since 2025-11-16 01:20:00.123Z\n"
                "key          user 1\n"
                "starts       2 failed, 1 crashed, 0 interrupted\n"
                "handler      mail\n"
                "lane         high\n"
                "submitted    2025-11-16 01:20:00.000Z\n"
                "not before   2025-11-16 01:20:00.000Z\n"
                "unique       1m\n"
                "timeout      1.5s\n"
                "reply kept   1s\n"
                "attempts max 5\n"
                "header       trace=abc\n"
                "payload      9 B\n"
                "  to: a@b\\n\\xff\n"
                "checkpoint   \\x01\n"
                "history\n"
                "  2025-11-16 01:20:00.001Z  attempt      connection refused\n"
                "  2025-11-16 01:20:00.002Z  crash        SIGSEGV at 0x10\n"
                "      handle+0x9 (m.so)\n"
                "      (on a pid=7 generation=1 plugin=9f0c1a2b version=1.0)\n"
                "\n"
                "Again: quiver dead requeue 9kq2v7d3c0a8x1m5r4t6-12; or away with it: quiver dead drop "
                "9kq2v7d3c0a8x1m5r4t6-12\n");
}

static void a_task_says_what_its_state_needs(void **state)
{
        (void)state;
        struct store_listed task = { .state = STATE_DELAYED, .due_in_ms = 1500, .id = SPAN_TEXT("x-0") };
        assert_contains(TEXT(listed_as_text(&text, &task, NULL, 0)), "state        delayed, due in 1.5s\n");
        assert_json(listed_as_json(&task),
                "{\"id\":\"x-0\",\"state\":\"delayed\",\"key\":\"\",\"due_in_ms\":1500,\"attempts\":0,\"crashes\":0,"
                "\"interruptions\":0,\"laters\":0,\"history\":[],\"lane\":\"high\",\"payload\":\"\"}");
        task.state = STATE_PARKED;
        task.key = SPAN_TEXT("it's");
        assert_contains(
                TEXT(listed_as_text(&text, &task, NULL, 0)), "\nWhat its key waits for: quiver key show 'it'\\''s'\n");
        task.state = STATES;
        assert_contains(TEXT(listed_as_text(&text, &task, NULL, 0)), "state        unknown\n");
}

/* What a store holds may be damaged: none of it may act on the terminal, or be taken for another line. */
static void a_damaged_task_is_still_shown(void **state)
{
        (void)state;
        struct store_listed task = {
                .state = STATE_DEAD,
                .id = SPAN_TEXT("\033c\nfake"),
                .key = SPAN_TEXT("\xff\n"),
                .reason = SPAN_TEXT("malformed\033[2J"),
                .at_ms = UINT64_MAX,
                .note = { .attempts = UINT32_MAX,
                        .events = SPAN_TEXT("event:x y\nevent:18446744073709551615 o\033dd \x1b\n\n") },
                .envelope = { .lane = (enum lane)77, .headers = SPAN_TEXT("header.a"), .payload = SPAN_TEXT("\0\x1b") },
        };
        for (const char *at = TEXT(listed_as_text(&text, &task, NULL, 0)); *at; at++)
                assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
        assert_contains(buffer_text(&text), "state        dead (malformed\\x1b[2J) since 18446744073709551615ms\n");
        json_t *json = listed_as_json(&task);
        assert_string_equal(view_json_get_text(json, "key_base64"), "/wo=");
        assert_true(json_is_array(json_object_get(json, "history")));
        json_decref(json);
}

static void a_result_is_one_line(void **state)
{
        (void)state;
        const struct store_result result = { .at_ms = 7,
                .id = SPAN_TEXT("x-1"),
                .key = SPAN_TEXT("a\tb"),
                .handler = SPAN_TEXT("mail"),
                .data = SPAN_TEXT("1\n2"),
                .note = { .attempts = 2, .events = SPAN_TEXT("event:5 attempt no\n") } };
        assert_string_equal(TEXT(result_as_text(&text, &result)), "x-1\ta\\tb\tmail\t1\\n2\n");
        assert_json(result_as_json(&result),
                "{\"id\":\"x-1\",\"key\":\"a\\tb\",\"handler\":\"mail\",\"at_ms\":7,\"attempts\":2,\"crashes\":0,"
                "\"interruptions\":0,\"laters\":0,\"history\":[{\"at_ms\":5,\"kind\":\"attempt\",\"text\":\"no\"}],"
                "\"data\":"
                "\"1\\n2\"}");
}

/* --- keys --- */

static struct store_key_info parked_key(void)
{
        return (struct store_key_info){ .shard = 3,
                .key = SPAN_TEXT("user 1"),
                .state = KEY_PARKED,
                .tasks = 2,
                .since_ms = UINT64_C(1763256000000),
                .due_in_ms = 1500,
                .reason = SPAN_TEXT("connection\nrefused"),
                .head = SPAN_TEXT("x-3") };
}

static void a_key_says_what_it_waits_for_and_what_helps(void **state)
{
        (void)state;
        struct store_key_info key = parked_key();
        assert_string_equal(TEXT(key_as_text(&text, &key, &no_more, UINT64_C(1763256002000))),
                "key          user 1 (shard 3)\n"
                "state        parked\n"
                "waits for    its first task's retry, in 1.5s\n"
                "reason       connection\n"
                "since        2025-11-16 01:20:00.000Z (2s ago)\n"
                "waiting      2 tasks\n"
                "\n"
                "What can be done:\n"
                "  quiver key hold   'user 1'   start no more of its tasks\n"
                "  quiver key retry  'user 1'   try its first task now\n"
                "  quiver key skip   'user 1'   give its first task up, and go on with the next\n"
                "  quiver task x-3   look at its first task\n");
        assert_string_equal(
                TEXT(key_as_line(&text, &key)), "parked          2 waiting  due 1.5s     user 1  connection\n");
        assert_json(key_as_json(&key),
                "{\"key\":\"user 1\",\"shard\":3,\"state\":\"parked\",\"reason\":\"connection\\nrefused\","
                "\"since_ms\":1763256000000,\"due_in_ms\":1500,\"tasks\":2,\"head\":\"x-3\"}");
}

static void a_key_whose_handler_said_later_waits_for_its_time(void **state)
{
        (void)state;
        struct store_key_info key = parked_key();
        key.reason = SPAN_TEXT("the handler said later: it is away");
        const char *said = TEXT(key_as_text(&text, &key, &no_more, UINT64_C(1763256002000)));
        assert_contains(said, "waits for    its time, in 1.5s\nreason       the handler said later: it is away\n");
        struct store_listed task = { .state = STATE_PARKED, .note = { .laters = 7 } };
        assert_contains(TEXT(listed_as_text(&text, &task, NULL, 0)), "0 interrupted, 7 said later\n");
}

static void a_held_key_waits_for_a_person(void **state)
{
        (void)state;
        struct store_key_info key = parked_key();
        key.state = KEY_HELD;
        key.tasks = 1;
        key.head.size = 0;
        /* A clock that is behind the store's. */
        const char *shown = TEXT(key_as_text(&text, &key, &no_more, 5));
        assert_contains(shown, "waits for    a person\n");
        assert_contains(shown, "(0ms ago)\nwaiting      1 task\n");
        assert_contains(shown, "quiver key unhold 'user 1'   let it go on\n");
        assert_contains(shown, "quiver key retry ");
        assert_null(strstr(shown, "skip"));
        assert_null(strstr(shown, "quiver task"));
        assert_contains(TEXT(key_as_line(&text, &key)), "held            1 waiting  due -        user 1");
}

static void a_key_that_nobody_knows_waits_for_nothing(void **state)
{
        (void)state;
        struct store_key_info key = { .key = SPAN_TEXT("k") };
        assert_contains(TEXT(key_as_text(&text, &key, &no_more, 5)),
                "state        free\nwaits for    nothing\nwaiting      0 tasks\n");
        key.state = (enum store_key_state)99;
        assert_contains(TEXT(key_as_text(&text, &key, &no_more, 5)), "state        unknown\nwaits for    unknown\n");
}

#define TEST(test) cmocka_unit_test_teardown(test, forget_text)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(bytes_are_shown_on_one_line),
                TEST(a_column_has_its_width),
                TEST(a_word_reaches_a_shell_as_it_is),
                TEST(times_and_ages_are_readable),
                TEST(bytes_that_are_no_text_are_base64),
                TEST(base64_is_read_back),
                TEST(a_text_that_is_none_is_escaped),
                TEST(what_a_document_does_not_say_is_nothing),
                TEST(a_task_as_json_has_this_shape),
                TEST(a_task_as_text_has_this_shape),
                TEST(a_task_says_what_its_state_needs),
                TEST(a_damaged_task_is_still_shown),
                TEST(a_result_is_one_line),
                TEST(a_key_says_what_it_waits_for_and_what_helps),
                TEST(a_held_key_waits_for_a_person),
                TEST(a_key_whose_handler_said_later_waits_for_its_time),
                TEST(a_key_that_nobody_knows_waits_for_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
