/* What is made of a store's counts: as JSON, as text, on a screen, as an alarm. */
#include "status_rig.h"

#include <errno.h>

#include "view/alarm.h"

/* --- all of it --- */

static void a_status_as_json_has_this_shape(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 250, DOCUMENT);
        desire(rig, SPAN_TEXT("pause"), SPAN_TEXT("all"));
        desire(rig, SPAN_TEXT("pause.mail"), SPAN_TEXT("one"));
        desire(rig, SPAN_TEXT("drain.b"), SPAN_TEXT("asked"));
        assert_json(status_as_json(&rig->status),
                "{\"app\":\"shop\",\"store\":\"sqlite:/tmp/q.db\",\"coordination\":\"local:/run/q\",\"shards\":["
                "{\"shard\":0,\"owner\":\"" AA "\",\"epoch\":7,\"waiting\":0,\"running\":0,"
                "\"queued\":0,\"delayed\":0,\"in_flight\":0,\"parked\":0,\"dead\":0,\"oldest_ms\":0},"
                "{\"shard\":1,\"owner\":\"" AA "\",\"epoch\":7,\"waiting\":322,\"running\":3,"
                "\"queued\":321,\"delayed\":0,\"in_flight\":4,\"parked\":0,\"dead\":0,\"oldest_ms\":1500},"
                "{\"shard\":2,\"owner\":\"" BB "\",\"epoch\":7,\"waiting\":0,\"running\":0,"
                "\"queued\":0,\"delayed\":0,\"in_flight\":0,\"parked\":0,\"dead\":2,\"oldest_ms\":90},"
                "{\"shard\":3,\"owner\":null,\"epoch\":0,\"waiting\":0,\"running\":0,\"queued\":0,\"delayed\":0,\"in_"
                "flight\":0,\"parked\":0,"
                "\"dead\":0,\"oldest_ms\":0}],"
                "\"members\":[{\"name\":\"a\",\"nonce\":\"" AA "\",\"state\":\"running\",\"weight\":2,\"shards\":2,"
                "\"age_ms\":250,\"version\":\"0.9\",\"machine\":\"web\",\"pid\":77,\"started_ms\":5,\"seats\":8,"
                "\"running\":10,\"done_rate\":1.5,\"unserved\":[\"fax\"],\"move_pending\":[1,3]}],"
                "\"handlers\":[{\"name\":\"mail\",\"plugin\":\"mail.so\",\"version\":\"1.2\",\"generation\":3,"
                "\"state\":\"open\",\"waiting\":1,\"running\":4,\"seats\":0,\"lent\":0,\"borrowed\":0,\"done\":675,"
                "\"retried\":0,\"later\":0,"
                "\"rejected\":0,"
                "\"crashed\":"
                "0,"
                "\"timed_out\":0,\"merged\":0,\"dead\":0,\"oldest_ms\":1250,\"done_rate\":0.0,\"failed_rate\":0.0,"
                "\"run_p50_ms\":0.0,\"run_p99_ms\":0.0}],\"limits\":[],\"dead\":[],"
                "\"totals\":{\"waiting\":322,\"running\":3,\"queued\":321,\"delayed\":0,\"in_flight\":4,\"parked\":0,"
                "\"dead\":2,\"queued_lanes\":{\"high\":1,\"normal\":20,\"low\":300},"
                "\"parked_lanes\":{\"high\":0,\"normal\":0,\"low\":0},\"oldest_ms\":1500,"
                "\"parked_keys\":0,\"held_keys\":0,\"results\":0,\"results_dropped\":0,\"submitted\":1010,"
                "\"done\":675,\"dropped\":0,\"merged\":0,\"owned\":2,\"unowned\":2,"
                "\"paused\":{\"\":\"all\",\"mail\":\"one\"},\"desired\":{\"drain.b\":\"asked\"},"
                "\"durability\":\"all of it\"},"
                "\"rates\":{\"done\":1.5,\"retried\":0.5,\"failed\":0.0},"
                "\"problems\":[{\"level\":\"warn\",\"kind\":\"shards\",\"text\":\"2 shards have no owner. 0 tasks wait "
                "there.\",\"command\":\"quiver members\"},{\"level\":\"warn\",\"kind\":\"dead\",\"text\":\"2 tasks "
                "are dead.\",\"command\":\"quiver dead list\"}]}");
}

