/* The last tasks that a host has done: the ring, and the document that it writes of them. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/report/done_document.h"
#include "host/report/survey.h"
#include "view/done.h"
#include "view/json.h"

#define NOW  1000000u
#define HOUR 3600000u

static void add(struct done_tasks *done, const char *id, uint64_t at_ms)
{
        struct done_task *task = done_tasks_add(done);
        assert_non_null(task);
        *task = (struct done_task){ .at_ms = (int64_t)at_ms,
                .ran_ms = 40,
                .attempt = 2,
                .generation = 3,
                .hash = 0x9f0c1a2b,
                .pid = 4711,
                .has_result = true,
                .result_bytes = 12 };
        done_task_name(task, span_of_text(id), SPAN_TEXT("mail"));
}

/* What somebody who reads the document finds under that id, `later_ms` after it was written; NULL: nothing. */
static json_t *find(const struct done_tasks *done, const char *id, uint64_t now_ms, uint64_t later_ms)
{
        struct done_search search;
        char *text = done_document_make(done, "host-a", HOUR, false, now_ms, STORE_RUNNING_MAX);
        struct store_status document = { .age_ms = later_ms, .document = span_of_text(text) };
        done_search_init(&search, span_of_text(id), 5 * NOW);
        done_search_add(&search, &document);
        json_t *found = json_incref(search.found);
        done_search_free(&search);
        free(text);
        return found;
}

static bool is_known(const struct done_tasks *done, const char *id, uint64_t now_ms)
{
        json_t *found = find(done, id, now_ms, 0);
        bool is = found != NULL;
        json_decref(found);
        return is;
}

static void a_done_task_is_found_with_where_and_when(void **state)
{
        struct done_tasks done;
        struct buffer text = { 0 };
        (void)state;
        done_tasks_init(&done, 10, NOW);
        add(&done, "x-7", NOW + 1000);
        json_t *found = find(&done, "x-7", NOW + 3000, 10000);
        assert_non_null(found);
        assert_string_equal(view_json_get_text(found, "state"), "done");
        assert_string_equal(view_json_get_text(found, "host"), "host-a");
        assert_string_equal(view_json_get_text(found, "handler"), "mail");
        assert_string_equal(view_json_get_text(found, "hash"), "9f0c1a2b");
        assert_int_equal(view_json_get_number(found, "generation"), 3);
        assert_int_equal(view_json_get_number(found, "attempt"), 2);
        assert_int_equal(view_json_get_number(found, "pid"), 4711);
        assert_int_equal(view_json_get_number(found, "ago_ms"), 12000);
        assert_int_equal(view_json_get_number(found, "at_ms"), 5 * NOW - 12000);
        assert_int_equal(view_json_get_number(found, "ran_ms"), 40);
        assert_int_equal(view_json_get_number(found, "result_bytes"), 12);
        done_as_text(&text, found);
        assert_non_null(strstr(buffer_text(&text), "done 12s ago"));
        assert_non_null(
                strstr(buffer_text(&text), "on host-a, attempt 2, pid 4711, generation 3, plugin 9f0c1a2b, for 40ms"));
        assert_non_null(strstr(buffer_text(&text), "result       12 B"));
        json_decref(found);
        buffer_free(&text);
        done_tasks_free(&done);
}

static void the_oldest_makes_room_and_since_says_so(void **state)
{
        struct done_tasks done;
        char id[16];
        (void)state;
        done_tasks_init(&done, 3, NOW);
        assert_int_equal(done.since_ms, NOW);
        for (unsigned i = 0; i < 5; i++) {
                (void)snprintf(id, sizeof(id), "t%u-7", i);
                add(&done, id, NOW + i);
        }
        assert_int_equal(done.count, 3);
        assert_int_equal(done.added, 5);
        assert_int_equal(done.since_ms, NOW + 1); /* that of the last one that was forgotten */
        assert_null(done_tasks_find(&done, SPAN_TEXT("t1-7")));
        assert_non_null(done_tasks_find(&done, SPAN_TEXT("t2-7")));
        assert_true(span_is(
                (struct span){ done_tasks_get(&done, 0)->id, done_tasks_get(&done, 0)->id_size }, SPAN_TEXT("t4-7")));
        assert_null(done_tasks_get(&done, 3));
        done_tasks_free(&done);
        done_tasks_init(&done, 0, NOW);
        assert_null(done_tasks_add(&done)); /* keep = 0 */
        assert_null(done_tasks_find(&done, SPAN_TEXT("t4-7")));
        done_tasks_free(&done);
}

