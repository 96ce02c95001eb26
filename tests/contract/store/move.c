/* Another lane for a task that waits: it leaves a mark, or nothing, at its old place, and goes to the end of the other
 * lane with all that is known of it. */
#include "call.h"
#include "harness.h"

static int move_to(struct world *w, struct span id, enum lane lane, bool *ret_pending)
{
        const struct store_listed *task = find(w, id);
        struct store_move m;
        struct error error;
        if (!task)
                return -ENOENT;
        assert_int_equal(store_move_fill(task, lane, true, &m, &error), 0);
        int r = CALL(w, store_move, &m, NULL);
        if (ret_pending)
                *ret_pending = m.is_pending;
        return r;
}

static void expect_moved(const struct store_listed *task, const char *lane)
{
        struct span events = task->note.events;
        struct note_event event = { 0 };
        while (note_event_next(&events, &event))
                ;
        assert_true(span_is(event.kind, T("moved")));
        assert_true(span_is(event.text, T(lane)));
}

static void a_queued_task_goes_to_the_end_of_another_lane(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "a", "1");
        struct span id = submit(w, "b", "2");
        (void)submit(w, "c", "3");
        (void)submit_lane(w, "d", "4", LANE_HIGH);
        bool is_pending = true;
        assert_int_equal(move_to(w, id, LANE_HIGH, &is_pending), 0);
        assert_false(is_pending);
        const struct store_listed *task = find(w, id);
        assert_int_equal(task->state, STATE_QUEUED);
        assert_int_equal(STORE_SEQ_LANE(task->number), LANE_HIGH);
        expect_moved(task, "high");
        struct store_counts c = counts(w, 0);
        assert_int_equal(c.queued[LANE_HIGH], 2);
        assert_int_equal(c.queued[LANE_NORMAL], 2);
        assert_int_equal(c.submitted, 4);
        assert_int_equal(move_to(w, id, LANE_HIGH, NULL), -EALREADY);
        expect_sound(w);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "4 2 1 3");
        assert_int_equal(a.tasks[1].envelope.lane, LANE_HIGH);
        assert_true(span_is(a.tasks[1].envelope.id, id));
        expect_sound(w);
}

/* Back again: the lane's end is another place than the one it had. */
static void a_task_that_moves_twice_is_there_once(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "a", "1");
        (void)submit(w, "b", "2");
        assert_int_equal(move_to(w, id, LANE_LOW, NULL), 0);
        assert_int_equal(move_to(w, id, LANE_NORMAL, NULL), 0);
        expect_sound(w);
        expect_tasks(w, claim(w, &o, 10), "2 1");
        assert_int_equal(counts(w, 0).in_flight, 2);
        expect_sound(w);
}

static void a_delayed_task_joins_the_other_lane_when_it_is_due(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit_delayed(w, "a", "late", 1000);
        assert_int_equal(move_to(w, id, LANE_LOW, NULL), 0);
        const struct store_listed *task = find(w, id);
        assert_int_equal(task->state, STATE_DELAYED);
        assert_int_equal(task->due_in_ms, 1000);
        expect_moved(task, "low");
        assert_int_equal(move_to(w, id, LANE_LOW, NULL), -EALREADY);
        world_step(w, 1000);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "late");
        assert_int_equal(a.tasks[0].envelope.lane, LANE_LOW);
        expect_sound(w);
}

static void a_task_of_a_held_key_moves_and_stays_held(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 1);
        (void)settle(w, &o, hold(&a.tasks[0]));
        struct span id = submit(w, "k", "2");
        (void)claim(w, &o, 10); /* diverts it */
        assert_int_equal(find(w, id)->state, STATE_PARKED);
        assert_int_equal(move_to(w, id, LANE_HIGH, NULL), 0);
        expect_sound(w);
        expect_tasks(w, claim(w, &o, 10), "");
        assert_int_equal(key(w, "k").state, KEY_HELD);
        assert_int_equal(key(w, "k").tasks, 2);
        assert_int_equal(key_act(w, CONTROL_UNHOLD, "k"), 0);
        expect_tasks(w, claim(w, &o, 10), "2"); /* a higher lane comes first */
        expect_sound(w);
}

static void the_first_of_a_key_that_waits_for_its_retry_stays(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "k", "1");
        struct span behind = submit(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcomes[] = { retry(&a.tasks[0], 5000), divert(&a.tasks[1]) };
        (void)advance(w, &o, outcomes, 2, 0);
        assert_int_equal(move_to(w, id, LANE_LOW, NULL), -EPERM);
        assert_int_equal(move_to(w, behind, LANE_LOW, NULL), 0);
        expect_sound(w);
        world_step(w, 5000);
        expect_tasks(w, claim(w, &o, 10), "1 2"); /* by seq: the owner starts the higher lane's first */
        expect_sound(w);
}

