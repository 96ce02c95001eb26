/* Who gets the next seat: shards in turn, urgent ones first but with a share only, suspects one by one over all shards,
 * nothing for who is paused, and a name that nobody serves waits. */
#include "shard_rig.h"

#include "host/handler/dispatch.h"

#define SHARDS 4
#define A      0 /* the pools of handlers a and b */
#define B      1

struct hall {
        struct rig rigs[SHARDS];
        struct dispatch dispatch;
        struct shard_set changed;
        uint64_t next_seq;
        char keys[256][8];
};

static void serve(struct hall *hall, uint32_t pool, const char *handler)
{
        char *items[] = { (char *)handler };
        dispatch_serve(&hall->dispatch, pool, &(struct strings){ items, handler ? 1 : 0 }, hall->rigs[0].now_ms);
}

static struct hall *hall_open(void)
{
        struct hall *hall = calloc(1, sizeof(*hall));
        assert_non_null(hall);
        struct dispatch *d = &hall->dispatch;
        dispatch_init(d, SHARDS);
        shard_set_init(&hall->changed, SHARDS);
        for (uint32_t i = 0; i < SHARDS; i++) {
                struct rig *g = &hall->rigs[i];
                rig_open(g);
                g->shard.number = i;
                g->shard.routes = &d->routes;
                g->shard.changed = &hall->changed;
                dispatch_add_shard(d, &g->shard);
        }
        assert_int_equal(dispatch_add_pool(d), A);
        assert_int_equal(dispatch_add_pool(d), B);
        serve(hall, A, "a");
        serve(hall, B, "b");
        for (uint32_t i = 0; i < SHARDS; i++)
                own(&hall->rigs[i]);
        return hall;
}

static void hall_close(struct hall *hall)
{
        for (uint32_t i = 0; i < SHARDS; i++)
                rig_close(&hall->rigs[i]);
        dispatch_free(&hall->dispatch);
        free(hall);
}

/* One more task of a key of its own, with the shard's next reply. */
static struct store_task *give(struct hall *hall, uint32_t shard, const char *handler)
{
        uint64_t seq = ++hall->next_seq;
        (void)snprintf(hall->keys[seq], sizeof(hall->keys[seq]), "k%u", (unsigned)seq);
        return hand(&hall->rigs[shard], seq, hall->keys[seq], handler);
}

/* The same, of that lane and at once. */
static void give_in(struct hall *hall, uint32_t shard, enum lane lane, const char *handler)
{
        struct store_task *task = give(hall, shard, handler);
        task->seq |= (uint64_t)lane << STORE_SEQ_LANE_SHIFT;
        claim(&hall->rigs[shard]);
}

static void give_many(struct hall *hall, uint32_t shard, uint32_t count, const char *handler)
{
        for (uint32_t i = 0; i < count; i++)
                (void)give(hall, shard, handler);
        claim(&hall->rigs[shard]);
}

/* The same for every lane. */
#define ROOM(room) ((const uint32_t[LANES]){ room, room, room })

/* A turn of the loop for one pool.  Returns how many tasks it was given, and from which shards. */
static uint32_t turn(struct hall *hall, uint32_t pool, enum dispatch_state state, uint32_t room, uint32_t *ret_shards)
{
        struct dispatch *d = &hall->dispatch;
        uint64_t now_ms = hall->rigs[0].now_ms;
        struct shard *shard;
        uint32_t count = 0;
        dispatch_look(d, &hall->changed);
        dispatch_begin(d, pool, state, ROOM(room), now_ms);
        while (count < room && dispatch_next(d, pool, ROOM(room - count), now_ms, &shard))
                ret_shards[count++] = shard->number;
        return count;
}

static uint32_t turn_of(struct hall *hall, uint32_t pool, uint32_t room, uint32_t *ret_shards)
{
        return turn(hall, pool, DISPATCH_OPEN, room, ret_shards);
}

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

