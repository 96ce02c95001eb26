/* The hosts of an app, as the coordination tree has them, and what stands in it that no host of ours wrote. */
#include "check.h"

#include <stdlib.h>

#include "view/app.h"
#include "view/json.h"
#include "view/members.h"

#define AA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BB "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define MEMBER_A                                                                                                       \
        "quiver-member 1\nname a\nnonce " AA "\nweight 1\nstate active\nsees_store yes\nhandler mail 1.2\n"            \
        "handler echo -\nfeature limits\nload 1490\nbusy 2 900\n"
#define MEMBER_B "quiver-member 1\nname b\nnonce " BB "\nweight 3\nstate draining\nsees_store no\nstale 7 99\n"
#define ASSIGN                                                                                                         \
        "quiver-assign 1\ngeneration 100\nshards 4\nowner 0 " AA " a\nowner 1 " BB " b\nslots\n"                       \
        "0-2 0 100 patient\n3 1 99 firm\n"
#define MOVES "quiver-moves 1\n1763256000000 0 - " AA ":a 99 join\n1763256000001 3 " AA ":a " BB ":b 100 crash\n"

struct rig {
        struct membership_view view;
        struct buffer text;
};

static int set_up(void **state)
{
        *state = calloc(1, sizeof(struct rig));
        return *state ? 0 : -1;
}

static int tear_down(void **state)
{
        struct rig *rig = *state;
        membership_view_free(&rig->view);
        buffer_free(&rig->text);
        free(rig);
        return 0;
}

static void fill(struct rig *rig)
{
        static const char *const election[] = { "stray", BB "-0000000002", AA "-0000000001" };
        membership_view_add_member(&rig->view, "a." AA, SPAN_TEXT(MEMBER_A));
        membership_view_add_member(&rig->view, "b." BB, SPAN_TEXT(MEMBER_B));
        membership_view_set_leader(&rig->view, election, COUNT(election));
        membership_view_set_assignment(&rig->view, SPAN_TEXT(ASSIGN));
        membership_view_set_moves(&rig->view, SPAN_TEXT(MOVES));
}

static const char *text_of(struct rig *rig, uint32_t moves)
{
        buffer_clear(&rig->text);
        membership_as_text(&rig->text, &rig->view, &(struct membership_screen){ .moves_max = moves, .now_ms = 65000 });
        return buffer_text(&rig->text);
}

static void assert_json(json_t *json, const char *expected)
{
        char *text = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);
        assert_non_null(text);
        assert_string_equal(text, expected);
        free(text);
        json_decref(json);
}

static void members_as_json_have_this_shape(void **state)
{
        struct rig *rig = *state;
        fill(rig);
        assert_json(membership_as_json(&rig->view),
                "{\"members\":[{\"node\":\"a." AA "\",\"state\":\"active\",\"name\":\"a\",\"nonce\":\"" AA "\","
                "\"weight\":1,\"shards\":3,\"leader\":true,\"sees_store\":true,\"load\":1490,"
                "\"busy\":[{\"shard\":2,\"load\":900}],\"handlers\":{\"mail\":\"1.2\","
                "\"echo\":\"\"},\"features\":[\"limits\"]},"
                "{\"node\":\"b." BB "\",\"state\":\"draining\",\"name\":\"b\",\"nonce\":\"" BB "\",\"weight\":3,"
                "\"shards\":1,\"leader\":false,\"sees_store\":false,\"handlers\":{},\"features\":[]}],"
                "\"generation\":100,\"shards\":4,\"moves\":["
                "{\"at_ms\":1763256000000,\"shard\":0,\"from\":\"\",\"to\":\"a\",\"epoch\":99,\"reason\":\"join\"},"
                "{\"at_ms\":1763256000001,\"shard\":3,\"from\":\"a\",\"to\":\"b\",\"epoch\":100,\"reason\":\"crash\"}]"
                "}");
}

