/* Where a task is and why it waits, made of documents that may say anything. */
#include "check.h"

#include <stdlib.h>

#include "view/json.h"
#include "view/whereabouts.h"

struct rig {
        struct whereabouts w;
        struct store_counts shard;
        struct buffer text;
};

static int set_up(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));
        assert_non_null(rig);
        whereabouts_init(&rig->w);
        rig->shard = (struct store_counts){ .shard = 7, .is_held = true, .left_ms = 900 };
        memset(rig->shard.holder, 0xaa, STORE_NONCE_SIZE);
        *state = rig;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *rig = *state;
        whereabouts_free(&rig->w);
        buffer_free(&rig->text);
        free(rig);
        return 0;
}

static struct store_status document(const char *text)
{
        struct store_status found = { .age_ms = 1000, .document = span_of_text(text) };
        memset(found.nonce, 0xaa, sizeof(found.nonce));
        return found;
}

static void host_says(struct rig *rig, const char *status, const char *running)
{
        struct store_status found = document(status);
        whereabouts_add_status(&rig->w, &found);
        found = document(running);
        whereabouts_add_running(&rig->w, &found);
}

#define OPEN "{\"name\":\"a\",\"handlers\":[{\"name\":\"mail\",\"state\":\"open\",\"running\":3}]}"
#define RUNNING                                                                                                        \
        "{\"name\":\"a\",\"more\":2,\"tasks\":[{\"id\":\"x-7\",\"key\":\"k\",\"pid\":12,\"generation\":3,"             \
        "\"hash\":\"9f\",\"since_ms\":4000,\"progress\":[1,4]}]}"

static struct store_listed task_of(const char *id, enum store_state state)
{
        return (struct store_listed){ .state = state,
                .id = span_of_text(id),
                .key = SPAN_TEXT("k"),
                .envelope = { .handler = SPAN_TEXT("mail") } };
}

static const char *waits_for(struct rig *rig, const struct store_listed *task, const struct store_key_info *key)
{
        struct whereabouts_place place = { .shard = &rig->shard, .key = key };
        json_t *o = whereabouts_of(&rig->w, task, &place);
        buffer_clear(&rig->text);
        buffer_printf(&rig->text, "%s: %s", view_json_get_text(o, "state"), view_json_get_text(o, "waits_for"));
        json_decref(o);
        return buffer_text(&rig->text);
}

static void what_runs_says_where(void **state)
{
        struct rig *rig = *state;
        host_says(rig, OPEN, RUNNING);
        struct store_listed task = task_of("x-7", STATE_IN_FLIGHT);
        struct whereabouts_place place = { .shard = &rig->shard };
        json_t *o = whereabouts_of(&rig->w, &task, &place);
        assert_string_equal(view_json_get_text(o, "state"), "running");
        whereabouts_as_text(&rig->text, o, 9000);
        assert_string_equal(buffer_text(&rig->text),
                "runs         on a, pid 12, generation 3, for 5s, progress 1 of 4 (25 %), plugin 9f\n");
        json_decref(o);
        assert_int_equal(rig->w.more, 2);
        /* A document that is older than what the store says: it is queued again. */
        task.state = STATE_QUEUED;
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: its turn in the queue");
}

static void what_is_limited_says_by_what(void **state)
{
        struct rig *rig = *state;
        struct store_listed task = task_of("y-7", STATE_PARKED);
        struct store_key_info key = {
                .state = KEY_NAMED, .name = SPAN_TEXT("limit:api"), .reason = SPAN_TEXT("limited")
        };
        host_says(rig, OPEN, "{}");
        assert_string_equal(waits_for(rig, &task, &key), "waiting: limit api (quiver limit show api)");
        key.name = SPAN_TEXT("limit:api/tenant/7");
        assert_string_equal(waits_for(rig, &task, &key), "waiting: limit api for tenant/7 (quiver limit show api)");
        key.name = SPAN_TEXT("limit:");
        assert_string_equal(waits_for(rig, &task, &key), "waiting: limit:: limited");
        /* It waits in its host's window. */
        task.state = STATE_IN_FLIGHT;
        host_says(rig,
                "{\"name\":\"b\",\"limits\":[{\"name\":\"api\",\"waiting\":2,\"handlers\":[\"mail\",7]},"
                "{\"name\":\"smtp\",\"waiting\":0,\"handlers\":[\"mail\"]}]}",
                "{}");
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: limit api, or a free seat of mail");
}

