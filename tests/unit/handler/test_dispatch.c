/* Who gets the next seat: shards in turn, urgent ones first but with a share only, lanes by rank, suspects one by one
 * over all shards. */
#include "dispatch_rig.h"

static void where_one_fits_the_shards_give_in_turn(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from;
        for (uint32_t i = 0; i < SHARDS; i++)
                give_many(hall, i, i == 2 ? 1 : 2, "a");
        static const uint32_t expected[] = { 0, 1, 2, 3, 0, 1, 3 };
        for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
                assert_int_equal(turn_of(hall, A, 1, &from), 1);
                assert_int_equal(from, expected[i]);
        }
        assert_int_equal(turn_of(hall, A, 1, &from), 0);
        hall_close(hall);
}

static void where_many_fit_a_shard_gives_several_and_all_get_a_turn(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from[16];
        uint32_t given[SHARDS] = { 0 };
        for (uint32_t i = 0; i < SHARDS; i++)
                give_many(hall, i, 20, "a");
        assert_int_equal(turn_of(hall, A, 16, from), 16);
        for (unsigned i = 0; i < 16; i++)
                given[from[i]]++;
        assert_int_equal(given[0], 5);
        assert_int_equal(given[1], 5);
        assert_int_equal(given[2], 5);
        assert_int_equal(given[3], 1);
        assert_int_equal(turn_of(hall, A, 1, from), 1);
        assert_int_equal(from[0], 0); /* the round goes on behind the last */
        hall_close(hall);
}

static void an_urgent_shard_goes_first_with_a_share_of_the_room(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from[8];
        for (uint32_t i = 0; i < SHARDS; i++)
                give_many(hall, i, 20, "a");
        dispatch_told(&hall->dispatch, 3, 1);
        dispatch_told(&hall->dispatch, 2, 4);
        assert_int_equal(turn_of(hall, A, 8, from), 8);
        assert_int_equal(from[0], 3);
        assert_int_equal(from[1], 3); /* a quarter of the room */
        assert_int_equal(from[2], 0);
        assert_int_equal(from[3], 0);
        assert_int_equal(from[4], 1);
        assert_int_equal(turn_of(hall, A, 8, from), 8);
        assert_int_equal(from[0], 2); /* it is still urgent, the other is not any more */
        hall_close(hall);
}

static void where_there_is_hardly_room_urgent_shards_have_every_other_place(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from;
        give_many(hall, 0, 20, "a");
        give_many(hall, 3, 20, "a");
        for (unsigned i = 0; i < 6; i++) {
                dispatch_told(&hall->dispatch, 3, 1);
                hall->dispatch.pools[A].next_shard[LANE_HIGH] = 0; /* where rigs put tasks */
                assert_int_equal(turn_of(hall, A, 1, &from), 1);
                assert_int_equal(from, i % 2 ? 0 : 3);
        }
        hall_close(hall);
}

static void a_call_that_told_of_nothing_or_of_many_makes_nobody_urgent(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from;
        give_many(hall, 0, 2, "a");
        give_many(hall, 3, 2, "a");
        dispatch_told(&hall->dispatch, 3, 0);
        dispatch_told(&hall->dispatch, 3, 5);
        assert_int_equal(turn_of(hall, A, 1, &from), 1);
        assert_int_equal(from, 0);
        hall_close(hall);
}

static void a_shard_stays_urgent_for_the_pool_that_its_task_is_for(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from;
        give_many(hall, 0, 1, "b");
        give_many(hall, 3, 1, "b");
        dispatch_told(&hall->dispatch, 3, 1);
        assert_int_equal(turn_of(hall, A, 1, &from), 0);
        assert_int_equal(turn_of(hall, B, 1, &from), 1);
        assert_int_equal(from, 3);
        assert_null(hall->dispatch.urgent);
        hall_close(hall);
}

static void a_shard_that_has_nothing_left_is_not_urgent_any_more(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from;
        dispatch_told(&hall->dispatch, 3, 1);
        assert_int_equal(turn_of(hall, A, 1, &from), 0);
        assert_null(hall->dispatch.urgent);
        hall_close(hall);
}

/* So many of the pool's suspects are marked, over all shards. */
static uint32_t count_marks(const struct hall *hall)
{
        uint32_t marks = 0;
        for (uint32_t i = 0; i < SHARDS; i++)
                marks += window_marks(&hall->rigs[i].shard.window, A);
        return marks;
}

