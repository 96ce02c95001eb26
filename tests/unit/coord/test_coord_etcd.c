/* What etcd says, read with bounds (reply.h, names.h); who is told of which change (watch.h); operations as
 * transactions (txn.h): all of it without a server. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "check.h"
#include "coord/etcd/names.h"
#include "coord/etcd/reply.h"
#include "coord/etcd/txn.h"
#include "coord/etcd/watch.h"

#define PREFIX "/quiver/demo/"

static json_t *json(const char *text)
{
        json_error_t error;
        json_t *made = json_loads(text, 0, &error);
        assert_non_null(made);
        return made;
}

/* --- replies --- */

static void a_number_has_digits_and_a_range(void **state)
{
        static const struct {
                const char *text;
                uint64_t max, number;
                bool is_good;
        } cases[] = {
                { "{}", 10, 0, true },
                { "{\"n\":\"7\"}", 7, 7, true },
                { "{\"n\":7}", 7, 7, true },
                { "{\"n\":\"8\"}", 7, 0, false },
                { "{\"n\":8}", 7, 0, false },
                { "{\"n\":-1}", UINT64_MAX, 0, false },
                { "{\"n\":\"-1\"}", UINT64_MAX, 0, false },
                { "{\"n\":\"\"}", UINT64_MAX, 0, false },
                { "{\"n\":\"1e3\"}", UINT64_MAX, 0, false },
                { "{\"n\":\"0x10\"}", UINT64_MAX, 0, false },
                { "{\"n\":1.5}", UINT64_MAX, 0, false },
                { "{\"n\":null}", UINT64_MAX, 0, false },
                { "{\"n\":[]}", UINT64_MAX, 0, false },
                { "{\"n\":\"9223372036854775807\"}", ETCD_NUMBER_MAX, INT64_MAX, true },
                { "{\"n\":\"9223372036854775808\"}", ETCD_NUMBER_MAX, 0, false },
                { "{\"n\":\"18446744073709551615\"}", UINT64_MAX, UINT64_MAX, true },
                { "{\"n\":\"18446744073709551616\"}", UINT64_MAX, 0, false },
                { "{\"n\":\"000000000000000000001\"}", UINT64_MAX, 0, false },
        };
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                json_t *object = json(cases[i].text);
                uint64_t number = 99;
                assert_int_equal(etcd_number(object, "n", cases[i].max, &number), cases[i].is_good);
                assert_int_equal(number, cases[i].is_good ? cases[i].number : 99);
                json_decref(object);
        }
}

static void a_key_has_a_life_that_can_be(void **state)
{
        static const struct {
                const char *text;
                bool is_good;
        } cases[] = {
                { "{\"create_revision\":\"5\",\"mod_revision\":\"7\",\"version\":\"2\"}", true },
                { "{\"create_revision\":\"5\",\"mod_revision\":\"4\",\"version\":\"2\"}", false },
                { "{\"mod_revision\":\"7\",\"version\":\"2\"}", false },
                { "{\"create_revision\":\"5\",\"mod_revision\":\"7\"}", false },
                { "{\"create_revision\":\"5\",\"mod_revision\":\"7\",\"version\":\"2\",\"lease\":\"-7\"}", false },
                { "[]", false },
        };
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                json_t *kv = json(cases[i].text);
                struct etcd_kv read;
                assert_int_equal(etcd_reply_kv(kv, &read), cases[i].is_good);
                json_decref(kv);
        }
}

static void bytes_are_base64_and_bounded(void **state)
{
        json_t *kv = json("{\"good\":\"YWJj\",\"odd\":\"YWJ*\",\"cut\":\"YWJ\",\"number\":7}");
        struct buffer to = { 0 };
        (void)state;
        assert_true(etcd_reply_bytes(kv, "none", 0, &to));
        assert_int_equal(to.size, 0);
        assert_false(etcd_reply_bytes(kv, "good", 2, &to));
        assert_false(etcd_reply_bytes(kv, "odd", 9, &to));
        assert_false(etcd_reply_bytes(kv, "cut", 9, &to));
        assert_false(etcd_reply_bytes(kv, "number", 9, &to));
        buffer_clear(&to);
        assert_true(etcd_reply_bytes(kv, "good", 3, &to));
        assert_memory_equal(to.data, "abc", 3);
        buffer_free(&to);
        json_decref(kv);
}