static void a_status_as_text_has_this_shape(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 250, DOCUMENT);
        desire(rig, SPAN_TEXT("pause"), SPAN_TEXT("all"));
        desire(rig, SPAN_TEXT("pause.mail"), SPAN_TEXT("one"));
        assert_string_equal(text_of(rig),
                "app       shop, 4 shards, 2 owned\n"
                "store     sqlite:/tmp/q.db, coordination local:/run/q\n"
                "durable   all of it\n"
                "PAUSED    all handlers: all (quiver resume)\n"
                "PAUSED    mail: one (quiver resume mail)\n"
                "host      a, running, 2 shards, 8 seats, pid 77 on web, version 0.9, heard of 250ms ago\n"
                "          tasks of fax wait: it has no such handler; add it to its runtime.cfg and reload\n"
                "          move pending, until the calls that run there end: shards 1, 3\n"
                "\n"
                "handler  version  state  waiting  running  done  retried  later  rejected  crashed  dead  oldest\n"
                "mail     1.2      open         1        4   675        0      0         0        0     0    1.3s\n"
                "\n"
                "shard  waiting  running  delayed  dead  results  oldest  owner\n"
                "all        322        3        0     2        0    1.5s\n"
                "1          322        3        0     0        0    1.5s  a epoch 7\n"
                "2            0        0        0     2        0    90ms  " BB " epoch 7 (expired)\n"
                "\n"
                "1010 submitted so far, 675 done, 0 dropped; now 1.5 done, 0.5 retried, 0.0 failed per second\n"
                "Dead tasks: quiver dead list\n");
}

/* --- what waits, and what runs --- */

static struct store_listed listed(const char *handler, uint64_t submitted_ms)
{
        return (struct store_listed){ .envelope = { .handler = span_of_text(handler), .submitted_ms = submitted_ms } };
}

static void what_waits_in_the_store_is_counted_by_handler_in_a_sample(void **state)
{
        struct rig *rig = *state;
        struct store_listed tasks[] = { listed("mail", 900), listed("fax", 400), listed("mail", 5000),
                listed("mail", 0) };
        add(rig, 0xaa, 250, DOCUMENT);
        status_sample_begin(&rig->status, 400);
        for (size_t i = 0; i < COUNT(tasks); i++)
                status_add_sampled(&rig->status, &tasks[i], 1000);
        status_sample_end(&rig->status);
        assert_int_equal(view_json_get_number(handler(rig, 0), "waiting"), 301);
        assert_true(json_is_true(json_object_get(handler(rig, 0), "estimated")));
        assert_int_equal(view_json_get_number(handler(rig, 1), "waiting"), 100);
        assert_int_equal(view_json_get_number(handler(rig, 1), "oldest_ms"), 600);
        assert_string_equal(view_json_get_text(handler(rig, 1), "state"), "unserved");
        assert_contains(text_of(rig), "~301");
        status_sample_begin(&rig->status, 1);
        status_add_sampled(&rig->status, &(struct store_listed){ .envelope = { .handler = SPAN_TEXT("all") } }, 1000);
        status_sample_end(&rig->status);
        assert_int_equal(view_json_get_number(handler(rig, 2), "waiting"), 1);
        assert_null(json_object_get(handler(rig, 2), "estimated"));
        status_sample_begin(&rig->status, 7);
        status_sample_end(&rig->status);
}

