/* What is made of the documents that hosts write about themselves, whatever these say. */
#include "status_rig.h"

#include <errno.h>
#include <time.h>

/* --- merging --- */

static void handlers_of_several_hosts_are_added_up(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 10,
                "{\"rates\":{\"done\":1},\"handlers\":[{\"name\":\"m\",\"done\":3,\"crashed\":1},{\"name\":\"n\"}]}");
        add(rig, 0xbb, 10,
                "{\"rates\":{\"done\":2.5},\"handlers\":[{\"name\":\"n\",\"done\":5},{\"name\":\"m\",\"done\":4}]}");
        assert_int_equal(json_array_size(rig->status.handlers), 2);
        assert_string_equal(view_json_get_text(handler(rig, 0), "name"), "m");
        assert_int_equal(view_json_get_number(handler(rig, 0), "done"), 7);
        assert_int_equal(view_json_get_number(handler(rig, 0), "crashed"), 1);
        assert_int_equal(view_json_get_number(handler(rig, 1), "done"), 5);
        assert_true(json_number_value(json_object_get(rig->status.rates, "done")) == 3.5);
}

static void the_state_to_look_at_is_shown(void **state)
{
        struct rig *rig = *state;
        add(rig, 1, 0, "{\"handlers\":[{\"name\":\"m\",\"state\":\"unavailable\",\"unavailable\":\"it is down\"}]}");
        add(rig, 2, 0, "{\"handlers\":[{\"name\":\"m\",\"state\":\"open\"}]}");
        assert_string_equal(view_json_get_text(handler(rig, 0), "state"), "unavailable");
        add(rig, 3, 0, "{\"handlers\":[{\"name\":\"m\",\"state\":\"quarantined\"}]}");
        add(rig, 4, 0, "{\"handlers\":[{\"name\":\"m\",\"state\":\"unheard of\"}]}");
        assert_string_equal(view_json_get_text(handler(rig, 0), "state"), "quarantined");
        assert_contains(text_of(rig), "  unavailable: it is down\n");
}

static void versions_that_differ_are_all_shown_once(void **state)
{
        struct rig *rig = *state;
        static const char *const said[] = { "1.10", "1.1", "1.10", "1.1", "0", "1" };
        char document[128];
        for (size_t i = 0; i < COUNT(said); i++) {
                (void)snprintf(
                        document, sizeof(document), "{\"handlers\":[{\"name\":\"m\",\"version\":\"%s\"}]}", said[i]);
                add(rig, (uint8_t)i, 0, document);
        }
        assert_string_equal(view_json_get_text(handler(rig, 0), "version"), "1.10, 1.1, 0, 1");
}

static void an_age_grows_with_its_document(void **state)
{
        struct rig *rig = *state;
        add(rig, 1, 5000, "{\"handlers\":[{\"name\":\"m\",\"oldest_ms\":100,\"unavailable_ms\":1}]}");
        add(rig, 2, 60, "{\"handlers\":[{\"name\":\"m\",\"oldest_ms\":4000},{\"name\":\"n\",\"oldest_ms\":0}]}");
        assert_int_equal(view_json_get_number(handler(rig, 0), "oldest_ms"), 5100);
        assert_int_equal(view_json_get_number(handler(rig, 0), "unavailable_ms"), 5001);
        assert_int_equal(view_json_get_number(handler(rig, 1), "oldest_ms"), 0);
}

static void what_came_over_http_is_shown_with_its_host(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 0,
                "{\"name\":\"a\",\"http_counts\":{\"accepted\":12,\"requests\":340,\"refused\":3,\"limited\":1,"
                "\"forbidden\":\"x\",\"timed_out\":-1,\"strange\":7}}");
        add(rig, 0xbb, 0, "{\"name\":\"b\",\"http_counts\":7}");
        const json_t *http = json_object_get(json_array_get(rig->status.members, 0), "http_counts");
        assert_json(json_deep_copy(http),
                "{\"accepted\":12,\"requests\":340,\"refused\":3,\"limited\":1,\"malformed\":0,\"forbidden\":0,"
                "\"timed_out\":0}");
        assert_null(json_object_get(json_array_get(rig->status.members, 1), "http_counts"));
        assert_contains(text_of(rig),
                "          http: 12 connections, 340 requests, 3 connections refused (http.connections), 1 requests "
                "refused: too many wait, or too many bytes\n");
}