static void an_error_is_read_in_both_forms_and_printable(void **state)
{
        static const char *const texts[] = {
                "{\"error\":\"x\",\"message\":\"no\\nlead\\u00e9r\",\"code\":14}",
                "{\"error\":{\"message\":\"no\\nlead\\u00e9r\",\"grpc_code\":14,\"http_code\":503}}",
        };
        struct etcd_failure failure;
        (void)state;
        for (size_t i = 0; i < 2; i++) {
                json_t *reply = json(texts[i]);
                assert_true(etcd_reply_failure(reply, &failure));
                assert_int_equal(failure.code, ETCD_CODE_UNAVAILABLE);
                assert_string_equal(failure.message, "no?lead??r");
                json_decref(reply);
        }
        json_t *large = json("{\"error\":\"x\",\"message\":\"y\",\"code\":17}");
        assert_false(etcd_reply_failure(large, &failure));
        json_decref(large);
}

/* However the bytes come, the objects are the same. */
static void objects_are_found_in_a_stream(void **state)
{
        static const char stream[] = "{\"a\":\"}{\\\"\"}\n {\"b\":[{},{\"c\":\"]\"}]}{}";
        static const size_t ends[] = { 12, 34, 36 };
        (void)state;
        for (size_t step = 1; step < sizeof(stream); step++) {
                struct etcd_frame frame = { 0 };
                size_t begin = 0, found = 0;
                for (size_t size = step; begin < sizeof(stream) - 1; size += step) {
                        size_t end = size < sizeof(stream) - 1 ? size : sizeof(stream) - 1;
                        int64_t got;
                        while ((got = etcd_frame_next(&frame, (struct span){ stream + begin, end - begin })) > 0) {
                                begin += (size_t)got;
                                assert_true(found < 3);
                                assert_int_equal(begin, ends[found++]);
                        }
                        assert_int_equal(got, 0);
                }
                assert_int_equal(found, 3);
        }
}

static void what_is_no_object_ends_a_stream(void **state)
{
        static const char *const texts[] = { "x", "]", "}", "[1]", "\"a\"", "{}7" };
        char deep[200];
        (void)state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                struct etcd_frame frame = { 0 };
                struct span bytes = { texts[i], strlen(texts[i]) };
                int64_t size = etcd_frame_next(&frame, bytes);
                if (size > 0)
                        size = etcd_frame_next(&frame, (struct span){ bytes.data + size, bytes.size - (size_t)size });
                assert_int_equal(size, -EBADMSG);
        }
        memset(deep, '{', sizeof(deep));
        struct etcd_frame frame = { 0 };
        assert_int_equal(etcd_frame_next(&frame, (struct span){ deep, sizeof(deep) }), -EBADMSG);
}

/* --- names --- */

static void a_key_is_of_one_node_and_back(void **state)
{
        static const char *const paths[] = { "a", "members/a.3f2a", "locks/one/me-0000000001" };
        static const char *const others[] = { PREFIX, PREFIX "node/", PREFIX "node/1/", PREFIX "node/2/a",
                PREFIX "node/1/a/b", PREFIX "node/x/a", PREFIX "node//a", PREFIX "node/1/a b", PREFIX "node/1/..",
                PREFIX "sequence/a", PREFIX "session/7", "/quiver/other/node/1/a", PREFIX "node/99999999999999999999/a",
                "" };
        char path[COORD_PATH_MAX], longest[2 * COORD_PATH_MAX];
        struct buffer key = { 0 };
        (void)state;
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
                buffer_clear(&key);
                etcd_name_node(&key, PREFIX, paths[i]);
                assert_true(etcd_name_read((struct span){ (const char *)key.data, key.size }, PREFIX, path));
                assert_string_equal(path, paths[i]);
        }
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                assert_false(etcd_name_read((struct span){ others[i], strlen(others[i]) }, PREFIX, path));
        int size = snprintf(longest, sizeof(longest), PREFIX "node/1/%0900d", 7);
        assert_false(etcd_name_read((struct span){ longest, (size_t)size }, PREFIX, path));
        assert_false(
                etcd_name_read((struct span){ PREFIX "node/1/a\0b", sizeof(PREFIX "node/1/a\0b") - 1 }, PREFIX, path));
        buffer_free(&key);
}

