/* A line of JSON says what it says in RFC 8259, and what is wrong with one that is none is named.  fuzz_json_line.c
 * compares the same reader with jansson. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/json_line.h"

static struct json_line reader;
static struct buffer line; /* the one that was read last */

static int set_up(void **state)
{
        (void)state;
        json_line_init(&reader);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        json_line_free(&reader);
        buffer_free(&line);
        return 0;
}

static int read_bytes(const char *text, size_t size, struct error *error)
{
        buffer_clear(&line);
        buffer_put(&line, text, size);
        (void)buffer_reserve(&line, 1);
        return json_line_read(&reader, (char *)line.data, size, error);
}

static void read_good(const char *text)
{
        struct error error = { "" };
        if (read_bytes(text, strlen(text), &error) < 0)
                fail_msg("%s: %s", text, error.text);
}

static void assert_refused(const char *text, const char *why)
{
        struct error error = { "" };
        assert_int_equal(read_bytes(text, strlen(text), &error), -EINVAL);
        assert_string_equal(error.text, why);
}

static void assert_text(struct json_line_value *value, const char *expected)
{
        assert_int_equal(value->kind, JSON_LINE_TEXT);
        assert_string_equal(json_line_text(value).data, expected);
        assert_int_equal(value->size, strlen(expected));
}

static void members_come_in_their_order(void **state)
{
        (void)state;
        read_good(" { \"b\" : \"x\", \"a\":1 "
                  ",\"c\":[{}],\"d\":{\"e\":null},\"f\":true,\"g\":false,\"h\":null,\"i\":1e3}\r");
        static const enum json_line_kind kinds[] = { JSON_LINE_TEXT, JSON_LINE_INTEGER, JSON_LINE_ARRAY,
                JSON_LINE_OBJECT, JSON_LINE_TRUE, JSON_LINE_FALSE, JSON_LINE_NULL, JSON_LINE_REAL };
        assert_int_equal(reader.count, 8);
        for (unsigned i = 0; i < 8; i++) {
                char name[2] = { "bacdfghi"[i], 0 };
                assert_int_equal(reader.members[i].value.kind, kinds[i]);
                assert_text(&reader.members[i].name, name);
        }
}

static void texts_are_decoded_where_they_stand(void **state)
{
        (void)state;
        read_good("{\"\\u0061\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\u20ac\\ud83d\\ude00 "
                  "0123456789abcdef\",\"n\":\"a\\u0000b\"}");
        assert_text(&reader.members[0].name, "a");
        assert_text(&reader.members[0].value, "\"\\/\b\f\n\r\t\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 0123456789abcdef");
        struct span with_nul = json_line_text(&reader.members[1].value);
        assert_int_equal(with_nul.size, 3);
        assert_memory_equal(with_nul.data, "a\0b", 4);
}

static void members_of_an_object_are_walked(void **state)
{
        (void)state;
        struct json_line_member member;
        size_t at = 0;
        read_good("{\"h\": { \"a\\tb\" : \"x\\ny\" , \"c\":{\"}\":\"]\\\"\"}, \"d\" : -1.5 }, \"empty\":{ }}");
        struct json_line_value *object = &reader.members[0].value;
        assert_true(json_line_next(object, &at, &member));
        assert_text(&member.name, "a\tb");
        assert_text(&member.value, "x\ny");
        assert_true(json_line_next(object, &at, &member));
        assert_text(&member.name, "c");
        assert_int_equal(member.value.kind, JSON_LINE_OBJECT);
        assert_true(json_line_next(object, &at, &member));
        assert_text(&member.name, "d");
        assert_int_equal(member.value.kind, JSON_LINE_REAL);
        assert_false(json_line_next(object, &at, &member));
        at = 0;
        assert_false(json_line_next(&reader.members[1].value, &at, &member));
}

static void a_value_is_written_without_spaces(void **state)
{
        (void)state;
        static const char *const cases[][2] = {
                { "[ 1 , -0, 1e5 ,0.1, 1E-7,-0.0, 1e300 ]",
                        "[1,0,100000.0,0.10000000000000001,9.9999999999999995e-8,-0.0,1.0000000000000001e300]" },
                { "{ \"a\\u00e4\\/\" : [ \"\\u001f\\n\\\"\" , true , null ] }",
                        "{\"a\xc3\xa4/\":[\"\\u001F\\n\\\"\",true,null]}" },
                { "  12 ", "12" },
                { "[ [ ] , { } ]", "[[],{}]" },
        };
        for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct buffer put = { 0 };
                char text[256];
                (void)snprintf(text, sizeof(text), "{\"v\":%s}", cases[i][0]);
                read_good(text);
                json_line_put(&put, &reader.members[0].value);
                assert_string_equal(buffer_text(&put), cases[i][1]);
                buffer_free(&put);
        }
}