static void a_host_without_a_document_is_named_by_its_lease(void **state)
{
        struct rig *rig = *state;
        (void)strcpy(rig->counts[1].host, "host-a");
        assert_contains(text_of(rig), "host-a epoch 7");
        json_t *all = status_as_json(&rig->status);
        assert_string_equal(view_json_get_text(json_array_get(json_object_get(all, "shards"), 1), "host"), "host-a");
        assert_null(json_object_get(json_array_get(json_object_get(all, "shards"), 0), "host"));
        json_decref(all);
}

static void nothing_is_older_than_the_app(void **state)
{
        struct rig *rig = *state;
        struct store_listed listed = { .envelope = { .handler = SPAN_TEXT("mail"), .submitted_ms = 1 } };
        assert_int_equal(store_age_ms(500, 400, 1000), 500);
        assert_int_equal(store_age_ms(500, 600, 1000), 400);
        assert_int_equal(store_age_ms(0, 1, 1000), 999);    /* not known when it was made */
        assert_int_equal(store_age_ms(500, 0, 1000), 0);    /* nobody said */
        assert_int_equal(store_age_ms(500, 2000, 1000), 0); /* not there yet */
        assert_int_equal(store_age_ms(2000, 400, 1000), 600);
        rig->status.created_ms = 1000000;
        status_sample_begin(&rig->status, 1);
        status_add_sampled(&rig->status, &listed, 1005000);
        status_sample_end(&rig->status);
        assert_int_equal(view_json_get_number(handler(rig, 0), "oldest_ms"), 5000);
}

/* Another host holds the shard, or nobody does any more. */
static void what_runs_in_a_shard_is_said_by_its_owner_alone(void **state)
{
        struct rig *rig = *state;
        rig->counts[2].in_flight = rig->counts[3].in_flight = 9;
        rig->counts[2].left_ms = 900;
        add(rig, 0xaa, 0, "{\"name\":\"a\",\"running\":[[1,2],[2,5],[3,5]]}");
        assert_int_equal(rig->status.shards[1].running, 2);
        assert_int_equal(rig->status.shards[2].running, 0);
        assert_int_equal(rig->status.shards[3].running, 0);
        rig->counts[2].left_ms = 0;
        add(rig, 0xbb, 0, "{\"name\":\"b\",\"running\":[[2,5]]}");
        assert_int_equal(rig->status.shards[2].running, 0);
        rig->counts[2].left_ms = 1;
        add(rig, 0xbb, 0, "{\"name\":\"b\",\"running\":[[2,5]]}");
        assert_int_equal(rig->status.shards[2].running, 5);
        assert_int_equal(rig->status.running, 7);
}

/* --- documents that say something else --- */

static void what_is_no_document_is_a_member_without_a_word(void **state)
{
        struct rig *rig = *state;
        static const char *const said[] = { "", "{", "null", "[]", "7", "\"text\"", "[{\"name\":\"x\"}]",
                "{\"name\":\"a\"} trailing", "{\"name\":\"\xff\"}", "{\"name\":\"a\\u0000b\"}", "{\"weight\":1e999}",
                "{\"weight\":99999999999999999999}" };
        for (size_t i = 0; i < COUNT(said); i++)
                add(rig, 0xaa, 3, said[i]);
        assert_int_equal(json_array_size(rig->status.members), COUNT(said));
        for (size_t i = 0; i < COUNT(said); i++) {
                const json_t *member = json_array_get(rig->status.members, i);
                assert_string_equal(view_json_get_text(member, "name"), AA);
                assert_int_equal(view_json_get_number(member, "weight"), 0);
                assert_int_equal(view_json_get_number(member, "shards"), 2);
        }
        assert_int_equal(json_array_size(rig->status.handlers), 0);
        assert_contains(text_of(rig), "host      " AA ", 2 shards, heard of 3ms ago\n");
}

