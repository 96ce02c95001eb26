/* Looks (look/): what commands and HTTP ask a store, one request after the other, and where a list goes on. */
#include <stdlib.h>

#include "base/memory.h"
#include "call.h"
#include "harness.h"
#include "look/keys_look.h"
#include "look/records_look.h"
#include "look/status_look.h"
#include "look/task_look.h"
#include "look/tasks_look.h"

#define SEEN_MAX 512

struct seen {
        char ids[SEEN_MAX][TASK_ID_MAX + 1];
        unsigned count;
        unsigned room; /* it takes no more than that */
};

/* Takes the answer while it is there. */
static bool has_next;
static void take(struct world *w, struct store_request *request)
{
        (void)w;
        has_next = look_next(container_of(request, struct look, request));
}

static void start_look(struct store *store, struct look *look)
{
        look->start(store, look);
}

static void run(struct world *w, struct look *look)
{
        store_info(w->store, &look->info);
        has_next = look_next(look);
        while (has_next)
                assert_int_equal(CALL(w, start_look, look, take), 0);
}

static bool see(void *self, const struct store_listed *task, const json_t *where)
{
        struct seen *seen = self;
        (void)where;
        if (seen->room && seen->count == seen->room)
                return false;
        assert_true(seen->count < SEEN_MAX);
        (void)snprintf(seen->ids[seen->count++], TASK_ID_MAX + 1, "%.*s", (int)task->id.size, task->id.data);
        return true;
}

static struct tasks_look tasks(struct seen *seen, enum tasks_state state)
{
        struct tasks_look look = { .filter.state = state,
                .is_plain = state == SHOW_DEAD,
                .now_ms = 1,
                .shown_max = SEEN_MAX,
                .looked_max = 10000,
                .keys_max = 1000,
                .show = see,
                .self = seen };
        tasks_look_init(&look);
        return look;
}

/* 8 in each of several states, in several shards. */
static void fill(struct world *w)
{
        for (unsigned i = 0; i < 8; i++) {
                (void)submit(w, F(w, "queued%u", i).data, "x");
                (void)submit_delayed(w, F(w, "later%u", i).data, "x", 100000);
        }
        assert_int_equal(key_act(w, CONTROL_HOLD, "held"), 0);
}

static void a_list_goes_on_where_it_ended_whatever_the_step(void **state)
{
        struct world *w = *state;
        struct seen *whole = calloc(2, sizeof(*whole));
        struct seen *parts = whole + 1;
        fill(w);
        struct tasks_look look = tasks(whole, SHOW_ALL);
        run(w, &look.look);
        assert_int_equal(look.shown, 16);
        assert_int_equal(look.total, 16);
        assert_false(look.has_more);
        tasks_look_free(&look);
        for (unsigned step = 1; step <= 5; step++) {
                struct look_place place = { 0 };
                bool has_more = true;
                parts->count = 0;
                while (has_more) {
                        char text[LOOK_PLACE_TEXT];
                        look = tasks(parts, SHOW_ALL);
                        /* Through the text that a client sends back. */
                        assert_true(look_place_parse(look_place_text(text, &place), &look.place));
                        look.shown_max = step;
                        run(w, &look.look);
                        assert_true(look.shown <= step && look.looked <= look.total);
                        place = look.place;
                        has_more = look.has_more;
                        tasks_look_free(&look);
                }
                assert_int_equal(parts->count, whole->count);
                for (unsigned i = 0; i < whole->count; i++)
                        assert_string_equal(parts->ids[i], whole->ids[i]);
        }
        free(whole);
}

static void a_look_is_bounded_and_who_has_no_room_gets_it_next(void **state)
{
        struct world *w = *state;
        struct seen *seen = calloc(1, sizeof(*seen));
        fill(w);
        struct tasks_look look = tasks(seen, SHOW_ALL);
        look.looked_max = 7;
        run(w, &look.look);
        assert_true(look.has_more);
        assert_int_equal(look.looked, 7);
        struct look_place place = look.place;
        tasks_look_free(&look);
        look = tasks(seen, SHOW_ALL);
        look.place = place;
        seen->room = 10; /* 3 more */
        run(w, &look.look);
        assert_true(look.has_more);
        assert_int_equal(look.shown, 3);
        place = look.place;
        tasks_look_free(&look);
        look = tasks(seen, SHOW_ALL);
        look.place = place;
        seen->room = 0;
        run(w, &look.look);
        assert_false(look.has_more);
        assert_int_equal(seen->count, 16);
        tasks_look_free(&look);
        free(seen);
}