static void keys_that_wait_are_told_apart(void **state)
{
        struct rig *rig = *state;
        const struct store_key_info keys[] = {
                { .shard = 3, .state = KEY_WAITING, .tasks = 1000, .head_age_ms = 10 },
                { .shard = 3, .state = KEY_PARKED, .head_age_ms = 9000 },
                { .shard = 0, .state = KEY_HELD },
        };
        for (size_t i = 0; i < COUNT(keys); i++)
                status_add_key(&rig->status, &keys[i]);
        assert_int_equal(rig->status.parked_keys, 1);
        assert_int_equal(rig->status.held_keys, 1);
        assert_int_equal(rig->status.oldest_ms, 9000);
        assert_int_equal(rig->status.shards[3].oldest_ms, 9000);
        assert_contains(text_of(rig), "Keys that wait for a person: 1 (quiver key list)\n");
        rig->status.are_keys_cut = true;
        assert_contains(text_of(rig), "Keys that wait for a retry: at least 1 (quiver key list)\n");
}

static void counts_since_the_app_began_replace_those_of_hosts(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 250, DOCUMENT);
        static const struct store_total totals[] = { { SPAN_TEXT("mail.done"), 90000 },
                { SPAN_TEXT("mail.crashed"), 7 }, { SPAN_TEXT("gone.done"), 5 }, { SPAN_TEXT(".done"), 5 },
                { SPAN_TEXT("done"), 5 }, { SPAN_TEXT("mail.running"), 99 } };
        for (size_t i = 0; i < COUNT(totals); i++)
                status_add_total(&rig->status, &totals[i]);
        assert_int_equal(json_array_size(rig->status.handlers), 1);
        assert_int_equal(view_json_get_number(handler(rig, 0), "done"), 90000);
        assert_int_equal(view_json_get_number(handler(rig, 0), "crashed"), 7);
        assert_int_equal(view_json_get_number(handler(rig, 0), "running"), 4);
}

static void the_dead_are_shown_by_kind_the_most_first(void **state)
{
        struct rig *rig = *state;
        static const struct store_dead_group groups[] = {
                { SPAN_TEXT("mail"), SPAN_TEXT("exhausted"), SPAN_TEXT("refused"), 3 },
                { SPAN_TEXT(""), SPAN_TEXT(""), SPAN_TEXT(""), 9 },
                { SPAN_TEXT("mail"), SPAN_TEXT("exhausted"), SPAN_TEXT("refused"), 4 },
                { SPAN_TEXT("fax"), SPAN_TEXT("rejected"), SPAN_TEXT("no \x1b paper"), 1 },
        };
        for (size_t i = 0; i < COUNT(groups); i++)
                status_add_dead_group(&rig->status, &groups[i]);
        assert_contains(text_of(rig), "  9 others\n  7 mail exhausted: refused\n  1 fax rejected: no \\x1b paper\n");
        assert_int_equal(view_json_get_number(status_handler(&rig->status, "mail"), "dead"), 7);
}

/* A driver counts all of them, and two lanes apart; somebody may have written other numbers to its store. */
static void no_lane_has_more_parked_than_there_are(void **state)
{
        (void)state;
        struct store_counts c = { 0 };
        store_counts_set_parked(&c, 10, 3, 2);
        assert_int_equal(c.parked[LANE_HIGH], 3);
        assert_int_equal(c.parked[LANE_NORMAL], 5);
        assert_int_equal(c.parked[LANE_LOW], 2);
        store_counts_set_parked(&c, 10, 99, 99);
        assert_int_equal(c.parked[LANE_HIGH], 10);
        assert_int_equal(store_counts_parked(&c), 10);
        store_counts_set_parked(&c, 10, 3, 99);
        assert_int_equal(c.parked[LANE_LOW], 7);
        assert_int_equal(store_counts_parked(&c), 10);
}

/* --- alarms --- */

static bool fires(struct rig *rig, const char *text, const char *says)
{
        struct alarm alarm;
        struct error error = { "" };
        struct buffer why = { 0 };
        assert_int_equal(alarm_parse(text, &alarm, &error), 0);
        bool is_reached = alarm_is_reached(&alarm, &rig->status, &why);
        if (is_reached)
                assert_contains(buffer_text(&why), says);
        buffer_free(&why);
        return is_reached;
}

