/* What is wrong with an app, in words: each kind of trouble is named once, the worst first, with what helps. */
#include "check.h"

#include <stdlib.h>

#include "view/json.h"
#include "view/problems.h"

#define SHARDS 2u

struct rig {
        struct store_info info;
        struct store_counts counts[SHARDS];
        struct status status;
};

/* A host owns both shards; nothing waits. */
static int set_up(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));
        assert_non_null(rig);
        rig->info = (struct store_info){
                .app = "shop", .coordination = "", .durability = "", .refuses = "", .shards = SHARDS
        };
        for (uint32_t i = 0; i < SHARDS; i++) {
                rig->counts[i] = (struct store_counts){ .shard = i, .is_held = true, .left_ms = 900 };
                memset(rig->counts[i].holder, 0xaa, STORE_NONCE_SIZE);
        }
        *state = rig;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *rig = *state;
        status_free(&rig->status);
        free(rig);
        return 0;
}

static void begin(struct rig *rig)
{
        status_init(&rig->status, &rig->info, "sqlite:/tmp/q.db", rig->counts);
}

static void add(struct rig *rig, const char *document)
{
        struct store_status found = { .document = { document, strlen(document) } };
        memset(found.nonce, 0xaa, sizeof(found.nonce));
        status_add_document(&rig->status, &found);
}

#define HOST(handlers) "{\"name\":\"a\",\"state\":\"running\",\"handlers\":[" handlers "]}"

/* The texts, a line each: LEVEL KIND TEXT [COMMAND]. */
static void assert_problems(struct rig *rig, const char *expected)
{
        struct buffer text = { 0 };
        json_t *found = problems_as_json(&rig->status);
        size_t i;
        const json_t *one;
        json_array_foreach(found, i, one)
        {
                buffer_printf(&text, "%s %s: %s [%s]\n", view_json_get_text(one, "level"),
                        view_json_get_text(one, "kind"), view_json_get_text(one, "text"),
                        view_json_get_text(one, "command"));
        }
        buffer_put(&text, "", 1);
        assert_string_equal((const char *)text.data, expected);
        json_decref(found);
        buffer_free(&text);
}

static void an_app_that_is_well_has_no_problem(void **state)
{
        begin(*state);
        add(*state, HOST("{\"name\":\"mail\",\"state\":\"open\",\"waiting\":5,\"oldest_ms\":59999}"));
        assert_problems(*state, "");
}

static void a_handler_that_is_down_comes_before_what_is_only_to_look_at(void **state)
{
        struct rig *rig = *state;
        rig->counts[0].dead = 2;
        begin(rig);
        add(rig, HOST("{\"name\":\"slow\",\"state\":\"open\",\"waiting\":1,\"oldest_ms\":60000},"
                      "{\"name\":\"mail\",\"state\":\"unavailable\",\"unavailable\":\"connect: "
                      "refused\",\"unavailable_ms\":240000,"
                      "\"waiting\":1204,\"oldest_ms\":230000}"));
        assert_problems(rig,
                "bad unavailable: mail is unavailable for 4 min: connect: refused. 1204 tasks wait for "
                "it, the oldest for "
                "3 min 50 s. "
                "[quiver pause mail]\n"
                "warn backlog: Tasks of slow wait for long. 1 task waits for it, the oldest for 1 min. [quiver tasks "
                "--handler slow]\n"
                "warn dead: 2 tasks are dead. [quiver dead list]\n");
}

static void a_pause_says_why_and_how_to_end_it(void **state)
{
        begin(*state);
        struct rig *rig = *state;
        status_add_desired(
                &rig->status, &(struct store_desired){ SPAN_TEXT("pause.mail"), SPAN_TEXT("provider is down") });
        add(rig, HOST("{\"name\":\"mail\",\"state\":\"paused\"}"));
        assert_problems(
                rig, "warn paused: mail is paused: provider is down. No task waits for it. [quiver resume mail]\n");
}

static void what_cannot_serve_is_bad(void **state)
{
        begin(*state);
        add(*state, HOST("{\"name\":\"a\",\"state\":\"quarantined\"},{\"name\":\"b\",\"state\":\"refused\",\"refused\":"
                         "\"abi 2.0\"}"));
        assert_problems(*state,
                "bad quarantined: a is quarantined: its runners crash again and again. No task waits for it. [quiver "
                "reload "
                "--wait]\n"
                "bad refused: The new version of b is refused: abi 2.0. No task waits for it. [quiver check]\n");
}

static void shards_without_an_owner_are_bad_if_something_waits_there(void **state)
{
        struct rig *rig = *state;
        rig->counts[1].left_ms = 0;
        begin(rig);
        add(rig, HOST(""));
        assert_problems(rig, "warn shards: 1 shard has no owner. 0 tasks wait there. [quiver members]\n");
        status_free(&rig->status);
        rig->counts[1].queued[LANE_NORMAL] = 3;
        begin(rig);
        add(rig, HOST(""));
        assert_problems(rig, "bad shards: 1 shard has no owner. 3 tasks wait there. [quiver members]\n");
}

static void an_app_without_a_host_says_so(void **state)
{
        struct rig *rig = *state;
        rig->counts[0].left_ms = rig->counts[1].left_ms = 0;
        rig->counts[0].queued[LANE_LOW] = 1;
        begin(rig);
        assert_problems(rig, "bad hosts: No host is running. 1 task waits. [quiver run]\n");
}

static void a_hostile_name_is_quoted_in_the_command(void **state)
{
        begin(*state);
        add(*state, HOST("{\"name\":\"$(rm x)\",\"state\":\"paused\"}"));
        assert_problems(*state, "warn paused: $(rm x) is paused. No task waits for it. [quiver resume '$(rm x)']\n");
}

static void versions_that_differ_are_named(void **state)
{
        begin(*state);
        add(*state, HOST("{\"name\":\"mail\",\"state\":\"open\",\"version\":\"1.0\"}"));
        add(*state, HOST("{\"name\":\"mail\",\"state\":\"open\",\"version\":\"1.1\"}"));
        assert_problems(*state, "warn versions: Hosts run different versions of mail. [quiver reload --all --wait]\n");
}

static void a_schedule_that_is_set_twice_and_an_older_configuration_are_named(void **state)
{
        struct rig *rig = *state;
        begin(rig);
        add(rig, "{\"name\":\"a\",\"state\":\"running\",\"handlers\":[],\"schedules\":{\"version\":7,\"in_force\":9,"
                 "\"count\":2,\"differ\":1,\"conflicts\":[\"nightly\",7]}}");
        assert_problems(rig,
                "bad schedule: Schedule nightly stands in the configuration of a and was set by command, too: the "
                "command's is used. Delete it and reload, or take it out of the file. [quiver schedule list]\n"
                "warn schedules: a has an older configuration with other schedules; those of the newer one are used. "
                "[quiver schedule list]\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(an_app_that_is_well_has_no_problem),
                TEST(a_schedule_that_is_set_twice_and_an_older_configuration_are_named),
                TEST(a_handler_that_is_down_comes_before_what_is_only_to_look_at),
                TEST(a_pause_says_why_and_how_to_end_it),
                TEST(what_cannot_serve_is_bad),
                TEST(shards_without_an_owner_are_bad_if_something_waits_there),
                TEST(an_app_without_a_host_says_so),
                TEST(a_hostile_name_is_quoted_in_the_command),
                TEST(versions_that_differ_are_named),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