static void what_is_too_old_is_not_told(void **state)
{
        struct done_tasks done;
        (void)state;
        done_tasks_init(&done, 10, NOW);
        add(&done, "old-7", NOW);
        add(&done, "new-7", NOW + 10);
        assert_true(is_known(&done, "old-7", NOW + HOUR));
        assert_false(is_known(&done, "old-7", NOW + HOUR + 1));
        assert_true(is_known(&done, "new-7", NOW + HOUR + 1));
        json_t *one = done_document_of(&done, "host-a", HOUR, NOW + HOUR + 1, SPAN_TEXT("old-7"));
        assert_int_equal(json_array_size(json_object_get(one, "tasks")), 0);
        json_decref(one);
        one = done_document_of(&done, "host-a", HOUR, NOW + HOUR + 1, SPAN_TEXT("new-7"));
        assert_int_equal(json_array_size(json_object_get(one, "tasks")), 1);
        json_decref(one);
        done_tasks_free(&done);
}

/* The latest fit, and the document does not claim more than it has. */
static void a_document_keeps_its_limit(void **state)
{
        struct done_tasks done;
        char id[TASK_ID_MAX + 1];
        (void)state;
        done_tasks_init(&done, 2000, NOW);
        for (unsigned i = 0; i < 2000; i++) {
                (void)snprintf(
                        id, sizeof(id), "%.*s%04u-7", 50, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i);
                add(&done, id, NOW + i);
        }
        char *text = done_document_make(&done, "host-a", HOUR, false, NOW + 5000, STORE_RUNNING_MAX);
        assert_in_range(strlen(text), STORE_RUNNING_MAX / 2, STORE_RUNNING_MAX);
        json_t *said = json_loads(text, 0, NULL);
        size_t count = json_array_size(json_object_get(said, "tasks"));
        assert_in_range(count, 100, 1999);
        /* All that was done after the first that has no room. */
        assert_int_equal(view_json_get_number(said, "since_ms"), 5000 - (2000 - count - 1));
        json_decref(said);
        free(text);
        done_tasks_free(&done);
}

static void kinds_of_tasks_are_told_apart(void **state)
{
        struct done_tasks done;
        (void)state;
        done_tasks_init(&done, 10, NOW);
        add(&done, "a-7", NOW);
        add(&done, "b-7", NOW);
        done.list[1].generation = 4;
        done.list[1].has_result = false;
        json_t *a = find(&done, "a-7", NOW, 0);
        json_t *b = find(&done, "b-7", NOW, 0);
        assert_int_equal(view_json_get_number(a, "generation"), 3);
        assert_int_equal(view_json_get_number(b, "generation"), 4);
        assert_null(json_object_get(b, "result_bytes"));
        json_decref(a);
        json_decref(b);
        done_tasks_free(&done);
}

/* --- the next process of that name --- */

static void a_restarted_host_knows_what_its_predecessor_did(void **state)
{
        struct done_tasks before;
        struct done_tasks after;
        (void)state;
        done_tasks_init(&before, 10, NOW);
        add(&before, "one-7", NOW + 1000);
        add(&before, "two-7", NOW + 2000);
        for (int is_last = 0; is_last < 2; is_last++) {
                char *text = done_document_make(&before, "host-a", HOUR, is_last, NOW + 3000, STORE_RUNNING_MAX);
                /* Another boot, whose clock begins anew; it has done something before it could read. */
                done_tasks_init(&after, 10, 100);
                add(&after, "three-7", 200);
                done_document_read(&after, span_of_text(text), 7000, 300);
                assert_int_equal(after.count, 3);
                json_t *found = find(&after, "one-7", 300, 0);
                assert_int_equal(view_json_get_number(found, "ago_ms"), 9000);
                assert_int_equal(view_json_get_number(found, "attempt"), 2);
                assert_string_equal(view_json_get_text(found, "hash"), "9f0c1a2b");
                json_decref(found);
                assert_true(span_is((struct span){ done_tasks_get(&after, 0)->id, done_tasks_get(&after, 0)->id_size },
                        SPAN_TEXT("three-7")));
                assert_true(is_known(&after, "three-7", 300));
                /* One that was killed did more than it wrote down. */
                assert_int_equal(after.since_ms, is_last ? 300 - 10000 : 100);
                done_tasks_free(&after);
                free(text);
        }
        done_tasks_free(&before);
}

