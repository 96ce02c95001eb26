/* Results are taken with receipts, and committed by these (look/results_act.h). */
#include "look/results_act.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "call.h"

static bool has_next;

/* What an answer points to is there as long as this takes. */
static void take_step(struct world *w, struct store_request *request)
{
        (void)w;
        has_next = look_next(container_of(request, struct look, request));
}

static void run(struct world *w, struct look *look)
{
        store_info(w->store, &look->info);
        has_next = look_next(look);
        while (has_next) {
                struct call_waiting waiting;
                (void)call_prepare(w, &look->request, take_step, &waiting);
                look->start(w->store, look);
                assert_int_equal(call_finish(w, &look->request, &waiting), 0);
        }
}

/* Results of `size` bytes, of the first one or two shards in turn. */
static void make_results(struct world *w, unsigned shards, unsigned count, size_t size)
{
        struct owner owners[2] = { own(w, 0, 1, 1) };
        if (shards == 2)
                owners[1] = own(w, 1, 1, 1);
        char *bytes = test_malloc(size);
        memset(bytes, 'r', size);
        for (unsigned i = 0; i < count; i++) {
                struct owner *o = &owners[i % shards];
                (void)submit(w, key_of(w, i % shards, 0).data, "x");
                struct store_advance a = claim(w, o, 1);
                struct store_outcome outcome = done(&a.tasks[0]);
                outcome.has_result = true;
                outcome.result = (struct span){ bytes, size };
                (void)settle(w, o, outcome);
        }
        test_free(bytes);
}

static struct results_take take(struct world *w, uint8_t who, uint32_t max, size_t bytes_max)
{
        struct results_take t = { .max = max, .bytes_max = bytes_max, .lease_ms = 1000, .consumer = { who } };
        results_take_init(&t);
        run(w, &t.look);
        return t;
}

/* How many are committed; those of the list that are not are compared with `refused`. */
static uint64_t commit(struct world *w, const json_t *results, size_t refused)
{
        struct results_commit c = { 0 };
        struct store_info info;
        json_t *receipts = json_array();
        json_t *result;
        size_t i;
        json_array_foreach(results, i, result)(void) json_array_append(receipts, json_object_get(result, "receipt"));
        json_t *object = json_pack("{s:o}", "receipts", receipts);
        char *text = json_dumps(object, JSON_COMPACT);
        store_info(w->store, &info);
        assert_int_equal(results_commit_read(&c, span_of_text(text), info.shards, 1000, &(struct error){ "" }), 0);
        free(text);
        run(w, &c.look);
        assert_int_equal(json_array_size(c.refused), refused);
        if (refused)
                assert_true(json_equal(json_array_get(c.refused, 0), json_array_get(receipts, 0)));
        uint64_t committed = c.committed;
        json_decref(object);
        results_commit_free(&c);
        return committed;
}

static void what_is_taken_and_not_committed_comes_back(void **state)
{
        struct world *w = *state;
        make_results(w, 2, 10, 4);
        struct results_take a = take(w, 1, 4, 1 << 20);
        assert_int_equal(json_array_size(a.found), 4);
        assert_true(a.has_more);
        struct results_take b = take(w, 2, 100, 1 << 20);
        assert_int_equal(json_array_size(b.found), 6);
        assert_false(b.has_more);
        assert_int_equal(commit(w, b.found, 0), 6);
        assert_int_equal(commit(w, b.found, 6), 0); /* a repeat does no harm */
        world_step(w, 1000);
        struct results_take c = take(w, 3, 100, 1 << 20);
        assert_int_equal(json_array_size(c.found), 4);
        assert_int_equal(commit(w, a.found, 4), 0); /* another has them now */
        assert_int_equal(commit(w, c.found, 0), 4);
        assert_int_equal(counts(w, 0).results + counts(w, 1).results, 0);
        results_take_free(&a);
        results_take_free(&b);
        results_take_free(&c);
}

static void receipts_of_two_consumers_go_in_one_commit(void **state)
{
        struct world *w = *state;
        make_results(w, 1, 4, 4);
        struct results_take a = take(w, 1, 2, 1 << 20);
        struct results_take b = take(w, 2, 2, 1 << 20);
        assert_int_equal(json_array_extend(a.found, b.found), 0);
        assert_int_equal(commit(w, a.found, 0), 4);
        results_take_free(&a);
        results_take_free(&b);
}

static void a_number_of_another_shard_is_refused(void **state)
{
        struct world *w = *state;
        uint64_t number = STORE_RESULT_NUMBER_MAX + 1;
        bool held = true;
        struct store_commit c = { .numbers = &number, .numbers_count = 1, .held = &held };
        assert_int_equal(CALL(w, store_commit, &c, NULL), -EINVAL);
}

static void an_answer_is_bounded_in_bytes(void **state)
{
        struct world *w = *state;
        make_results(w, 2, 3 * RESULTS_TAKE_STEP, 100);
        struct results_take a = take(w, 1, 1000, 100 * RESULTS_TAKE_STEP);
        assert_int_equal(json_array_size(a.found), RESULTS_TAKE_STEP);
        assert_true(a.has_more);
        results_take_free(&a);
}

static void a_receipt_is_read_with_care(void **state)
{
        (void)state;
        static const char nonce[] = "000102030405060708090a0b0c0d0e0f";
        static const struct {
                const char *head;
                bool is_one;
        } heads[] = { { "3.17.", true }, { "0.1125899906842623.", true }, { "4.17.", false },
                { "3.1125899906842624.", false }, { "3.99999999999999999999.", false }, { "-1.17.", false },
                { "3.17", false }, { "3..", false }, { ".17.", false }, { "3. 17.", false }, { "", false } };
        struct result_receipt receipt;
        for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
                char text[128];
                char again[RESULT_RECEIPT_MAX];
                (void)snprintf(text, sizeof(text), "%s%s", heads[i].head, nonce);
                assert_int_equal(result_receipt_parse(text, 4, &receipt), heads[i].is_one);
                if (heads[i].is_one)
                        assert_string_equal(result_receipt_text(again, &receipt), text);
                (void)strcat(text, "0");
                assert_false(result_receipt_parse(text, 4, &receipt));
        }
        assert_false(result_receipt_parse("3.17.000102030405060708090A0B0C0D0E0F", 4, &receipt));
}

static void a_commit_names_receipts_and_nothing_else(void **state)
{
        (void)state;
        static const char *const bodies[] = { "", "[]", "{}", "{\"receipts\": {}}", "{\"receipts\": [1]}",
                "{\"receipts\": [], \"all\": 1}", "{\"receipts\": [\"mine\"]}",
                ("{\"receipts\": [\"0.1.00000000000000000000000000000000\", \"0.2.00000000000000000000000000000000\", "
                 "\"0.3.00000000000000000000000000000000\"]}") };
        for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
                struct results_commit c = { 0 };
                struct error error = { "" };
                assert_int_equal(results_commit_read(&c, span_of_text(bodies[i]), 4, 2, &error), -EINVAL);
                assert_string_not_equal(error.text, "");
                results_commit_free(&c);
        }
}

const struct CMUnitTest results_act_tests[] = {
        IN_WORLD_4(what_is_taken_and_not_committed_comes_back),
        IN_WORLD(receipts_of_two_consumers_go_in_one_commit),
        IN_WORLD(a_number_of_another_shard_is_refused),
        IN_WORLD_4(an_answer_is_bounded_in_bytes),
        cmocka_unit_test(a_receipt_is_read_with_care),
        cmocka_unit_test(a_commit_names_receipts_and_nothing_else),
};
GROUP(results_act);
