/* An order to reload that came through the store. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "host/handler/reload_order.h"

#define NONCE "00112233445566778899aabbccddeeff"
#define OTHER "ff112233445566778899aabbccddeeff"

static bool find(struct reload_order *order, const char *name, const char *token)
{
        const struct store_desired items[] = {
                { SPAN_TEXT("pause"), SPAN_TEXT("why") },
                { span_of_text(name), span_of_text(token) },
        };
        return reload_order_find(order, NONCE, items, 2);
}

/* Answers with `text`, which is JSON. */
static bool answer(struct reload_order *order, uint32_t number, const char *text, uint32_t *ret_reload)
{
        json_t *reply = json_loads(text, 0, NULL);
        assert_non_null(reply);
        bool is_taken = reload_order_answer(order, number, reply, ret_reload);
        json_decref(reply);
        return is_taken;
}

static void assert_says(
        const struct reload_order *order, const char *state, bool has_failed, const char *plan, const char *text)
{
        json_t *document = json_object();
        reload_order_put(order, document);
        const json_t *said = json_object_get(document, "reload");
        assert_string_equal(json_string_value(json_object_get(said, "token")), order->token);
        assert_string_equal(json_string_value(json_object_get(said, "state")), state);
        assert_int_equal(json_is_true(json_object_get(said, "failed")), has_failed);
        assert_string_equal(json_string_value(json_object_get(said, "plan")), plan);
        assert_string_equal(json_string_value(json_object_get(said, "text")), text);
        json_decref(document);
}

static void an_order_is_for_one_host_and_carried_out_once(void **state)
{
        struct reload_order order = { 0 };
        (void)state;
        assert_false(find(&order, "reload." OTHER, "one"));
        assert_false(find(&order, "reload.", "one"));
        assert_true(find(&order, "reload." NONCE, "one"));
        assert_int_equal(order.number, 1);
        assert_false(find(&order, "reload." NONCE, "one"));
        assert_true(find(&order, "reload." NONCE, "two"));
        assert_int_equal(order.number, 2);
        assert_string_equal(order.token, "two");
        assert_says(&order, "asked", false, "", "");
}

static void what_is_no_token_is_no_order(void **state)
{
        struct reload_order order = { 0 };
        char token[RELOAD_TOKEN_MAX + 2];
        (void)state;
        memset(token, 'x', sizeof(token));
        token[RELOAD_TOKEN_MAX + 1] = 0;
        assert_false(find(&order, "reload." NONCE, token));
        assert_false(find(&order, "reload." NONCE, ""));
        assert_false(find(&order, "reload." NONCE, "a b"));
        assert_false(find(&order, "reload." NONCE, "\xc3\xa4"));
        token[RELOAD_TOKEN_MAX] = 0;
        assert_true(find(&order, "reload." NONCE, token));
}

static void a_plan_that_is_taken_is_waited_for(void **state)
{
        struct reload_order order = { 0 };
        uint32_t reload = 0;
        (void)state;
        assert_true(find(&order, "reload." NONCE, "one"));
        assert_true(answer(&order, 1,
                "{\"reload\":7,\"failed\":false,\"handlers\":[{\"handler\":\"a\",\"action\":\"unchanged\",\"why\":\"\"}"
                ","
                "{\"handler\":\"b\",\"action\":\"new generation\",\"why\":\"file\"}]}",
                &reload));
        assert_int_equal(reload, 7);
        assert_says(&order, "taken", false, "b: new generation: file", "");
        assert_false(answer(&order, 1,
                "{\"reload\":7,\"failed\":true,\"outcomes\":[{\"handler\":\"a\",\"outcome\":\"good\"},"
                "{\"handler\":\"b\",\"outcome\":\"rolled back\",\"text\":\"it crashed\"}]}",
                &reload));
        assert_says(&order, "decided", true, "b: new generation: file", "b: rolled back: it crashed; a: good");
}

static void a_refusal_says_why(void **state)
{
        struct reload_order order = { 0 };
        uint32_t reload = 0;
        (void)state;
        assert_true(find(&order, "reload." NONCE, "one"));
        assert_false(
                answer(&order, 1, "{\"reload\":1,\"failed\":true,\"problems\":[\"x:1: no\",\"x:2: no\"]}", &reload));
        assert_says(&order, "refused", true, "", "x:1: no; x:2: no; nothing was changed");
        assert_true(find(&order, "reload." NONCE, "two"));
        assert_false(answer(&order, 2,
                "{\"reload\":2,\"failed\":true,\"handlers\":[{\"handler\":\"a\",\"action\":\"added\",\"why\":\"\"},"
                "{\"handler\":\"b\",\"action\":\"refused\",\"why\":\"no file\"}]}",
                &reload));
        assert_says(&order, "refused", true, "", "b: refused: no file; a: added");
}

static void an_answer_to_an_older_order_is_passed_over(void **state)
{
        struct reload_order order = { 0 };
        uint32_t reload = 0;
        (void)state;
        assert_true(find(&order, "reload." NONCE, "one"));
        assert_true(find(&order, "reload." NONCE, "two"));
        assert_false(answer(&order, 1, "{\"reload\":1,\"failed\":false,\"handlers\":[]}", &reload));
        assert_says(&order, "asked", false, "", "");
}

/* A character of two bytes stands where the text ends. */
static void a_long_text_is_cut_between_characters(void **state)
{
        struct reload_order order = { 0 };
        char long_text[RELOAD_ORDER_TEXT + 64] = "";
        uint32_t reload = 0;
        (void)state;
        memset(long_text, 'x', RELOAD_ORDER_TEXT - 1);
        strcat(long_text, "\xc3\xa4 and more");
        assert_true(find(&order, "reload." NONCE, "one"));
        json_t *reply = json_pack("{s:b, s:[s]}", "failed", 1, "problems", long_text);
        assert_false(reload_order_answer(&order, 1, reply, &reload));
        json_decref(reply);
        long_text[RELOAD_ORDER_TEXT - 1] = 0;
        assert_says(&order, "refused", true, "", long_text);
}

static void who_was_never_ordered_says_nothing(void **state)
{
        struct reload_order order = { 0 };
        json_t *document = json_object();
        (void)state;
        reload_order_put(&order, document);
        assert_int_equal(json_object_size(document), 0);
        json_decref(document);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_order_is_for_one_host_and_carried_out_once),
                cmocka_unit_test(what_is_no_token_is_no_order),
                cmocka_unit_test(a_plan_that_is_taken_is_waited_for),
                cmocka_unit_test(a_refusal_says_why),
                cmocka_unit_test(an_answer_to_an_older_order_is_passed_over),
                cmocka_unit_test(a_long_text_is_cut_between_characters),
                cmocka_unit_test(who_was_never_ordered_says_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