static void what_has_another_type_counts_as_nothing(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 0,
                "{\"name\":{},\"state\":[1],\"weight\":\"7\",\"rates\":[],\"unserved\":\"fax\",\"move_pending\":{},"
                "\"handlers\":{\"name\":\"m\"}}");
        add(rig, 0xbb, 0,
                "{\"rates\":{\"done\":\"x\",\"retried\":{},\"failed\":null},\"unserved\":[7,{},\"f\\u001b[2J\"],"
                "\"move_pending\":[\"x\",2.5,-3],\"handlers\":[1,null,\"m\",[],{},{\"name\":7},{\"name\":\"\"},"
                "{\"name\":\"m\",\"plugin\":1,\"version\":[],\"generation\":\"x\",\"state\":9,\"done\":-5,\"running\":"
                "2.5,"
                "\"oldest_ms\":true,\"unavailable\":[],\"unavailable_ms\":-1,\"done_rate\":-4,\"run_p99_ms\":\"x\","
                "\"versions\":{\"generation\":1}}]}");
        assert_json(json_incref(rig->status.handlers),
                "[{\"name\":\"m\",\"plugin\":\"\",\"version\":\"\",\"generation\":0,\"state\":\"open\",\"waiting\":0,"
                "\"running\":0,\"seats\":0,\"lent\":0,\"borrowed\":0,\"done\":0,\"retried\":0,\"later\":0,\"rejected\":"
                "0,\"crashed\":0,"
                "\"timed_out\":0,\"merged\":0,\"dead\":0,\"oldest_ms\":0,\"done_rate\":0.0,\"failed_rate\":0.0,"
                "\"run_p50_ms\":0.0,\"run_p99_ms\":0.0}]");
        assert_json(json_incref(rig->status.rates), "{\"done\":0.0,\"retried\":0.0,\"failed\":0.0}");
        assert_null(json_object_get(json_array_get(rig->status.members, 0), "unserved"));
        assert_contains(text_of(rig), "tasks of f\\x1b[2J wait");
        assert_contains(text_of(rig), "shards 0, 0, -3\n");
}

static void rates_of_hosts_add_up_and_the_slowest_tells_how_long(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 0,
                "{\"name\":\"a\",\"handlers\":[{\"name\":\"m\",\"seats\":4,\"done_rate\":1.5,\"failed_rate\":0.25,"
                "\"run_p50_ms\":3,\"run_p99_ms\":80.5}]}");
        add(rig, 0xbb, 0,
                "{\"name\":\"b\",\"handlers\":[{\"name\":\"m\",\"seats\":2,\"done_rate\":2,\"run_p50_ms\":5,"
                "\"run_p99_ms\":7}]}");
        const json_t *m = handler(rig, 0);
        assert_int_equal(view_json_get_number(m, "seats"), 6);
        assert_true(json_number_value(json_object_get(m, "done_rate")) == 3.5);
        assert_true(json_number_value(json_object_get(m, "failed_rate")) == 0.25);
        assert_true(json_number_value(json_object_get(m, "run_p50_ms")) == 5);
        assert_true(json_number_value(json_object_get(m, "run_p99_ms")) == 80.5);
        assert_null(json_object_get(m, "versions"));
}

#define VERSION(generation, outcome)                                                                                   \
        "{\"generation\":" #generation ",\"version\":\"1." #generation "\",\"at_ms\":1" #generation                    \
        ",\"outcome\":\"" outcome "\",\"by\":\"SIGHUP\",\"more\":[1]}"

static void what_became_of_versions_is_told_with_its_host_and_of_few(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 0,
                "{\"name\":\"a\",\"handlers\":[{\"name\":\"m\",\"versions\":[" VERSION(2, "rolled back") ",7," VERSION(
                        1, "good") "]}]}");
        assert_json(json_incref(json_object_get(handler(rig, 0), "versions")),
                "[{\"host\":\"a\",\"generation\":2,\"at_ms\":12,\"version\":\"1.2\",\"outcome\":\"rolled back\","
                "\"by\":\"SIGHUP\"},{\"host\":\"a\",\"generation\":0,\"at_ms\":0},{\"host\":\"a\","
                "\"generation\":1,\"at_ms\":11,\"version\":\"1.1\",\"outcome\":\"good\",\"by\":\"SIGHUP\"}]");
        for (unsigned i = 0; i < 40; i++)
                add(rig, 0xbb, 0,
                        "{\"name\":\"b\",\"handlers\":[{\"name\":\"m\",\"versions\":[" VERSION(1, "good") "]}]}");
        assert_int_equal(json_array_size(json_object_get(handler(rig, 0), "versions")), 32);
}

static void numbers_that_are_too_large_stay_the_largest(void **state)
{
        struct rig *rig = *state;
        static const char said[] =
                "{\"weight\":9223372036854775807,\"rates\":{\"done\":1.7e308},\"handlers\":[{\"name\":\"m\","
                "\"done\":9223372036854775807,\"crashed\":9223372036854775807,\"timed_out\":9223372036854775807,"
                "\"oldest_ms\":9223372036854775807}]}";
        for (uint8_t i = 0; i < 3; i++)
                add(rig, i, UINT64_MAX / 2, said);
        assert_true(view_json_get_number(handler(rig, 0), "done") == INT64_MAX);
        assert_true(view_json_get_number(handler(rig, 0), "oldest_ms") == INT64_MAX);
        assert_true(json_number_value(json_object_get(rig->status.rates, "done")) == 1.7e308);
        assert_contains(text_of(rig), "9223372036854775807");
        rig->counts[0].delayed = rig->counts[1].delayed = UINT64_MAX;
        json_t *json = status_as_json(&rig->status);
        assert_int_equal(
                view_json_get_number(json_array_get(json_object_get(json, "shards"), 0), "delayed"), INT64_MAX);
        json_decref(json);
}