/* --- watches --- */

static char told[64];

static void tell(void *self, const char *path)
{
        (void)self;
        (void)strcat(strcat(told, path), " ");
}

static struct etcd_watches watches_new(void)
{
        told[0] = 0;
        return (struct etcd_watches){ .tell = tell };
}

static void changes_after_the_read_are_told_once(void **state)
{
        struct etcd_watches w = watches_new();
        (void)state;
        etcd_watch_end(&w, etcd_watch_begin(&w, ETCD_WATCH_NODE, "n"), 10);
        etcd_watch_rang(&w, ETCD_WATCH_NODE, "n", 10);
        etcd_watch_rang(&w, ETCD_WATCH_NODE, "m", 11);
        etcd_watch_rang(&w, ETCD_WATCH_CHILDREN, "n", 11);
        assert_string_equal(told, "");
        etcd_watch_rang(&w, ETCD_WATCH_NODE, "n", 11);
        etcd_watch_rang(&w, ETCD_WATCH_NODE, "n", 12);
        assert_string_equal(told, "n ");
        assert_null(w.all);
}

static void a_change_that_comes_before_the_answer_is_told_after_it(void **state)
{
        struct etcd_watches w = watches_new();
        (void)state;
        struct etcd_watch *read = etcd_watch_begin(&w, ETCD_WATCH_NODE, "n");
        etcd_watch_rang(&w, ETCD_WATCH_NODE, "n", 11);
        assert_string_equal(told, "");
        etcd_watch_end(&w, read, 10);
        assert_string_equal(told, "n ");
        read = etcd_watch_begin(&w, ETCD_WATCH_NODE, "n");
        etcd_watch_rang(&w, ETCD_WATCH_NODE, "n", 12);
        etcd_watch_end(&w, read, 12); /* it has seen that one */
        assert_string_equal(told, "n ");
        etcd_watch_free_all(&w);
}

static void a_later_read_does_not_hush_an_earlier_one(void **state)
{
        struct etcd_watches w = watches_new();
        (void)state;
        etcd_watch_end(&w, etcd_watch_begin(&w, ETCD_WATCH_NODE, "n"), 10);
        etcd_watch_end(&w, etcd_watch_begin(&w, ETCD_WATCH_NODE, "n"), 20);
        etcd_watch_rang(&w, ETCD_WATCH_NODE, "n", 15);
        assert_string_equal(told, "n ");
        etcd_watch_free_all(&w);
}

static void a_read_that_failed_waits_for_nothing(void **state)
{
        struct etcd_watches w = watches_new();
        (void)state;
        etcd_watch_end(&w, etcd_watch_begin(&w, ETCD_WATCH_NODE, "n"), 0);
        assert_null(w.all);
        etcd_watch_end(&w, etcd_watch_begin(&w, ETCD_WATCH_NODE, "n"), 10);
        etcd_watch_clear(&w);
        etcd_watch_rang(&w, ETCD_WATCH_NODE, "n", 11);
        assert_string_equal(told, "");
        assert_null(w.all);
}

/* --- transactions --- */

static struct coord_multi_op multi_ops[4];
static struct coord_multi multi = { .request.op = COORD_OP_MULTI, .ops = multi_ops };

/* Builds it, answers it, and says what it makes of that. */
static enum etcd_txn_verdict ask(struct etcd_txn *txn, const char *reply)
{
        struct buffer body = { 0 };
        etcd_txn_build(txn, 7, &body);
        json_t *question = json(buffer_text(&body));
        json_decref(question);
        buffer_free(&body);
        json_t *answer = json(reply);
        enum etcd_txn_verdict verdict = etcd_txn_read(txn, answer);
        json_decref(answer);
        return verdict;
}

#define ABSENT "{\"response_range\":{}}"
#define THERE(kv)                                                                                                      \
        "{\"response_range\":{\"kvs\":[{\"create_revision\":\"5\",\"mod_revision\":\"6\",\"version\":\"2\"" kv "}]}}"
#define READ(kvs)  "{\"responses\":[" kvs "]}"
#define WROTE(kvs) "{\"succeeded\":true,\"responses\":[" kvs "]}"

