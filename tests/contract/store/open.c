/* Opening and closing, what is recorded, the doorbell. */
#include "harness.h"

static void the_number_of_shards_is_authoritative(void **state)
{
        struct world *w = *state;
        struct error error;
        struct store_info info;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .shards = 8 }, &error), -EINVAL);
        assert_non_null(strstr(error.text, "4 shards"));
        assert_non_null(strstr(error.text, "8 were asked for"));
        assert_null(w->store);
        assert_int_equal(world_open(w, (struct store_options){ .shards = 0 }, NULL), 0);
        store_info(w->store, &info);
        assert_int_equal(info.shards, 4);
        assert_string_equal(info.app, "test");
        assert_string_equal(info.driver, driver->name);
}

static void the_coordination_is_recorded_once(void **state)
{
        struct world *w = *state;
        struct error error;
        struct store_info info;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .coordination = "local:a" }, NULL), 0);
        store_info(w->store, &info);
        assert_string_equal(info.coordination, "local:a");
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .coordination = "zookeeper://b" }, &error), -EINVAL);
        assert_non_null(strstr(error.text, "local:a"));
        assert_non_null(strstr(error.text, "zookeeper://b"));
        assert_int_equal(world_open(w, (struct store_options){ .coordination = "local:a" }, NULL), 0);
}

/* A list of servers may be written in another order, grow, shrink, and in the end be another. */
static void a_coordination_with_a_server_in_common_is_the_same(void **state)
{
        struct world *w = *state;
        struct error error;
        struct store_info info;
        static const char *const same[] = { "zookeeper://a,b,c/q", "zookeeper://c:2181,a,B/q", "zookeeper://a,b,c,d/q",
                "zookeeper://b,d/q", "zookeeper://d,e/q", "zookeeper://e/q" };
        static const char *const others[] = { "zookeeper://a,b,c/q", "zookeeper://e:2182/q", "zookeeper://e/other",
                "redis://e", "local:e" };
        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
                world_close(w);
                assert_int_equal(world_open(w, (struct store_options){ .coordination = same[i] }, NULL), 0);
                store_info(w->store, &info);
                assert_string_equal(info.coordination, same[i]);
        }
        world_close(w);
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
                assert_int_equal(world_open(w, (struct store_options){ .coordination = others[i] }, &error), -EINVAL);
                assert_non_null(strstr(error.text, same[5]));
                assert_non_null(strstr(error.text, others[i]));
        }
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
}

static void another_app_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        world_close(w);
        int r = world_open(w, (struct store_options){ .app = "other" }, &error);
        assert_int_equal(r, driver->has_many_apps ? -ENOENT : -EINVAL);
        assert_non_null(strstr(error.text, driver->has_many_apps ? "\"other\"" : "\"test\""));
        assert_int_equal(world_open(w, (struct store_options){ .app = "BAD" }, NULL), -EINVAL);
        assert_int_equal(world_open(w, (struct store_options){ .app = "test" }, NULL), 0);
}

static void only_who_may_create_creates(void **state)
{
        struct world *w = *state;
        world_close(w);
        void *empty = driver->create();
        void *place = w->place;
        w->place = empty;
        assert_int_equal(world_open(w, (struct store_options){ .shards = 4 }, NULL), -ENOENT);
        w->place = place;
        driver->destroy(empty);
        assert_int_equal(world_open(w, (struct store_options){ .shards = 0 }, NULL), 0);
}

static unsigned cancelled;
static unsigned others;

static void count_status(struct store_request *request)
{
        if (request->status == -ECANCELED)
                cancelled++;
        else
                others++;
}

static void closing_ends_every_request_exactly_once(void **state)
{
        struct world *w = *state;
        enum { COUNT = 50 };
        struct store_submission items[COUNT];
        struct store_submit submits[COUNT];
        struct store_reply waiting = { .request = { .done = count_status }, .id = T("x-0"), .wait_ms = 60000 };
        cancelled = others = 0;
        store_reply(w->store, &waiting);
        for (unsigned i = 0; i < COUNT; i++) {
                items[i] = (struct store_submission){ .envelope = {
                                                              .key = T("k"), .handler = T("h"), .lane = LANE_NORMAL } };
                submits[i] = (struct store_submit){
                        .request = { .done = count_status }, .items = &items[i], .items_count = 1
                };
                store_submit(w->store, &submits[i]);
        }
        assert_int_equal(cancelled + others, 0); /* never inside the starting call */
        world_close(w);
        assert_int_equal(cancelled, COUNT + 1);
        assert_int_equal(others, 0);
        assert_int_equal(world_open(w, (struct store_options){ .shards = 0 }, NULL), 0);
}