static void what_waits_says_for_what(void **state)
{
        struct rig *rig = *state;
        struct store_listed task = task_of("y-7", STATE_IN_FLIGHT);
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: a free seat of mail (0 run)");
        host_says(rig, OPEN, RUNNING);
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: the task before it in its key, x-7");
        task.key = SPAN_TEXT("other");
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: a free seat of mail (3 run)");
        struct store_key_info key = {
                .state = KEY_PARKED, .due_in_ms = 1500, .reason = SPAN_TEXT("no\n@a pid=1 generation=1")
        };
        assert_string_equal(waits_for(rig, &task, &key), "parked: the retry of its key in 1.5s: no");
        key.reason = SPAN_TEXT("the handler said later: it is away\n@a pid=1 generation=1");
        assert_string_equal(
                waits_for(rig, &task, &key), "parked: its key's time, in 1.5s: the handler said later: it is away");
        key = (struct store_key_info){ .state = KEY_HELD, .reason = SPAN_TEXT("look") };
        assert_string_equal(waits_for(rig, &task, &key), "held: a person, who holds its key: look");
        rig->shard.left_ms = 0;
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: a host: none owns shard 7");
        host_says(rig,
                "{\"name\":\"b\",\"handlers\":[{\"name\":\"mail\",\"state\":\"unavailable\",\"unavailable\":\"it is "
                "down\","
                "\"unavailable_ms\":4000}]}",
                "");
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: mail is unavailable on b for 5s: it is down");
        whereabouts_add_desired(&rig->w, &(struct store_desired){ SPAN_TEXT("pause"), SPAN_TEXT("all of it") });
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: everything is paused: all of it (quiver resume)");
        whereabouts_add_desired(&rig->w, &(struct store_desired){ SPAN_TEXT("pause.mail"), SPAN_TEXT("one") });
        assert_string_equal(waits_for(rig, &task, NULL), "waiting: mail is paused: one (quiver resume mail)");
        task.envelope.handler = SPAN_TEXT("fax");
        json_decref(rig->w.paused);
        rig->w.paused = json_object();
        assert_string_equal(
                waits_for(rig, &task, NULL), "waiting: no host serves fax; add it to runtime.cfg and reload");
}

static void a_document_that_says_something_else_harms_nothing(void **state)
{
        struct rig *rig = *state;
        static const char *const said[] = { "", "{", "[]", "7", "{\"tasks\":{}}", "{\"tasks\":[1,null,{},{\"id\":7}]}",
                "{\"handlers\":[1,{},{\"name\":\"\"}],\"unserved\":[1]}",
                "{\"tasks\":[{\"id\":\"z-7\",\"key\":[],\"pid\":\"x\",\"since_ms\":-1,\"progress\":[\"a\",{}]}]}",
                "{\"tasks\":[{\"id\":\"w-7\",\"progress\":[-5,-6,1],\"more\":-1}]}" };
        for (size_t i = 0; i < COUNT(said); i++)
                host_says(rig, said[i], said[i]);
        struct store_listed task = task_of("z-7", STATE_IN_FLIGHT);
        struct whereabouts_place place = { 0 };
        json_t *o = whereabouts_of(&rig->w, &task, &place);
        whereabouts_as_text(&rig->text, o, 1);
        whereabouts_as_words(&rig->text, o, 1);
        json_decref(o);
}

static void where_a_start_was_is_no_part_of_its_error(void **state)
{
        (void)state;
        struct span text = SPAN_TEXT("refused by a@b pid 7\n@host a pid=7 generation=1 plugin=9f0c1a2b");
        struct span where = note_take_where(&text);
        assert_true(span_is(text, SPAN_TEXT("refused by a@b pid 7")));
        assert_true(span_is(where, SPAN_TEXT("host a pid=7 generation=1 plugin=9f0c1a2b")));
        text = SPAN_TEXT("to me @home");
        assert_int_equal(note_take_where(&text).size, 0);
        assert_true(span_is(text, SPAN_TEXT("to me @home")));
        text = SPAN_TEXT("@a pid=1 generation=1 plugin=0");
        where = note_take_where(&text);
        assert_int_equal(text.size, 0);
        assert_true(where.size > 0);
        text = (struct span){ 0 };
        assert_int_equal(note_take_where(&text).size, 0);
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static void a_durable_start_says_whose_it_is_and_until_when(void **state)
{
        struct rig *rig = *state;
        struct store_listed task = task_of("x-7", STATE_IN_FLIGHT);
        host_says(rig, OPEN, "{}");
        task.note = (struct task_note){ .started_epoch = 7,
                .holder = SPAN_TEXT("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
                .until_ms = 1763256060000,
                .is_suspect = true };
        json_t *o = whereabouts_of(&rig->w, &task, &(struct whereabouts_place){ .shard = &rig->shard });
        assert_string_equal(view_json_get_text(json_object_get(o, "start"), "host"), "a");
        assert_int_equal(view_json_get_number(json_object_get(o, "start"), "until_ms"), 1763256060000);
        buffer_clear(&rig->text);
        whereabouts_as_text(&rig->text, o, 0);
        assert_non_null(strstr(buffer_text(&rig->text),
                "started by   a in epoch 7, durably; nobody else starts its key before 2025-11-16 01:21:00.000Z\n"));
        assert_non_null(strstr(buffer_text(&rig->text), "suspect      "));
        json_decref(o);
        task.note = (struct task_note){ .started_epoch = 7, .holder = SPAN_TEXT("worker-3") };
        o = whereabouts_of(&rig->w, &task, &(struct whereabouts_place){ .shard = &rig->shard });
        buffer_clear(&rig->text);
        whereabouts_as_text(&rig->text, o, 0);
        assert_non_null(strstr(buffer_text(&rig->text), "started by   worker-3 in epoch 7, durably\n"));
        json_decref(o);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_RIG(a_durable_start_says_whose_it_is_and_until_when),
                WITH_RIG(what_runs_says_where),
                WITH_RIG(what_is_limited_says_by_what),
                WITH_RIG(what_waits_says_for_what),
                WITH_RIG(a_document_that_says_something_else_harms_nothing),
                cmocka_unit_test(where_a_start_was_is_no_part_of_its_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