static void what_is_wrong_is_named(void **state)
{
        (void)state;
        static const char *const cases[][2] = {
                { "", "is not JSON: '[' or '{' expected near end of file" },
                { "hello", "is not JSON: '[' or '{' expected near 'hello'" },
                { "[1]", "is not a JSON object" },
                { "{\"a\":1}x", "is not JSON: end of file expected near 'x'" },
                { "{\"a\":1,}", "is not JSON: string or '}' expected near '}'" },
                { "{\"a\" 1}", "is not JSON: ':' expected near '1'" },
                { "{\"a\":1", "is not JSON: '}' expected near end of file" },
                { "{\"a\":[1", "is not JSON: ']' expected near end of file" },
                { "{\"a\":nul}", "is not JSON: invalid token near 'nul'" },
                { "{\"a\":01}", "is not JSON: invalid token near '0'" },
                { "{\"a\":}", "is not JSON: unexpected token near '}'" },
                { "{\"a\":\"b", "is not JSON: premature end of input near '\"b'" },
                { "{\"a\":\"\x01\"}", "is not JSON: control character 0x1 near '\"'" },
                { "{\"a\":\"\\x\"}", "is not JSON: invalid escape near '\"\\x'" },
                { "{\"a\":\"\\ud800\"}", "is not JSON: invalid Unicode '\\uD800' near '\"\\ud800\"'" },
                { "{\"a\":\"\\ud800\\u0041\"}",
                        "is not JSON: invalid Unicode '\\uD800\\u0041' near '\"\\ud800\\u0041\"'" },
                { "{\"a\":\"\xff\"}", "is not JSON: unable to decode byte 0xff near '\"'" },
                { "{\"a\":\"\xed\xa0\x80\"}", "is not JSON: unable to decode byte 0xed near '\"'" },
                { "{\"a\":\"\xc0\xaf\"}", "is not JSON: unable to decode byte 0xc0 near '\"'" },
                { "{\"a\":\"\xf4\x90\x80\x80\"}", "is not JSON: unable to decode byte 0xf4 near '\"'" },
                { "{\"a\":\"\xe2\x82", "is not JSON: unable to decode byte 0xe2 near '\"'" },
                { "{\"\\u0000\":1}", "is not JSON: NUL byte in object key not supported near '\"\\u0000\"'" },
                { "{\"a\":1,\"\\u0061\":2}", "is not JSON: duplicate object key near '\"\\u0061\"'" },
                { "{\"a\":{\"b\":1,\"b\":2}}", "is not JSON: duplicate object key near '\"b\"'" },
                { "{\"a\":9223372036854775808}", "is not JSON: too big integer near '9223372036854775808'" },
                { "{\"a\":-9223372036854775809}", "is not JSON: too big negative integer near '-9223372036854775809'" },
                { "{\"a\":1e999}", "is not JSON: real number overflow near '1e999'" },
        };
        for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_refused(cases[i][0], cases[i][1]);
}

static void no_line_has_a_nul_byte(void **state)
{
        (void)state;
        struct error error = { "" };
        static const char after_number[] = "{\"a\":1\0}";
        static const char in_text[] = "{\"a\":\"\0\"}";
        assert_int_equal(read_bytes(after_number, sizeof(after_number) - 1, &error), -EINVAL);
        assert_int_equal(read_bytes(in_text, sizeof(in_text) - 1, &error), -EINVAL);
        assert_string_equal(error.text, "is not JSON: control character 0x0 near '\"'");
}

static void a_line_is_as_deep_as_it_may_be(void **state)
{
        (void)state;
        struct error error = { "" };
        struct buffer text = { 0 };
        buffer_printf(&text, "{\"a\":");
        for (unsigned i = 0; i < JSON_LINE_DEPTH - 1; i++)
                buffer_put(&text, "[", 1);
        for (unsigned i = 0; i < JSON_LINE_DEPTH - 1; i++)
                buffer_put(&text, "]", 1);
        buffer_put(&text, "}", 1);
        assert_int_equal(read_bytes((char *)text.data, text.size, &error), 0);
        buffer_clear(&text);
        buffer_printf(&text, "{\"a\":");
        for (unsigned i = 0; i < JSON_LINE_DEPTH; i++)
                buffer_put(&text, "[", 1);
        assert_int_equal(read_bytes((char *)text.data, text.size, &error), -EINVAL);
        assert_string_equal(error.text, "is not JSON: maximum parsing depth reached near '['");
        buffer_free(&text);
}

static void put_names(struct buffer *text, unsigned count)
{
        buffer_clear(text);
        for (unsigned i = 0; i < count; i++)
                buffer_printf(text, "%c\"n%u\":{\"n\":0}", i ? ',' : '{', i);
}

static void of_many_names_none_comes_twice(void **state)
{
        (void)state;
        struct error error = { "" };
        struct buffer text = { 0 };
        put_names(&text, 20000);
        buffer_printf(&text, "}");
        assert_int_equal(read_bytes((char *)text.data, text.size, &error), 0);
        assert_int_equal(reader.count, 20000);
        put_names(&text, 20000);
        buffer_printf(&text, ",\"n777\":0}");
        assert_int_equal(read_bytes((char *)text.data, text.size, &error), -EINVAL);
        assert_string_equal(error.text, "is not JSON: duplicate object key near '\"n777\"'");
        buffer_free(&text);
}

static void one_reader_reads_any_number_of_lines(void **state)
{
        (void)state;
        for (unsigned i = 0; i < 1000; i++) {
                char text[64];
                (void)snprintf(text, sizeof(text), "{\"same\":%u,\"other%u\":\"%u\"}", i, i, i);
                read_good(text);
                assert_int_equal(reader.count, 2);
                (void)snprintf(text, sizeof(text), "%u", i);
                assert_text(&reader.members[1].value, text);
        }
        assert_int_equal(reader.names_room, 64);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(members_come_in_their_order, set_up, tear_down),
                cmocka_unit_test_setup_teardown(texts_are_decoded_where_they_stand, set_up, tear_down),
                cmocka_unit_test_setup_teardown(members_of_an_object_are_walked, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_value_is_written_without_spaces, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_is_wrong_is_named, set_up, tear_down),
                cmocka_unit_test_setup_teardown(no_line_has_a_nul_byte, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_line_is_as_deep_as_it_may_be, set_up, tear_down),
                cmocka_unit_test_setup_teardown(of_many_names_none_comes_twice, set_up, tear_down),
                cmocka_unit_test_setup_teardown(one_reader_reads_any_number_of_lines, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
