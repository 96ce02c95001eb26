/* What is made of a store's counts and of the documents that hosts write about themselves, whatever these say. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "store/app.h"
#include "view/alarm.h"
#include "view/json.h"
#include "view/status.h"

#define SHARDS 4u
#define LINES  24u

static const struct store_info info = { .driver = "sqlite",
        .app = "shop",
        .coordination = "local:/run/q",
        .durability = "all of it",
        .refuses = "",
        .shards = SHARDS };

struct rig {
        struct store_counts counts[SHARDS];
        struct status status;
        struct buffer text;
        bool is_pipe; /* then there is no end of the screen */
};

/* Shard 0 is quiet and owned by host 0xaa, 1 is busy and owned by it, 2 was owned by 0xbb, 3 is nobody's. */
static int set_up(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));
        assert_non_null(rig);
        for (uint32_t i = 0; i < SHARDS; i++)
                rig->counts[i].shard = i;
        rig->counts[0].is_held = rig->counts[1].is_held = rig->counts[2].is_held = true;
        rig->counts[0].left_ms = rig->counts[1].left_ms = 900;
        rig->counts[0].epoch = rig->counts[1].epoch = rig->counts[2].epoch = 7;
        memset(rig->counts[0].holder, 0xaa, STORE_NONCE_SIZE);
        memset(rig->counts[1].holder, 0xaa, STORE_NONCE_SIZE);
        memset(rig->counts[2].holder, 0xbb, STORE_NONCE_SIZE);
        rig->counts[1].queued[LANE_HIGH] = 1;
        rig->counts[1].queued[LANE_NORMAL] = 20;
        rig->counts[1].queued[LANE_LOW] = 300;
        rig->counts[1].in_flight = 4;
        rig->counts[1].oldest_ms = 1500;
        rig->counts[2].dead = 2;
        rig->counts[2].oldest_ms = 90;
        rig->counts[1].submitted = 1000;
        rig->counts[2].submitted = 10;
        rig->counts[1].done = 675;
        status_init(&rig->status, &info, "sqlite:/tmp/q.db", rig->counts);
        *state = rig;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *rig = *state;
        status_free(&rig->status);
        buffer_free(&rig->text);
        free(rig);
        return 0;
}

static void add_bytes(struct rig *rig, uint8_t nonce, uint64_t age_ms, const char *data, size_t size)
{
        struct store_status found = { .age_ms = age_ms, .document = { data, size } };
        memset(found.nonce, nonce, sizeof(found.nonce));
        status_add_document(&rig->status, &found);
}

static void add(struct rig *rig, uint8_t nonce, uint64_t age_ms, const char *document)
{
        add_bytes(rig, nonce, age_ms, document, strlen(document));
}

static void desire(struct rig *rig, struct span name, struct span value)
{
        status_add_desired(&rig->status, &(struct store_desired){ name, value });
}

static const json_t *handler(const struct rig *rig, size_t i)
{
        return json_array_get(rig->status.handlers, i);
}

static const char *text_of(struct rig *rig)
{
        buffer_clear(&rig->text);
        status_as_text(&rig->text, &rig->status, &(struct status_screen){ .lines = rig->is_pipe ? 0 : LINES });
        return buffer_text(&rig->text);
}

static void assert_json(json_t *json, const char *expected)
{
        char *text = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(5));
        assert_non_null(text);
        assert_string_equal(text, expected);
        free(text);
        json_decref(json);
}

/* --- all of it --- */

#define AA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BB "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define DOCUMENT                                                                                                       \
        "{\"name\":\"a\",\"state\":\"running\",\"weight\":2,\"pid\":77,\"version\":\"0.9\",\"machine\":\"web\","       \
        "\"started_ms\":5,\"seats\":8,\"running\":[[1,3],[2,5],[99,1],[-1,1],[1,-2],\"x\"],\"rates\":{\"done\":1.5,"   \
        "\"retried\":0.5,\"failed\":0.0},"                                                                             \
        "\"handlers\":[{\"name\":\"mail\",\"plugin\":\"mail.so\",\"version\":\"1.2\",\"generation\":3,"                \
        "\"state\":\"open\",\"waiting\":1,\"running\":4,\"done\":675,\"oldest_ms\":1000}],"                            \
        "\"unserved\":[\"fax\"],\"move_pending\":[1,3]}"

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
                "\"state\":\"open\",\"waiting\":1,\"running\":4,\"seats\":0,\"done\":675,\"retried\":0,\"later\":0,"
                "\"rejected\":0,"
                "\"crashed\":"
                "0,"
                "\"timed_out\":0,\"merged\":0,\"dead\":0,\"oldest_ms\":1250,\"done_rate\":0.0,\"failed_rate\":0.0,"
                "\"run_p50_ms\":0.0,\"run_p99_ms\":0.0}],\"dead\":[],"
                "\"totals\":{\"waiting\":322,\"running\":3,\"queued\":321,\"delayed\":0,\"in_flight\":4,\"parked\":0,"
                "\"dead\":2,\"queued_lanes\":{\"high\":1,\"normal\":20,\"low\":300},\"oldest_ms\":1500,"
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
                "\"running\":0,\"seats\":0,\"done\":0,\"retried\":0,\"later\":0,\"rejected\":0,\"crashed\":0,"
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

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_RIG(a_status_as_json_has_this_shape),
                WITH_RIG(a_status_as_text_has_this_shape),
                WITH_RIG(what_waits_in_the_store_is_counted_by_handler_in_a_sample),
                WITH_RIG(keys_that_wait_are_told_apart),
                WITH_RIG(counts_since_the_app_began_replace_those_of_hosts),
                WITH_RIG(the_dead_are_shown_by_kind_the_most_first),
                WITH_RIG(an_alarm_fires_from_its_limit_on),
                WITH_RIG(a_condition_that_there_is_not_is_refused_with_those_that_there_are),
                WITH_RIG(a_pipe_gets_all_of_it),
                WITH_RIG(colours_are_for_what_someone_should_look_at),
                WITH_RIG(without_documents_the_leases_still_say_who_owns_what),
                WITH_RIG(a_lease_that_ran_out_counts_for_nobody),
                WITH_RIG(a_screen_holds_the_fullest_shards_and_the_first_handlers),
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
