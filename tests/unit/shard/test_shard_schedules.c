/* The calls in which a shard's schedules fire. */
#include "shard_rig.h"

#define EVERY_S "{\"handler\":\"a\",\"every_ms\":1000}"

static const int64_t wall_ahead_ms = 0;

static void add(struct rig *g, const char *name, uint64_t next_ms)
{
        struct schedule *definition = calloc(1, sizeof(*definition));
        struct store_schedule stored = { .name = rig_span(name), .version = 3, .next_ms = next_ms };
        struct error error;
        assert_int_equal(schedule_parse(definition, rig_span(EVERY_S), &error), 0);
        shard_schedules_add(g->shard.schedules, &stored, definition);
}

/* Two schedules: one whose time has come, and one whose time comes a second later. */
static void open_with_two(struct rig *g)
{
        struct store_schedule_list list;
        rig_open(g);
        own(g);
        g->shard.wall_ahead_ms = &wall_ahead_ms;
        shard_schedules_changed(&g->shard);
        assert_int_equal(next_call(g), SHARD_CALL_SCHEDULES);
        shard_fill_schedules(&g->shard, &list, g->now_ms);
        shard_listed(&g->shard);
        shard_schedules_begin(g->shard.schedules);
        add(g, "first", g->now_ms);
        add(g, "second", g->now_ms + 1000);
}

static void send_fires(struct rig *g, struct store_fires *fires)
{
        struct claimed *replaced[STORE_CALL_FIRES];
        uint32_t count;
        assert_int_equal(next_call(g), SHARD_CALL_FIRES);
        shard_fill_fires(&g->shard, fires, g->now_ms, replaced, &count);
}

static void fired(struct rig *g, struct store_fires *fires)
{
        for (uint32_t i = 0; i < fires->fires_count; i++) {
                struct store_fire *fire = &g->shard.schedules->fires[i];
                fire->fired = STORE_FIRED;
                fire->stored.next_ms = fire->next_ms;
        }
        fires->verdict = STORE_OK;
        shard_fired(&g->shard, fires);
}

/* The store answers a number that it has executed with what it did then: whatever else a repeat said would be believed
 * to have fired. */
static void a_repeated_call_fires_what_the_first_one_did(void **state)
{
        (void)state;
        struct rig g;
        struct store_fires fires;
        open_with_two(&g);
        uint64_t began_ms = g.now_ms;
        send_fires(&g, &fires);
        uint64_t call = fires.call;
        assert_int_equal(fires.fires_count, 1);
        shard_failed(&g.shard, g.now_ms);
        g.now_ms += 5000; /* the second one's time comes meanwhile, and more of the first */
        send_fires(&g, &fires);
        assert_int_equal(fires.call, call);
        assert_int_equal(fires.fires_count, 1);
        assert_true(span_is(fires.fires[0].name, SPAN_TEXT("first")));
        assert_int_equal(fires.fires[0].expected_ms, began_ms);
        assert_int_equal(fires.fires[0].next_ms, began_ms + 1000);
        assert_int_equal(fires.fires[0].task.submitted_ms, began_ms);
        fired(&g, &fires);
        send_fires(&g, &fires);
        assert_int_equal(fires.call, call + 1);
        assert_int_equal(fires.fires_count, 2);
        assert_int_equal(fires.fires[0].expected_ms, began_ms + 1000);
        assert_true(span_is(fires.fires[1].name, SPAN_TEXT("second")));
        fired(&g, &fires);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(a_repeated_call_fires_what_the_first_one_did) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