static void a_paused_handler_starts_nothing_and_its_tasks_wait_in_the_store(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from[8];
        give_many(hall, 0, 2, "a");
        give_many(hall, 0, 1, "b");
        give_many(hall, 1, 1, "a");
        struct claimed *running = start(&hall->rigs[1], 4);
        dispatch_pause(&hall->dispatch, A, true, hall->rigs[0].now_ms);
        dispatch_told(&hall->dispatch, 0, 1);
        shard_again(&hall->rigs[1].shard, running, hall->rigs[0].now_ms); /* it comes back, and waits */
        dispatch_told(&hall->dispatch, 1, 1);
        assert_int_equal(turn_of(hall, A, 8, from), 0);
        assert_int_equal(turn_of(hall, B, 8, from), 1);
        (void)give(hall, 0, "a"); /* the call that brings it tells of the first two */
        send_advance(&hall->rigs[0]);
        assert_said(&hall->rigs[0], 1, STORE_DIVERT);
        assert_said(&hall->rigs[0], 2, STORE_DIVERT);
        reply_advance(&hall->rigs[0], STORE_OK);
        send_advance(&hall->rigs[0]);
        assert_said(&hall->rigs[0], 5, STORE_DIVERT);
        reply_advance(&hall->rigs[0], STORE_OK);
        dispatch_pause(&hall->dispatch, A, false, hall->rigs[0].now_ms);
        give_many(hall, 0, 1, "a");
        assert_int_equal(turn_of(hall, A, 8, from), 2);
        hall_close(hall);
}

static void what_nobody_serves_waits_in_the_store_and_is_noted_once(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        const struct routes *routes = &hall->dispatch.routes;
        uint32_t from[8];
        give_many(hall, 0, 3, "x");
        give_many(hall, 1, 1, "x");
        assert_int_equal(turn_of(hall, A, 8, from) + turn_of(hall, B, 8, from), 0);
        assert_int_equal(routes->unserved_count, 1);
        assert_string_equal(routes->unserved[0], "x");
        send_advance(&hall->rigs[0]);
        for (uint64_t seq = 1; seq <= 3; seq++)
                assert_said(&hall->rigs[0], seq, STORE_DIVERT);
        reply_advance(&hall->rigs[0], STORE_OK);
        serve(hall, B, "x"); /* a reload */
        assert_int_equal(routes->unserved_count, 0);
        struct store_wake wake;
        assert_int_equal(next_call(&hall->rigs[0]), SHARD_CALL_WAKE);
        shard_fill_wake(&hall->rigs[0].shard, &wake, hall->rigs[0].now_ms);
        wake.verdict = STORE_OK;
        shard_woken(&hall->rigs[0].shard, &wake);
        give_many(hall, 0, 1, "x");
        assert_int_equal(turn_of(hall, B, 8, from), 1);
        hall_close(hall);
}

static void a_pool_that_is_down_keeps_half_of_a_window(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        const struct shard *s = &hall->rigs[0].shard;
        uint32_t from;
        assert_int_equal(turn(hall, A, DISPATCH_DOWN, 0, &from), 0);
        give_many(hall, 0, RIG_WINDOW / 2 + 3, "a");
        assert_int_equal(s->ended_count, 3);
        give_many(hall, 0, 2, "b");
        assert_int_equal(turn_of(hall, B, 1, &from), 1);
        hall_close(hall);
}

/* So many of one lane fill a window: the other two have room of their own. */
#define LANE_MOST (RIG_WINDOW - 2 * RIG_LANE_ROOM)

static void a_window_full_of_tasks_for_a_pool_that_is_down_is_emptied(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        const struct shard *s = &hall->rigs[0].shard;
        uint32_t from;
        give_many(hall, 0, LANE_MOST - 1, "a");
        assert_int_equal(turn(hall, A, DISPATCH_DOWN, 0, &from), 0);
        assert_int_equal(s->ended_count, 0); /* there is still room for others */
        give_many(hall, 0, 1, "b");
        assert_int_equal(turn(hall, A, DISPATCH_DOWN, 0, &from), 0);
        assert_int_equal(s->ended_count, LANE_MOST - 1);
        hall_close(hall);
}