static void an_alarm_fires_from_its_limit_on(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 0, DOCUMENT);
        assert_true(fires(rig, "waiting=322", "322 waiting, and the limit is 322\n"));
        assert_false(fires(rig, "waiting=323", ""));
        assert_true(fires(rig, "oldest=1500ms", "the oldest waits for 1.5s, and the limit is 1.5s\n"));
        assert_false(fires(rig, "oldest=2s", ""));
        assert_true(fires(rig, "dead=2", "2 dead"));
        assert_false(fires(rig, "hosts=1", ""));
        assert_true(fires(rig, "hosts=2", "1 host, and there should be 2\n"));
        assert_true(fires(rig, "unowned=2", "2 shards without an owner"));
        assert_false(fires(rig, "unowned=3", ""));
        assert_true(fires(rig, "waiting@mail=1", "mail: 1 waiting"));
        assert_false(fires(rig, "waiting@fax=1", ""));
        assert_false(fires(rig, "versions=1", ""));
        add(rig, 0xbb, 0,
                "{\"version\":\"0.9\",\"handlers\":[{\"name\":\"mail\",\"version\":\"1.3\"},{\"name\":\"down\","
                "\"state\":\"unavailable\"},{\"name\":\"bad\",\"state\":\"quarantined\"},{\"name\":\"no\","
                "\"state\":\"refused\"}]}");
        assert_true(fires(rig, "versions@mail=1", "mail: 1 handler of which"));
        assert_true(fires(rig, "unavailable=1", "1 handler unavailable"));
        assert_true(fires(rig, "quarantined@bad=1", ""));
        assert_true(fires(rig, "refused=1", ""));
        assert_false(fires(rig, "refused@mail=1", ""));
        assert_false(fires(rig, "versions=2", ""));
        add(rig, 0xcc, 0, "{\"version\":\"1.0\"}");
        assert_true(fires(rig, "versions=2", ""));
}

static void a_condition_that_there_is_not_is_refused_with_those_that_there_are(void **state)
{
        static const char *const wrong[] = { "", "=", "@", "dead", "dead=", "dead=0", "dead=-1", "dead=1x",
                "dead=99999999999999999999", "oldest=5", "oldest=0s", "dead@=1", "dead@a b=1", "parked@mail=1",
                "deadly=1", "dea=1", "queued=5" };
        (void)state;
        for (size_t i = 0; i < COUNT(wrong); i++) {
                struct alarm alarm;
                struct error error = { "" };
                assert_int_equal(alarm_parse(wrong[i], &alarm, &error), -EINVAL);
                assert_true(*error.text);
        }
        struct alarm alarm;
        struct error error = { "" };
        assert_int_equal(alarm_parse("queued=5", &alarm, &error), -EINVAL);
        assert_contains(error.text, "oldest, waiting, dead, parked, held, hosts, unowned");
        assert_int_equal(alarm_parse("held@mail=5", &alarm, &error), -EINVAL);
        assert_contains(error.text, "of a handler there is oldest, waiting, dead, unavailable");
}

/* --- on a screen, in a pipe --- */

static void a_pipe_gets_all_of_it(void **state)
{
        struct rig *rig = *state;
        char document[4096] = "{\"name\":\"a\",\"handlers\":[{}";
        for (int i = 0; i < 30; i++)
                (void)snprintf(
                        document + strlen(document), sizeof(document) - strlen(document), ",{\"name\":\"h%d\"}", i);
        add(rig, 0xaa, 0, strcat(document, "]}"));
        rig->is_pipe = true;
        assert_contains(text_of(rig), "\nh29 ");
        assert_null(strstr(text_of(rig), "more"));
        assert_null(strstr(text_of(rig), "\033"));
}