static void words_of_others_do_not_act_on_the_terminal(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 0,
                "{\"name\":\"a\\u001b]0;x\\u0007\",\"state\":\"up\\nhost b\",\"handlers\":[{\"name\":\"m\\t\","
                "\"version\":\"\\u009b2J\",\"state\":\"unavailable\",\"unavailable\":\"\\r\\u001b[1mno\"}]}");
        desire(rig, SPAN_TEXT("pause.\033c"), SPAN_TEXT("\x1b!"));
        desire(rig, SPAN_TEXT("drain.\t"), SPAN_TEXT("\x07"));
        const char *text = text_of(rig);
        for (const char *at = text; *at; at++)
                assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
        assert_null(strstr(text, "\xc2\x9b"));
        assert_contains(text, "PAUSED    \\x1bc: \\x1b! (quiver resume $'\\x1bc')\n");
        assert_contains(text, "asked     drain.\\t: \\x07");
        assert_contains(text, "host      a\\x1b]0;x\\x07, up\\nhost b, 2 shards");
}

static void a_desire_that_is_no_text_keeps_its_name(void **state)
{
        struct rig *rig = *state;
        desire(rig, SPAN_TEXT("pause"), SPAN_TEXT("\xff"));
        desire(rig, SPAN_TEXT("pause.m"), SPAN_TEXT("\xed\xa0\x80"));
        desire(rig, SPAN_TEXT("pausex"), (struct span){ 0 });
        desire(rig, SPAN_TEXT("pause."), SPAN_TEXT("-"));
        assert_json(json_incref(rig->status.paused), "{\"\":\"\\\\xff\",\"m\":\"\\\\xed\\\\xa0\\\\x80\"}");
        assert_json(json_incref(rig->status.desired), "{\"pausex\":\"\",\"pause.\":\"-\"}");
}

/* Cut anywhere, or with any byte changed, it harms nobody; run with sanitizers, this sees reads past its end. */
static void a_damaged_document_harms_nothing(void **state)
{
        struct rig *rig = *state;
        static const char whole[] = DOCUMENT;
        uint64_t seed = (uint64_t)time(NULL);
        print_message("seed %llu\n", (unsigned long long)seed);
        for (size_t size = 0; size < sizeof(whole); size++) {
                char *part = malloc(size + !size);
                assert_non_null(part);
                memcpy(part, whole, size);
                add_bytes(rig, 0xaa, 1, part, size);
                free(part);
        }
        for (int i = 0; i < 3000; i++) {
                char changed[sizeof(whole)];
                memcpy(changed, whole, sizeof(whole));
                for (int n = 0; n < 3; n++) {
                        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                        changed[(seed >> 33) % (sizeof(whole) - 1)] = (char)(seed >> 56);
                }
                add_bytes(rig, 0xaa, 1, changed, sizeof(whole) - 1);
        }
        assert_int_equal(json_array_size(rig->status.members), sizeof(whole) + 3000);
        assert_true(strlen(text_of(rig)) > 0);
        json_decref(status_as_json(&rig->status));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_RIG(what_runs_in_a_shard_is_said_by_its_owner_alone),
                WITH_RIG(handlers_of_several_hosts_are_added_up),
                WITH_RIG(the_state_to_look_at_is_shown),
                WITH_RIG(versions_that_differ_are_all_shown_once),
                WITH_RIG(an_age_grows_with_its_document),
                WITH_RIG(what_came_over_http_is_shown_with_its_host),
                WITH_RIG(a_host_without_a_document_is_named_by_its_lease),
                WITH_RIG(nothing_is_older_than_the_app),
                WITH_RIG(what_is_no_document_is_a_member_without_a_word),
                WITH_RIG(what_has_another_type_counts_as_nothing),
                WITH_RIG(rates_of_hosts_add_up_and_the_slowest_tells_how_long),
                WITH_RIG(what_became_of_versions_is_told_with_its_host_and_of_few),
                WITH_RIG(numbers_that_are_too_large_stay_the_largest),
                WITH_RIG(words_of_others_do_not_act_on_the_terminal),
                WITH_RIG(a_desire_that_is_no_text_keeps_its_name),
                WITH_RIG(a_damaged_document_harms_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