static void what_comes_back_to_a_handler_that_is_gone_goes_where_it_is_served(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct rig *g = &hall->rigs[0];
        struct shard *shard;
        uint32_t from;
        give_many(hall, 0, 2, "a");
        dispatch_look(&hall->dispatch, &hall->changed);
        dispatch_begin(&hall->dispatch, A, DISPATCH_OPEN, ROOM(1), g->now_ms);
        struct claimed *c = dispatch_next(&hall->dispatch, A, ROOM(1), g->now_ms, &shard);
        serve(hall, A, NULL);
        shard_again(&g->shard, c, g->now_ms); /* its pool gave it back */
        assert_int_equal(turn(hall, A, DISPATCH_GONE, 0, &from), 0);
        assert_int_equal(g->shard.ended_count, 2);
        hall_close(hall);
}

static void a_task_whose_name_was_given_to_another_pool_runs_there(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct rig *g = &hall->rigs[0];
        struct shard *shard;
        uint32_t from;
        give_many(hall, 0, 1, "a");
        dispatch_look(&hall->dispatch, &hall->changed);
        dispatch_begin(&hall->dispatch, A, DISPATCH_OPEN, ROOM(1), g->now_ms);
        struct claimed *c = dispatch_next(&hall->dispatch, A, ROOM(1), g->now_ms, &shard);
        serve(hall, A, NULL);
        serve(hall, B, "a");
        shard_again(&g->shard, c, g->now_ms);
        assert_int_equal(turn_of(hall, A, 8, &from), 0);
        assert_int_equal(turn_of(hall, B, 8, &from), 1);
        hall_close(hall);
}

static void a_name_that_two_pools_serve_goes_to_the_lower(void **state)
{
        (void)state;
        struct routes r = { 0 };
        for (uint32_t pool = 0; pool < 3; pool++)
                assert_int_equal(routes_add_pool(&r), pool);
        rig_serve(&r, 2, "a");
        rig_serve(&r, 1, "a");
        assert_int_equal(routes_find(&r, SPAN_TEXT("a")), 1);
        assert_true(routes_serves(&r, 2, SPAN_TEXT("a")));
        assert_false(routes_serves(&r, 0, SPAN_TEXT("a")));
        rig_serve(&r, 1, "ab");
        assert_int_equal(routes_find(&r, SPAN_TEXT("a")), 2);
        assert_int_equal(routes_find(&r, SPAN_TEXT("ab")), 1);
        routes_free(&r);
}

static void no_more_than_so_many_unserved_names_are_noted(void **state)
{
        (void)state;
        struct routes r = { 0 };
        char name[NAME_HANDLER_MAX + 2];
        for (unsigned i = 0; i < 2 * ROUTES_UNSERVED_MAX; i++) {
                int size = snprintf(name, sizeof(name), "n%u", i);
                assert_int_equal(routes_find(&r, (struct span){ name, (size_t)size }), ROUTES_NONE);
        }
        assert_int_equal(r.unserved_count, ROUTES_UNSERVED_MAX);
        routes_forget_unserved(&r);
        memset(name, 'n', sizeof(name));
        assert_int_equal(routes_find(&r, (struct span){ name, sizeof(name) }), ROUTES_NONE);
        assert_int_equal(r.unserved_count, 0); /* no handler can have such a name */
        routes_free(&r);
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
                cmocka_unit_test(a_paused_handler_starts_nothing_and_its_tasks_wait_in_the_store),
                cmocka_unit_test(what_nobody_serves_waits_in_the_store_and_is_noted_once),
                cmocka_unit_test(a_pool_that_is_down_keeps_half_of_a_window),
                cmocka_unit_test(a_window_full_of_tasks_for_a_pool_that_is_down_is_emptied),
                cmocka_unit_test(what_comes_back_to_a_handler_that_is_gone_goes_where_it_is_served),
                cmocka_unit_test(a_task_whose_name_was_given_to_another_pool_runs_there),
                cmocka_unit_test(a_name_that_two_pools_serve_goes_to_the_lower),
                cmocka_unit_test(no_more_than_so_many_unserved_names_are_noted),
                cmocka_unit_test(another_handler_in_the_same_place_begins_at_zero),
                cmocka_unit_test(what_a_limit_lets_go_starts_in_the_same_turn),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