static void a_document_may_say_anything(void **state)
{
        static const char *const documents[] = { "", "[]", "{", "{\"since_ms\":-1,\"tasks\":[[\"a-7\",0,1,1,1,1,1]]}",
                "{\"name\":\"h\",\"since_ms\":1,\"tasks\":7,\"kinds\":[]}",
                "{\"name\":\"h\",\"since_ms\":1,\"tasks\":[7,[],[\"a-7\"],[7,0,1,1,1,1,1]],\"kinds\":[[\"mail\",1,"
                "\"9f\"]]}",
                "{\"name\":\"h\",\"since_ms\":1,\"tasks\":[[\"a-7\",9,1,1,1,1,1]],\"kinds\":[[\"mail\",1,\"9f\"]]}",
                "{\"name\":\"h\",\"since_ms\":1,\"tasks\":[[\"a-7\",0,1,1,-1,1,1]],\"kinds\":[[\"mail\",1,\"9f\"]]}",
                "{\"name\":\"h\",\"since_ms\":1,\"tasks\":[[\"a-7\",0,1,1,9223372036854775807,1,1]],\"kinds\":[["
                "\"mail\",1,"
                "\"9f\"]]}",
                "{\"name\":\"h\",\"since_ms\":1,\"tasks\":[[\"a\\\"-7\",0,1,1,1,1,1]],\"kinds\":[[\"mail\",1,\"9f\"]]}",
                "{\"name\":\"h\",\"since_ms\":1,\"tasks\":[[\"a-7\",0,1,1,1,1,1]],\"kinds\":[[7,1,\"9f\"]]}" };
        (void)state;
        for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
                struct done_tasks done;
                struct done_search search;
                struct store_status document = { .age_ms = 1, .document = span_of_text(documents[i]) };
                done_tasks_init(&done, 4, NOW);
                done_document_read(&done, document.document, UINT64_MAX, NOW);
                assert_int_equal(done.count, 0);
                done_tasks_free(&done);
                done_search_init(&search, SPAN_TEXT("a-7"), NOW);
                done_search_add(&search, &document); /* harmless, whatever it finds */
                done_search_free(&search);
        }
}

static void who_is_not_found_is_told_how_far_back_hosts_remember(void **state)
{
        struct done_search search;
        struct buffer text = { 0 };
        struct store_status document = { .age_ms = 3000,
                .document =
                        SPAN_TEXT("{\"name\":\"host-a\",\"since_ms\":1000,\"kept\":500,\"kinds\":[],\"tasks\":[]}") };
        (void)state;
        done_search_init(&search, SPAN_TEXT("x-7"), 1763256004000);
        done_search_missing(&text, &search);
        assert_non_null(strstr(buffer_text(&text), "no host remembers"));
        buffer_clear(&text);
        done_search_add(&search, &document);
        done_search_add(&search, &document); /* said twice is said once */
        done_search_missing(&text, &search);
        assert_non_null(strstr(buffer_text(&text),
                "(host-a remembers the last 500 that it did since 2025-11-16 01:20:00.000Z, as of 3s ago)"));
        buffer_free(&text);
        done_search_free(&search);
}

static void beyond_a_hundred_hosts_each_writes_less_often(void **state)
{
        (void)state;
        assert_int_equal(survey_rarer(0), 1);
        assert_int_equal(survey_rarer(100), 1);
        assert_int_equal(survey_rarer(101), 2);
        assert_int_equal(survey_rarer(1000), 10);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_done_task_is_found_with_where_and_when),
                cmocka_unit_test(the_oldest_makes_room_and_since_says_so),
                cmocka_unit_test(what_is_too_old_is_not_told),
                cmocka_unit_test(a_document_keeps_its_limit),
                cmocka_unit_test(kinds_of_tasks_are_told_apart),
                cmocka_unit_test(a_restarted_host_knows_what_its_predecessor_did),
                cmocka_unit_test(a_document_may_say_anything),
                cmocka_unit_test(who_is_not_found_is_told_how_far_back_hosts_remember),
                cmocka_unit_test(beyond_a_hundred_hosts_each_writes_less_often),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