static void colours_are_for_what_someone_should_look_at(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 0,
                "{\"handlers\":[{\"name\":\"m\",\"state\":\"quarantined\"},{\"name\":\"n\",\"state\":\"open\"}]}");
        struct buffer text = { 0 };
        status_as_text(&text, &rig->status, &(struct status_screen){ .has_color = true });
        assert_contains(buffer_text(&text), "\033[31mquarantined\033[0m");
        assert_null(strstr(buffer_text(&text), "mopen\033"));
        buffer_free(&text);
}

static void without_documents_the_leases_still_say_who_owns_what(void **state)
{
        struct rig *rig = *state;
        assert_contains(text_of(rig), "2 owned");
        assert_contains(text_of(rig), AA " epoch 7");
        assert_null(strstr(text_of(rig), "none is running"));
        rig->counts[0].left_ms = rig->counts[1].left_ms = 0;
        status_free(&rig->status);
        status_init(&rig->status, &info, "", rig->counts);
        assert_contains(text_of(rig), "none is running");
}

static void who_holds_a_shard_does_not_stand_by(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xaa, 0, "{\"name\":\"a\",\"state\":\"standby\"}");
        add(rig, 0xbb, 0, "{\"name\":\"b\",\"state\":\"standby\"}");
        assert_contains(text_of(rig), "host      a, running, 2 shards, ");
        assert_contains(text_of(rig), "host      b, standby, 0 shards, ");
}

static void a_lease_that_ran_out_counts_for_nobody(void **state)
{
        struct rig *rig = *state;
        add(rig, 0xbb, 0, "{\"name\":\"b\",\"shards\":1}");
        assert_contains(text_of(rig), "host      b, 0 shards, ");
        assert_contains(text_of(rig), "b epoch 7 (expired)\n");
}

static void a_screen_holds_the_fullest_shards_and_the_first_handlers(void **state)
{
        struct rig *rig = *state;
        char document[4096] = "{\"name\":\"a\",\"handlers\":[{}";
        for (int i = 0; i < 30; i++)
                (void)snprintf(
                        document + strlen(document), sizeof(document) - strlen(document), ",{\"name\":\"h%d\"}", i);
        add(rig, 0xaa, 0, strcat(document, "]}"));
        for (uint32_t i = 0; i < SHARDS; i++)
                rig->counts[i].delayed = 1000 + i;
        assert_contains(text_of(rig), "\nh3 ");
        assert_null(strstr(text_of(rig), "\nh4 "));
        assert_contains(text_of(rig), "… and 26 more (--json has all)\n");
        const char *all = strstr(text_of(rig), "\nall ");
        assert_non_null(all);
        const char *second = strchr(all + 1, '\n');
        assert_true(!strncmp(second, "\n1 ", 3));
        assert_true(!strncmp(strchr(second + 1, '\n'), "\n2 ", 3));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_RIG(a_status_as_json_has_this_shape),
                WITH_RIG(a_status_as_text_has_this_shape),
                WITH_RIG(what_waits_in_the_store_is_counted_by_handler_in_a_sample),
                WITH_RIG(keys_that_wait_are_told_apart),
                WITH_RIG(counts_since_the_app_began_replace_those_of_hosts),
                WITH_RIG(the_dead_are_shown_by_kind_the_most_first),
                cmocka_unit_test(no_lane_has_more_parked_than_there_are),
                WITH_RIG(an_alarm_fires_from_its_limit_on),
                WITH_RIG(a_condition_that_there_is_not_is_refused_with_those_that_there_are),
                WITH_RIG(a_pipe_gets_all_of_it),
                WITH_RIG(colours_are_for_what_someone_should_look_at),
                WITH_RIG(without_documents_the_leases_still_say_who_owns_what),
                WITH_RIG(who_holds_a_shard_does_not_stand_by),
                WITH_RIG(a_lease_that_ran_out_counts_for_nobody),
                WITH_RIG(a_screen_holds_the_fullest_shards_and_the_first_handlers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