static void one_suspect_at_a_time_is_marked_over_all_shards(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from;
        for (uint32_t i = 1; i < 3; i++) {
                give(hall, i, "a")->note.is_suspect = true;
                claim(&hall->rigs[i]);
        }
        for (uint32_t shard = 1; shard < 3; shard++) {
                struct rig *g = &hall->rigs[shard];
                assert_int_equal(turn_of(hall, A, 0, &from), 0);
                assert_int_equal(count_marks(hall), shard - 1); /* a pool without room records nothing */
                assert_int_equal(turn_of(hall, A, 8, &from), 0);
                assert_int_equal(turn_of(hall, A, 8, &from), 0);
                assert_int_equal(window_marks(&g->shard.window, A), 1);
                assert_int_equal(count_marks(hall), 1);
                send_advance(g); /* says that it starts */
                reply_advance(g, STORE_OK);
                struct shard *started;
                dispatch_look(&hall->dispatch, &hall->changed);
                dispatch_begin(&hall->dispatch, A, DISPATCH_OPEN, ROOM(8), g->now_ms);
                struct claimed *c = dispatch_next(&hall->dispatch, A, ROOM(8), g->now_ms, &started);
                assert_non_null(c);
                assert_ptr_equal(started, &g->shard);
                assert_int_equal(turn_of(hall, A, 8, &from), 0);
                assert_int_equal(count_marks(hall), 1); /* while it runs no other is marked */
                end_as(g, c, STORE_DONE);
                send_advance(g);
                reply_advance(g, STORE_OK);
                assert_int_equal(count_marks(hall), 0);
                if (shard == 1)
                        assert_int_equal(turn_of(hall, A, 8, &from), 0);
        }
        hall_close(hall);
}

/* A pool that is under a limit has no room without a runner, and gets one only if something waits for it. */
static void a_suspect_waits_for_a_pool_that_has_no_room(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct rig *g = &hall->rigs[2];
        uint32_t from;
        assert_false(dispatch_has_waiting(&hall->dispatch, A));
        give(hall, 2, "a")->note.is_suspect = true; /* its runner was killed */
        claim(g);
        assert_int_equal(turn_of(hall, A, 0, &from), 0);
        assert_true(dispatch_has_waiting(&hall->dispatch, A));
        assert_false(dispatch_has_waiting(&hall->dispatch, B));
        assert_int_equal(turn_of(hall, A, 1, &from), 0); /* now it has one, and the start is recorded first */
        send_advance(g);
        reply_advance(g, STORE_OK);
        assert_true(dispatch_has_waiting(&hall->dispatch, A));
        assert_int_equal(turn_of(hall, A, 1, &from), 1);
        assert_false(dispatch_has_waiting(&hall->dispatch, A));
        hall_close(hall);
}

/* Gives a pool one task after the other, as a seat becomes free; their lanes, as "hnl". */
static void lanes_of(struct hall *hall, uint32_t pool, uint32_t count, char *ret_lanes)
{
        struct shard *shard;
        for (uint32_t i = 0; i < count; i++) {
                dispatch_look(&hall->dispatch, &hall->changed);
                dispatch_begin(&hall->dispatch, pool, DISPATCH_OPEN, ROOM(1), hall->rigs[0].now_ms);
                const struct claimed *c = dispatch_next(&hall->dispatch, pool, ROOM(1), hall->rigs[0].now_ms, &shard);
                ret_lanes[i] = c ? "hnl"[STORE_SEQ_LANE(c->seq)] : 0;
        }
        ret_lanes[count] = 0;
}

static void the_highest_lane_is_first_on_whatever_shard(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        char lanes[8];
        for (uint32_t i = 0; i < SHARDS; i++)
                give_in(hall, i, LANE_LOW, "a");
        give_in(hall, 2, LANE_NORMAL, "a");
        give_in(hall, 0, LANE_NORMAL, "a");
        give_in(hall, 3, LANE_HIGH, "a");
        give_in(hall, 1, LANE_HIGH, "b");
        dispatch_told(&hall->dispatch, 0, 1); /* only within a lane is an urgent shard the first */
        lanes_of(hall, A, 7, lanes);
        assert_string_equal(lanes, "hnnllll");
        hall_close(hall);
}

static void of_64_tasks_one_is_of_a_lower_lane(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        char lanes[131];
        for (uint32_t i = 0; i < 128; i++)
                give_in(hall, i % SHARDS, LANE_HIGH, "a");
        for (uint32_t i = 0; i < 3; i++)
                give_in(hall, 1, i ? LANE_LOW : LANE_NORMAL, "a");
        lanes_of(hall, A, 130, lanes);
        for (uint32_t i = 0; i < 130; i++)
                assert_int_equal(lanes[i], i == 63 ? 'n' : i == 127 ? 'l' : 'h');
        hall_close(hall);
}

static void what_a_lower_lane_gets_in_a_higher_ones_turn_waits_with_the_higher_ones(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct dispatch *d = &hall->dispatch;
        struct shard *shard;
        uint32_t low = 0;
        for (uint32_t i = 0; i < 80; i++)
                give_in(hall, i % SHARDS, LANE_NORMAL, "a");
        for (uint32_t i = 0; i < 4; i++)
                give_in(hall, i % SHARDS, LANE_LOW, "a");
        dispatch_look(d, &hall->changed);
        dispatch_begin(d, A, DISPATCH_OPEN, ROOM(400), hall->rigs[0].now_ms);
        for (uint32_t i = 0; i < 80; i++) {
                const struct claimed *c = dispatch_next(d, A, ROOM(400), hall->rigs[0].now_ms, &shard);
                assert_int_equal(c->pool_task.lane, LANE_NORMAL);
                low += STORE_SEQ_LANE(c->seq) == LANE_LOW;
                assert_int_equal(low, i >= 63);
        }
        hall_close(hall);
}