static struct etcd_txn *txn_of_create(struct coord_create *create)
{
        create->request.op = COORD_OP_CREATE;
        return etcd_txn_new(PREFIX, &create->request);
}

static void a_create_learns_and_fails_or_goes_on(void **state)
{
        struct coord_create create = { .path = "a/b" };
        unsigned which;
        (void)state;
        /* session, a, a/b */
        struct etcd_txn *txn = txn_of_create(&create);
        assert_int_equal(ask(txn, READ(THERE("") "," ABSENT "," ABSENT)), ETCD_TXN_AGAIN);
        assert_int_equal(ask(txn, WROTE("{},{}," THERE(""))), ETCD_TXN_DONE);
        assert_int_equal(etcd_txn_stat(txn, 0).created, 5);
        assert_int_equal(etcd_txn_stat(txn, 0).version, 1);
        etcd_txn_free(txn);
        txn = txn_of_create(&create);
        assert_int_equal(ask(txn, READ(THERE("") "," THERE("") "," THERE(""))), ETCD_TXN_FAILED);
        assert_int_equal(etcd_txn_status(txn, &which), -EEXIST);
        etcd_txn_free(txn);
        txn = txn_of_create(&create);
        assert_int_equal(ask(txn, READ(THERE("") "," THERE(",\"lease\":\"9\"") "," ABSENT)), ETCD_TXN_FAILED);
        assert_int_equal(etcd_txn_status(txn, &which), -ENOTDIR);
        etcd_txn_free(txn);
        txn = txn_of_create(&create);
        assert_int_equal(ask(txn, READ(ABSENT "," THERE("") "," ABSENT)), ETCD_TXN_EXPIRED);
        etcd_txn_free(txn);
}

static void an_answer_that_does_not_fit_is_none(void **state)
{
        static const char *const answers[] = { "{}", READ(""), READ(THERE("")),
                READ(THERE("") "," ABSENT "," ABSENT "," ABSENT), READ(THERE("") "," ABSENT ",{\"response_put\":{}}"),
                READ(THERE("") "," ABSENT ",{\"response_range\":{\"kvs\":7}}"),
                READ(THERE("") "," ABSENT ",{\"response_range\":{\"kvs\":[{}]}}"),
                READ(THERE("") "," ABSENT ",{\"response_range\":{\"kvs\":[{},{}]}}"), "{\"succeeded\":7}",
                "{\"responses\":7}", WROTE(""), WROTE("{}"), WROTE("{}," ABSENT),
                WROTE("{}," THERE("") "," THERE("")) };
        struct coord_create create = { .path = "a/b" };
        (void)state;
        for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
                struct etcd_txn *txn = txn_of_create(&create);
                assert_int_equal(ask(txn, answers[i]), ETCD_TXN_BROKEN);
                etcd_txn_free(txn);
        }
}

static void others_who_are_always_faster_end_it(void **state)
{
        struct coord_create create = { .path = "a/b" };
        struct etcd_txn *txn = txn_of_create(&create);
        unsigned which, times = 1;
        (void)state;
        while (ask(txn, READ(THERE("") "," THERE("") "," ABSENT)) == ETCD_TXN_AGAIN)
                assert_true(++times < 1000);
        assert_int_equal(etcd_txn_status(txn, &which), -EBUSY);
        etcd_txn_free(txn);
}

static struct etcd_txn *txn_of_ops(unsigned count)
{
        multi.ops_count = count;
        return etcd_txn_new(PREFIX, &multi.request);
}

static void expect_error(unsigned count, const char *reply, int status, unsigned op)
{
        struct etcd_txn *txn = txn_of_ops(count);
        unsigned which = 99;
        assert_int_equal(ask(txn, reply), ETCD_TXN_FAILED);
        assert_int_equal(etcd_txn_status(txn, &which), status);
        assert_int_equal(which, op);
        etcd_txn_free(txn);
}

static void the_first_operation_that_fails_is_named(void **state)
{
        (void)state;
        multi_ops[0] = (struct coord_multi_op){ .kind = COORD_CHECK, .path = "a", .version = 1 };
        multi_ops[1] = (struct coord_multi_op){ .kind = COORD_SET, .path = "b", .version = COORD_ANY_VERSION };
        expect_error(2, READ(THERE("") "," ABSENT "," ABSENT), -ENOENT, 0);
        expect_error(2, READ(THERE("") "," THERE("") "," ABSENT), -ENOENT, 1);
        multi_ops[0].version = 0;
        expect_error(2, READ(THERE("") "," THERE("") "," THERE("")), -ESTALE, 0);
}