/* Whoever acts on what a list showed leaves alone what came later. */
static void what_died_since_is_not_in_the_list(void **state)
{
        struct world *w = *state;
        struct seen *seen = calloc(1, sizeof(*seen));
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 4; i++)
                (void)submit(w, F(w, "k%u", i).data, "x");
        struct store_advance a = claim(w, &o, 4);
        struct store_outcome first[] = { dead(&a.tasks[0], "rejected"), dead(&a.tasks[1], "rejected") };
        (void)advance(w, &o, first, 2, 0);
        world_step(w, 10);
        struct tasks_look look = tasks(seen, SHOW_DEAD);
        run(w, &look.look);
        assert_int_equal(look.shown, 2);
        uint64_t time_ms = look.time_ms;
        assert_int_equal(time_ms, counts(w, 0).time_ms);
        tasks_look_free(&look);
        struct store_outcome second[] = { dead(&a.tasks[2], "rejected"), dead(&a.tasks[3], "exhausted") };
        (void)advance(w, &o, second, 2, 0);
        look = tasks(seen, SHOW_DEAD);
        look.filter.before_ms = time_ms;
        run(w, &look.look);
        assert_int_equal(look.shown, 2);
        assert_int_equal(look.total, 4);
        tasks_look_free(&look);
        look = tasks(seen, SHOW_DEAD);
        look.filter.reason = "exhausted";
        run(w, &look.look);
        assert_int_equal(look.shown, 1);
        tasks_look_free(&look);
        free(seen);
}

static bool see_key(void *self, const struct store_key_info *key)
{
        unsigned *count = self;
        (void)key;
        (*count)++;
        return true;
}

static void keys_are_looked_at_in_steps_and_by_state(void **state)
{
        struct world *w = *state;
        unsigned count = 0;
        struct look_place place = { 0 };
        bool has_more = true;
        for (unsigned i = 0; i < 9; i++)
                assert_int_equal(key_act(w, CONTROL_HOLD, F(w, "k%u", i).data), 0);
        while (has_more) {
                struct keys_look look = { .state = "held",
                        .shown_max = 2,
                        .looked_max = 100,
                        .show = see_key,
                        .self = &count,
                        .place = place };
                keys_look_init(&look);
                run(w, &look.look);
                assert_int_equal(look.total, 9);
                place = look.place;
                has_more = look.has_more;
                keys_look_free(&look);
        }
        assert_int_equal(count, 9);
        struct keys_look look = {
                .state = "parked", .shown_max = 2, .looked_max = 100, .show = see_key, .self = &count
        };
        keys_look_init(&look);
        run(w, &look.look);
        assert_int_equal(look.shown, 0);
        keys_look_free(&look);
}

static void one_task_and_one_key_are_told_with_what_they_wait_for(void **state)
{
        struct world *w = *state;
        assert_int_equal(key_act(w, CONTROL_HOLD, "k"), 0);
        struct span id = submit(w, "k", "x");
        struct task_look task = { 0 };
        task_look_init(&task, id);
        run(w, &task.look);
        assert_true(task.found.is_there);
        json_t *o = task_look_as_json(&task);
        assert_string_equal(json_string_value(json_object_get(o, "state")), "held");
        json_decref(o);
        task_look_free(&task);
        struct key_look key = { 0 };
        key_look_init(&key, T("k"));
        run(w, &key.look);
        o = key_look_as_json(&key);
        assert_string_equal(json_string_value(json_object_get(o, "state")), "held");
        json_decref(o);
        key_look_free(&key);
}

static void a_place_is_read_only_as_it_is_written(void **state)
{
        static const char *const bad[] = { "", "0", "0.0.0.0", "0.0.0.0.0.0", " 0.0.0.0.0", "0.0.0.0.0 ", "+1.0.0.0.0",
                "-1.0.0.0.0", "01.0.0.0.0", "4294967296.0.0.0.0", "0.0.9007199254740992.0.0",
                "0.0.0.18446744073709551616.0", "a.b.c.d.e" };
        struct look_place place;
        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_false(look_place_parse(bad[i], &place));
        assert_true(look_place_parse("7.4.9007199254740991.3.4294967295", &place));
        assert_int_equal(place.shard, 7);
        assert_int_equal(place.skip, UINT32_MAX);
}

const struct CMUnitTest look_tests[] = {
        IN_WORLD_4(a_list_goes_on_where_it_ended_whatever_the_step),
        IN_WORLD_4(a_look_is_bounded_and_who_has_no_room_gets_it_next),
        IN_WORLD(what_died_since_is_not_in_the_list),
        IN_WORLD_4(keys_are_looked_at_in_steps_and_by_state),
        IN_WORLD_4(one_task_and_one_key_are_told_with_what_they_wait_for),
        IN_WORLD(a_place_is_read_only_as_it_is_written),
};
GROUP(look);