static void what_was_submitted_survives_a_reopen(void **state)
{
        struct world *w = *state;
        (void)submit(w, key_of(w, 0, 0).data, "1");
        world_reopen(w);
        struct owner o = own(w, 0, 1, 1);
        expect_tasks(w, claim(w, &o, 1), "1");
}

const struct CMUnitTest open_tests[] = {
        IN_WORLD_4(the_number_of_shards_is_authoritative),
        IN_WORLD(the_coordination_is_recorded_once),
        IN_WORLD(a_coordination_with_a_server_in_common_is_the_same),
        IN_WORLD(another_app_is_refused),
        IN_WORLD_4(only_who_may_create_creates),
        IN_WORLD(closing_ends_every_request_exactly_once),
        IN_WORLD_4(what_was_submitted_survives_a_reopen),
};
GROUP(open);

/* --- the doorbell ------------------------------------------------------------------------------------------------ */

static void a_submit_rings_the_owner(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 2, 1, 1); /* under the nonce that listens */
        (void)o;
        unsigned before = w->rang;
        (void)submit(w, key_of(w, 1, 0).data, "x"); /* nobody owns that one */
        (void)submit(w, key_of(w, 2, 0).data, "x");
        world_wait(w, &w->rang, before + 1);
        assert_int_equal(w->rang_shard, 2);
        assert_int_equal(w->rang, before + 1);
}

static void wants_controls_and_requeues_ring_too(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct owner b = owner_of(0, 2, 2);
        unsigned rang = w->rang;
        assert_int_equal(acquire(w, &b), 0);
        world_wait(w, &w->rang, ++rang);
        assert_int_equal(key_act(w, CONTROL_HOLD, key_of(w, 0, 0).data), 0);
        world_wait(w, &w->rang, ++rang);
        (void)submit_delayed(w, key_of(w, 0, 1).data, "x", 5000);
        world_wait(w, &w->rang, ++rang);
        (void)o;
}

static void a_release_rings_who_wants_it(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 3, 1, 2);
        struct owner b = owner_of(3, 2, 1); /* the nonce that listens */
        assert_int_equal(acquire(w, &b), 0);
        assert_int_equal(b.granted.grant, STORE_BUSY);
        unsigned before = w->rang;
        assert_int_equal(release(w, &a), STORE_OK);
        world_wait(w, &w->rang, before + 1);
        assert_int_equal(w->rang_shard, 3);
}

static void a_changed_desired_state_rings_everybody(void **state)
{
        struct world *w = *state;
        (void)desired_set(w, "pause", "yes");
        world_wait(w, &w->rang_desired, 1);
}

static void on_reply(struct store_request *request)
{
        (void)request;
        others++;
}

static void a_reply_wakes_who_waits(void **state)
{
        struct world *w = *state;
        struct span name = key_of(w, 0, 0);
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit_reply(w, name.data, "x");
        struct store_reply waiting = { .request = { .done = on_reply }, .id = id, .wait_ms = 60000 };
        others = 0;
        store_reply(w->store, &waiting);
        struct store_advance a = claim(w, &o, 1);
        assert_int_equal(others, 0);
        (void)settle(w, &o, done(&a.tasks[0]));
        world_wait(w, &others, 1);
        assert_int_equal(waiting.request.status, 0);
        assert_int_equal(waiting.state, REPLY_DONE);
        assert_false(waiting.has_data);
}

const struct CMUnitTest bell_tests[] = {
        IN_WORLD_4(a_submit_rings_the_owner),
        IN_WORLD_4(wants_controls_and_requeues_ring_too),
        IN_WORLD_4(a_release_rings_who_wants_it),
        IN_WORLD_4(a_changed_desired_state_rings_everybody),
        IN_WORLD_4(a_reply_wakes_who_waits),
};
GROUP(bell);