static void what_etcd_cannot_do_in_one_step_is_refused(void **state)
{
        (void)state;
        multi_ops[0] = (struct coord_multi_op){ .kind = COORD_DELETE, .path = "a", .version = COORD_ANY_VERSION };
        multi_ops[1] = (struct coord_multi_op){ .kind = COORD_CREATE, .path = "a" };
        /* Nothing can be written: it is read first, to be sure that the delete would not fail. */
        expect_error(2, WROTE(THERE("") "," THERE("") "," ABSENT), -ENOTSUP, 1);
        expect_error(2, WROTE(THERE("") "," ABSENT "," ABSENT), -ENOENT, 0);
}

static void a_node_goes_with_its_last_child_and_not_before(void **state)
{
        (void)state;
        multi_ops[0] = (struct coord_multi_op){ .kind = COORD_DELETE, .path = "a/b", .version = COORD_ANY_VERSION };
        multi_ops[1] = (struct coord_multi_op){ .kind = COORD_DELETE, .path = "a", .version = COORD_ANY_VERSION };
        /* "/quiver/demo/node/2/a/b" and …/c; the children of a/b, then those of a */
        static const char b[] = "L3F1aXZlci9kZW1vL25vZGUvMi9hL2I=", c[] = "L3F1aXZlci9kZW1vL25vZGUvMi9hL2M=";
        char reply[2048];
        for (int has_c = 0; has_c < 2; has_c++) {
                struct etcd_txn *txn = txn_of_ops(2);
                unsigned which;
                (void)snprintf(reply, sizeof(reply),
                        READ(THERE("") "," THERE("") "," THERE(
                                "") "," ABSENT ",{\"response_range\":{\"kvs\":[{\"key\":\"%s\"}%s%s%s]}}"),
                        b, has_c ? ",{\"key\":\"" : "", has_c ? c : "", has_c ? "\"}" : "");
                assert_int_equal(ask(txn, reply), has_c ? ETCD_TXN_FAILED : ETCD_TXN_AGAIN);
                if (has_c)
                        assert_int_equal(etcd_txn_status(txn, &which), -ENOTEMPTY);
                etcd_txn_free(txn);
        }
}

static void a_path_has_a_limit(void **state)
{
        char path[COORD_PATH_MAX] = "x";
        struct coord_create create = { .path = path };
        unsigned which;
        (void)state;
        for (unsigned i = 1; i <= ETCD_DEPTH_MAX; i++)
                (void)strcat(path, "/x");
        struct etcd_txn *txn = txn_of_create(&create);
        assert_int_equal(ask(txn, WROTE(THERE(""))), ETCD_TXN_FAILED);
        assert_int_equal(etcd_txn_status(txn, &which), -E2BIG);
        etcd_txn_free(txn);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_number_has_digits_and_a_range),
                cmocka_unit_test(a_key_has_a_life_that_can_be),
                cmocka_unit_test(bytes_are_base64_and_bounded),
                cmocka_unit_test(an_error_is_read_in_both_forms_and_printable),
                cmocka_unit_test(objects_are_found_in_a_stream),
                cmocka_unit_test(what_is_no_object_ends_a_stream),
                cmocka_unit_test(a_key_is_of_one_node_and_back),
                cmocka_unit_test(changes_after_the_read_are_told_once),
                cmocka_unit_test(a_change_that_comes_before_the_answer_is_told_after_it),
                cmocka_unit_test(a_later_read_does_not_hush_an_earlier_one),
                cmocka_unit_test(a_read_that_failed_waits_for_nothing),
                cmocka_unit_test(a_create_learns_and_fails_or_goes_on),
                cmocka_unit_test(an_answer_that_does_not_fit_is_none),
                cmocka_unit_test(others_who_are_always_faster_end_it),
                cmocka_unit_test(the_first_operation_that_fails_is_named),
                cmocka_unit_test(what_etcd_cannot_do_in_one_step_is_refused),
                cmocka_unit_test(a_node_goes_with_its_last_child_and_not_before),
                cmocka_unit_test(a_path_has_a_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