static void a_lane_without_room_gives_nothing(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct shard *shard;
        const uint32_t room[LANES] = { 1, 0, 0 };
        uint64_t now_ms = hall->rigs[0].now_ms;
        give_in(hall, 0, LANE_LOW, "a");
        give_in(hall, 1, LANE_HIGH, "a");
        dispatch_look(&hall->dispatch, &hall->changed);
        dispatch_begin(&hall->dispatch, A, DISPATCH_OPEN, room, now_ms);
        assert_int_equal(STORE_SEQ_LANE(dispatch_next(&hall->dispatch, A, room, now_ms, &shard)->seq), LANE_HIGH);
        assert_null(dispatch_next(&hall->dispatch, A, room, now_ms, &shard));
        dispatch_begin(&hall->dispatch, A, DISPATCH_OPEN, ROOM(1), now_ms);
        assert_non_null(dispatch_next(&hall->dispatch, A, ROOM(1), now_ms, &shard));
        hall_close(hall);
}

static void another_handler_in_the_same_place_begins_at_zero(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct routes *routes = &hall->dispatch.routes;
        routes_task_finished(routes, A, true, SPAN_TEXT(""));
        routes_task_finished(routes, A, false, SPAN_TEXT("timed-out"));
        routes_task_finished(routes, B, true, SPAN_TEXT(""));
        routes_task_finished(routes, ROUTES_NONE, true, SPAN_TEXT("")); /* of a pool that there is not */
        assert_int_equal(routes->finished[A].counts[FINISHED_TIMED_OUT], 1);
        dispatch_clear_pool(&hall->dispatch, A);
        for (unsigned i = 0; i < FINISHED_KINDS; i++)
                assert_int_equal(routes->finished[A].counts[i], 0);
        assert_int_equal(routes->finished[B].counts[FINISHED_DONE], 1);
        hall_close(hall);
}

/* A token does not last: what may start under a limit starts in the turn that finds so. */
static void what_a_limit_lets_go_starts_in_the_same_turn(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct dispatch *d = &hall->dispatch;
        struct limits limits = { .ttl_ms = RIG_TTL_MS };
        struct limit_amount pace = { .version = 1, .rate = 10, .per_ms = 1000, .burst = 5 };
        static char *names[] = { "x" };
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        uint32_t count = 0, shards[SHARDS] = { 0 };
        uint64_t now_ms = hall->rigs[0].now_ms;
        d->routes.limits = &limits;
        limit_define(limits_ensure(&limits, "x"), &pace, NULL, 0, 10);
        limits_serve(&limits, A, &(struct strings){ names, 1 });
        limits_set_room(&limits, A, 4);
        give_many(hall, 2, 1, "a");
        assert_int_equal(turn(hall, A, DISPATCH_OPEN, 4, shards), 0);
        dispatch_look_at_limits(d, now_ms);
        struct limit *limit = limits_next_call(&limits, now_ms, items, &count);
        assert_non_null(limit);
        items[0].granted = 1;
        items[0].left_ms = 1000;
        struct store_limit_take take = { .used = limit->store, .items = items, .items_count = 1 };
        limits_answered(&limits, limit, &take, now_ms);
        for (uint32_t i = 0; i < SHARDS; i++)
                hall->rigs[i].now_ms += 2;
        dispatch_look_at_limits(d, now_ms + 2);
        shard_set_init(&hall->changed, SHARDS); /* turn() does not look at what has changed since */
        assert_int_equal(turn(hall, A, DISPATCH_OPEN, 4, shards), 1);
        d->routes.limits = NULL;
        hall_close(hall);
        limits_free(&limits);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(where_one_fits_the_shards_give_in_turn),
                cmocka_unit_test(where_many_fit_a_shard_gives_several_and_all_get_a_turn),
                cmocka_unit_test(an_urgent_shard_goes_first_with_a_share_of_the_room),
                cmocka_unit_test(where_there_is_hardly_room_urgent_shards_have_every_other_place),
                cmocka_unit_test(a_call_that_told_of_nothing_or_of_many_makes_nobody_urgent),
                cmocka_unit_test(a_shard_stays_urgent_for_the_pool_that_its_task_is_for),
                cmocka_unit_test(a_shard_that_has_nothing_left_is_not_urgent_any_more),
                cmocka_unit_test(the_highest_lane_is_first_on_whatever_shard),
                cmocka_unit_test(of_64_tasks_one_is_of_a_lower_lane),
                cmocka_unit_test(what_a_lower_lane_gets_in_a_higher_ones_turn_waits_with_the_higher_ones),
                cmocka_unit_test(a_lane_without_room_gives_nothing),
                cmocka_unit_test(one_suspect_at_a_time_is_marked_over_all_shards),
                cmocka_unit_test(a_suspect_waits_for_a_pool_that_has_no_room),
                cmocka_unit_test(another_handler_in_the_same_place_begins_at_zero),
                cmocka_unit_test(what_a_limit_lets_go_starts_in_the_same_turn),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