static void what_an_owner_holds_moves_through_its_control_list(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "a", "1");
        (void)submit(w, "b", "2");
        struct store_advance a = claim(w, &o, 10);
        bool is_pending = false;
        assert_int_equal(move_to(w, id, LANE_HIGH, &is_pending), 0);
        assert_true(is_pending);
        assert_int_equal(find(w, id)->state, STATE_IN_FLIGHT);
        struct store_advance b = claim(w, &o, 0);
        assert_int_equal(b.controls_count, 1);
        assert_int_equal(b.controls[0].verb, CONTROL_MOVE);
        assert_int_equal(b.controls[0].seq, a.tasks[0].seq);
        assert_true(span_is(b.controls[0].id, id));
        assert_true(span_is(b.controls[0].key, T("a")));
        assert_true(span_is(b.controls[0].data, T("high")));
        struct store_outcome moved = { .kind = STORE_MOVE, .task = ref(&a.tasks[0]), .lane = LANE_HIGH };
        struct store_advance c = advance(w, &o, &moved, 1, 0);
        assert_int_equal(c.gone, 0);
        assert_true(c.has_more[LANE_HIGH]);
        expect_sound(w);
        expect_moved(find(w, id), "high");
        c = claim(w, &o, 10);
        expect_tasks(w, c, "1");
        assert_int_equal(c.tasks[0].envelope.lane, LANE_HIGH);
        (void)settle(w, &o, done(&c.tasks[0]));
        (void)settle(w, &o, done(&a.tasks[1]));
        assert_int_equal(counts(w, 0).done, 2);
        /* An outcome of the old place finds nothing. */
        assert_int_equal(settle(w, &o, moved).gone, 1);
        expect_sound(w);
}

static void a_wrong_move_is_refused(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "a", "1");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcome = { .kind = STORE_MOVE, .task = ref(&a.tasks[0]), .lane = LANE_NORMAL };
        struct store_advance refused = {
                .lease = o.lease, .call = o.call + 1, .outcomes = &outcome, .outcomes_count = 1
        };
        assert_int_equal(CALL(w, store_advance, &refused, NULL), -EINVAL);
        outcome.lane = LANES;
        assert_int_equal(CALL(w, store_advance, &refused, NULL), -EINVAL);
        struct store_move m = { .id = id, .key = T("a"), .number = 77, .from = LANE_NORMAL, .lane = LANE_LOW };
        assert_int_equal(CALL(w, store_move, &m, NULL), -ENOENT);
        m.lane = LANES;
        assert_int_equal(CALL(w, store_move, &m, NULL), -EINVAL);
        m.lane = LANE_LOW;
        m.state = STATE_DEAD;
        assert_int_equal(CALL(w, store_move, &m, NULL), -ENOENT);
        m.state = STATE_QUEUED;
        m.id = T("nightly.1794808800-0");
        assert_int_equal(CALL(w, store_move, &m, NULL), -EPERM);
        m.id = T("no.shard-0"); /* no time: anybody's */
        assert_int_equal(CALL(w, store_move, &m, NULL), -ENOENT);
}

/* Its owner has gone: nobody has to be asked. */
static void what_nobody_owns_any_more_moves_at_once(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "a", "1");
        (void)submit(w, "b", "2");
        (void)claim(w, &o, 10);
        assert_int_equal(release(w, &o), STORE_OK);
        bool is_pending = true;
        assert_int_equal(move_to(w, id, LANE_LOW, &is_pending), 0);
        assert_false(is_pending);
        expect_sound(w);
        struct owner next = own(w, 0, 2, 2);
        expect_tasks(w, claim(w, &next, 10), "1");
        expect_sound(w);
}

/* A task that says no word about force keeps its key's order. */
static void a_task_with_a_key_has_to_be_forced(void **state)
{
        struct world *w = *state;
        struct store_move m;
        struct error error = { "" };
        struct span keyed = submit(w, "k", "1");
        struct span late = submit_delayed(w, "k", "2", 1000);
        assert_int_equal(store_move_fill(find(w, keyed), LANE_HIGH, false, &m, &error), -EPERM);
        assert_non_null(strstr(error.text, "--force"));
        assert_int_equal(store_move_fill(find(w, late), LANE_HIGH, false, &m, &error), 0); /* it has no place yet */
        struct store_submission item = { .envelope = { .handler = T("h"), .payload = T("x"), .lane = LANE_NORMAL } };
        assert_int_equal(submit_items(w, &item, 1), 0);
        if (item.shard == 0)
                assert_int_equal(store_move_fill(find(w, T(item.id)), LANE_HIGH, false, &m, &error), 0);
}

const struct CMUnitTest move_tests[] = {
        IN_WORLD(a_queued_task_goes_to_the_end_of_another_lane),
        IN_WORLD(a_task_that_moves_twice_is_there_once),
        IN_WORLD(a_delayed_task_joins_the_other_lane_when_it_is_due),
        IN_WORLD(a_task_of_a_held_key_moves_and_stays_held),
        IN_WORLD(the_first_of_a_key_that_waits_for_its_retry_stays),
        IN_WORLD(what_an_owner_holds_moves_through_its_control_list),
        IN_WORLD(a_wrong_move_is_refused),
        IN_WORLD(what_nobody_owns_any_more_moves_at_once),
        IN_WORLD(a_task_with_a_key_has_to_be_forced),
};
GROUP(move);