/* A member that cannot be read may lack anything. */
static void whoever_lacks_a_feature_is_named(void **state)
{
        struct rig *rig = *state;
        static const char *const asked[] = { "limits", "rooms" };
        fill(rig);
        membership_view_add_member(&rig->view, "c.00", SPAN_TEXT("what"));
        assert_int_equal(app_put_lacking(&rig->text, &rig->view, asked, 1), 2);
        assert_non_null(strstr(buffer_text(&rig->text), "host b does not know limits\nmember c.00 cannot be read"));
        rig->text.size = 0;
        assert_int_equal(app_put_lacking(&rig->text, &rig->view, asked, 2), 4);
        assert_non_null(strstr(buffer_text(&rig->text), "host a does not know rooms\n"));
}

static void an_app_as_json_has_this_shape(void **state)
{
        (void)state;
        static struct store_app record = { .schema = 4,
                .shards = 64,
                .ids = { .time_bits = 41, .slot_bits = 10, .sequence_bits = 12, .epoch_ms = 1288834974657 },
                .features_count = 1 };
        (void)snprintf(record.features[0], sizeof(record.features[0]), "teleport");
        struct app_view view = { .app = "demo", .driver = "sqlite", .coordination = "local:/x", .record = &record };
        json_t *json = app_as_json(&view);
        (void)json_array_clear(json_object_get(json, "features"));
        assert_json(json,
                "{\"app\":\"demo\",\"store\":\"sqlite\",\"schema\":4,\"shards\":64,\"coordination\":\"local:/x\","
                "\"max_members\":0,\"id_layout\":{\"kind\":\"snowflake\",\"time_bits\":41,\"slot_bits\":10,\"sequence_"
                "bits\":12,\"epoch_ms\":1288834974657},"
                "\"features\":[]}");
        struct buffer text = { 0 };
        app_as_text(&text, &view);
        assert_non_null(strstr(buffer_text(&text), "teleport    on    (not known to this Quiver)"));
        assert_non_null(strstr(buffer_text(&text), "switch it on: quiver app upgrade limits"));
        buffer_free(&text);
}

static void members_as_text_have_this_shape(void **state)
{
        struct rig *rig = *state;
        fill(rig);
        struct store_status said = { .document = SPAN_TEXT(
                                             "{\"name\":\"a\",\"pid\":77,\"machine\":\"web\",\"version\":\"0.9\","
                                             "\"started_ms\":5000,\"seats\":8}") };
        memset(said.nonce, 0xaa, sizeof(said.nonce));
        membership_view_add_document(&rig->view, &said);
        assert_string_equal(text_of(rig, 10),
                "member  nonce     state     weight  shards  seats  load  pid  machine  version  up\n"
                "a       aaaaaaaa  active         1       3      8   1.5   77  web      0.9      1m  leads\n"
                "b       bbbbbbbb  draining       3       1      -     -    -  -        -         -  does not reach "
                "the "
                "store, "
                "waits for higher epochs\n"
                "\n"
                "4 shards assigned, generation 100\n"
                "\n"
                "moved                    shard  from                 to                   reason    epoch\n"
                "2025-11-16 01:20:00.000Z     0  -                    a                    join      99\n"
                "2025-11-16 01:20:00.001Z     3  a                    b                    crash     100\n");
        assert_null(strstr(text_of(rig, 1), "join"));
        assert_contains(text_of(rig, 1), "crash     100\n");
}

static void an_empty_tree_says_that_no_host_runs(void **state)
{
        struct rig *rig = *state;
        membership_view_set_leader(&rig->view, NULL, 0);
        assert_contains(text_of(rig, 10), "(none: no host runs)\n");
        assert_json(membership_as_json(&rig->view), "{\"members\":[],\"generation\":0,\"shards\":0,\"moves\":[]}");
}

static void a_foreign_member_is_shown_with_the_reason(void **state)
{
        struct rig *rig = *state;
        char node[300];
        memset(node, 'n', sizeof(node));
        node[sizeof(node) - 1] = 0;
        membership_view_add_member(&rig->view, "new.00", SPAN_TEXT("quiver-member 99\nshape round\n"));
        membership_view_add_member(&rig->view, "\033c\xff", SPAN_TEXT("\0\xff\033"));
        membership_view_add_member(&rig->view, node, (struct span){ 0 });
        const char *text = text_of(rig, 10);
        assert_contains(text,
                "new.00                    -      foreign       -       -      -     -    -  -        -        "
                " -  member document: format 99");
        assert_contains(text, "\\x1bc\\xff                 -      foreign ");
        for (const char *at = text; *at; at++)
                assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
        json_t *json = membership_as_json(&rig->view);
        json_t *members = json_object_get(json, "members");
        assert_int_equal(json_array_size(members), 3);
        assert_string_equal(view_json_get_text(json_array_get(members, 1), "node"), "\\x1bc\\xff");
        for (size_t i = 0; i < 3; i++) {
                assert_string_equal(view_json_get_text(json_array_get(members, i), "state"), "foreign");
                assert_true(*view_json_get_text(json_array_get(members, i), "problem"));
        }
        json_decref(json);
}

static void an_assignment_that_cannot_be_read_is_said(void **state)
{
        struct rig *rig = *state;
        fill(rig);
        membership_view_set_assignment(&rig->view, SPAN_TEXT("quiver-assign 7\n"));
        assert_contains(text_of(rig, 10), "\nassignment: ");
        assert_contains(text_of(rig, 10),
                "a       aaaaaaaa  active         1       0      -   1.5    -  -        -         -  leads\n");
        membership_view_set_assignment(&rig->view, SPAN_TEXT(ASSIGN));
        assert_null(strstr(text_of(rig, 10), "\nassignment: "));
        membership_view_set_moves(&rig->view, SPAN_TEXT("quiver-moves 1\nx\n"));
        assert_null(strstr(text_of(rig, 10), "moved"));
}

static void only_the_first_in_line_leads(void **state)
{
        struct rig *rig = *state;
        static const char *const odd[] = { "", "-", "x-", "no number" };
        char node[200];
        fill(rig);
        membership_view_set_leader(&rig->view, odd, COUNT(odd));
        assert_null(strstr(text_of(rig, 0), "leads"));
        memset(node, 'f', sizeof(node));
        memcpy(node + sizeof(node) - 3, "-1", 3);
        membership_view_set_leader(&rig->view, (const char *const[]){ node, BB "-2" }, 2);
        assert_null(strstr(text_of(rig, 0), "leads"));
        membership_view_set_leader(&rig->view, (const char *const[]){ AA "-3", BB "-2" }, 2);
        assert_contains(text_of(rig, 0),
                "bbbbbbbb  draining       3       1      -     -    -  -        -         -  leads, "
                "does not reach the store");
}

/* Cut anywhere; run with sanitizers, this sees reads past the end. */
static void a_document_that_was_cut_harms_nothing(void **state)
{
        struct rig *rig = *state;
        static const struct span whole[] = { SPAN_TEXT(MEMBER_A), SPAN_TEXT(MEMBER_B), SPAN_TEXT(ASSIGN),
                SPAN_TEXT(MOVES) };
        for (size_t i = 0; i < COUNT(whole); i++) {
                for (size_t size = 0; size < whole[i].size; size++) {
                        char *part = malloc(size + !size);
                        assert_non_null(part);
                        memcpy(part, whole[i].data, size);
                        membership_view_add_member(&rig->view, "n", (struct span){ part, size });
                        membership_view_set_assignment(&rig->view, (struct span){ part, size });
                        membership_view_set_moves(&rig->view, (struct span){ part, size });
                        free(part);
                }
                assert_true(strlen(text_of(rig, 10)) > 0);
                json_decref(membership_as_json(&rig->view));
                membership_view_free(&rig->view);
        }
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_RIG(members_as_json_have_this_shape),
                WITH_RIG(whoever_lacks_a_feature_is_named),
                WITH_RIG(an_app_as_json_has_this_shape),
                WITH_RIG(members_as_text_have_this_shape),
                WITH_RIG(an_empty_tree_says_that_no_host_runs),
                WITH_RIG(a_foreign_member_is_shown_with_the_reason),
                WITH_RIG(an_assignment_that_cannot_be_read_is_said),
                WITH_RIG(only_the_first_in_line_leads),
                WITH_RIG(a_document_that_was_cut_harms_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
