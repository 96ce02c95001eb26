/* Intervening: cancel, another time, what becomes of dead tasks, repair. */
#include "harness.h"

/* --- cancel and another time ------------------------------------------------------------------------------------- */

static void expect_cancelled(struct world *w, struct span id)
{
        const struct store_listed *task = find(w, id);
        assert_non_null(task);
        assert_int_equal(task->state, STATE_DEAD);
        assert_true(span_is(task->reason, T("cancelled")));
}

static void a_queued_task_can_be_cancelled(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct span id = submit(w, "k", "2");
        (void)submit(w, "k", "3");
        assert_int_equal(cancel(w, id, NULL), 0);
        expect_tasks(w, claim(w, &o, 10), "1 3");
        expect_cancelled(w, id);
        assert_int_equal(cancel(w, id, NULL), -EALREADY);
}

static void the_last_queued_task_can_be_cancelled(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "k", "1");
        assert_int_equal(cancel(w, id, NULL), 0);
        struct store_advance a = claim(w, &o, 10);
        assert_int_equal(a.tasks_count, 0);
        assert_false(store_has_more(&a));
        (void)submit(w, "k", "2");
        expect_tasks(w, claim(w, &o, 10), "2");
        expect_cancelled(w, id);
}

static void a_delayed_task_can_be_given_another_time(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span sooner = submit_delayed(w, "k1", "sooner", 60000);
        struct span later = submit_delayed(w, "k2", "later", 1000);
        const struct store_listed *task = find(w, sooner);
        assert_int_equal(reschedule(w, sooner, task->number, 500, 0), 0);
        task = find(w, sooner);
        assert_int_equal(task->state, STATE_DELAYED);
        assert_int_equal(task->due_in_ms, 500);
        struct span events = task->note.events;
        struct note_event event;
        assert_true(note_event_next(&events, &event));
        assert_true(span_is(event.kind, T("rescheduled")));
        assert_int_equal(reschedule(w, later, find(w, later)->number, 5000, 0), 0);
        /* The owner is told when the next one is due. */
        assert_int_equal(claim(w, &o, 10).next_due_ms, 500);
        world_step(w, 500);
        expect_tasks(w, claim(w, &o, 10), "sooner");
        world_step(w, 4000);
        expect_tasks(w, claim(w, &o, 10), "");
        world_step(w, 1000);
        expect_tasks(w, claim(w, &o, 10), "later");
        /* What is not delayed any more has no time to change. */
        assert_int_equal(reschedule(w, later, 1, 1, 0), -ENOENT);
        assert_int_equal(reschedule(w, T("nobody-0"), 1, 1, 0), -ENOENT);
        assert_int_equal(reschedule(w, T("nobody"), 1, 1, 0), -EINVAL);
        assert_int_equal(reschedule(w, sooner, 1, UINT64_MAX, 0), -EINVAL);
        expect_sound(w);
}

/* Its envelope names a time, and a person another one: that counts, earlier or later. */
static void another_time_counts_for_more_than_that_of_the_envelope(void **state)
{
        struct world *w = *state;
        uint64_t began_ms = store_now_ms(w);
        struct owner o = own(w, 0, 1, 1);
        struct store_submission item = { .envelope = { .key = T("k"),
                                                 .handler = T("h"),
                                                 .payload = T("x"),
                                                 .lane = LANE_NORMAL,
                                                 .not_before_ms = began_ms + 60000 } };
        assert_int_equal(submit_items(w, &item, 1), 0);
        struct span id = T(item.id);
        const struct store_listed *task = find(w, id);
        assert_int_equal(task->state, STATE_DELAYED);
        assert_int_equal(task->due_in_ms, 60000);
        assert_int_equal(reschedule(w, id, task->number, 0, began_ms + 2000), 0);
        assert_int_equal(find(w, id)->due_in_ms, 2000);
        world_step(w, 1999);
        expect_tasks(w, claim(w, &o, 10), "");
        world_step(w, 1);
        expect_tasks(w, claim(w, &o, 10), "x");
        expect_sound(w);
}

static void a_delayed_task_can_be_cancelled(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit_delayed(w, "k", "1", 100);
        assert_int_equal(cancel(w, id, NULL), 0);
        expect_cancelled(w, id);
        world_step(w, 100);
        assert_int_equal(claim(w, &o, 10).tasks_count, 0);
}

static void a_parked_task_can_be_cancelled(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 1);
        (void)settle(w, &o, hold(&a.tasks[0]));
        (void)submit(w, "k", "2");
        (void)claim(w, &o, 10);
        assert_int_equal(cancel(w, id, NULL), 0);
        expect_cancelled(w, id);
        assert_int_equal(key(w, "k").state, KEY_HELD);
        assert_int_equal(key(w, "k").tasks, 1);
}

static void a_running_task_is_cancelled_through_its_owner(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 1);
        bool is_pending = false;
        assert_int_equal(cancel(w, id, &is_pending), 0);
        assert_true(is_pending);
        struct store_advance b = claim(w, &o, 1);
        assert_int_equal(b.controls_count, 1);
        assert_int_equal(b.controls[0].verb, CONTROL_CANCEL);
        assert_int_equal(b.controls[0].seq, a.tasks[0].seq);
        assert_true(span_is(b.controls[0].id, id));
        (void)settle(w, &o, dead(&a.tasks[0], "cancelled"));
        expect_cancelled(w, id);
}

static void done_before_the_cancel_wins(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 1);
        assert_int_equal(cancel(w, id, NULL), 0);
        struct store_outcome outcome = done(&a.tasks[0]);
        struct store_advance b = advance(w, &o, &outcome, 1, 0);
        assert_int_equal(b.gone, 0);
        assert_int_equal(b.controls_count, 1); /* the owner sees that it is too late */
        assert_int_equal(counts(w, 0).done, 1);
        assert_int_equal(cancel(w, id, NULL), -ENOENT);
}

static void an_in_flight_task_that_nobody_owns_is_cancelled_at_once(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "k", "1");
        (void)claim(w, &o, 1);
        assert_int_equal(release(w, &o), STORE_OK);
        assert_int_equal(cancel(w, id, NULL), 0);
        expect_cancelled(w, id);
        assert_int_equal(own(w, 0, 2, 1).granted.page.tasks_count, 0);
}

/* --- dead tasks -------------------------------------------------------------------------------------------------- */

static struct span make_dead(
        struct world *w, struct owner *o, const char *key, const char *handler, const char *payload)
{
        struct store_submission item = {
                .envelope = { .key = T(key), .handler = T(handler), .payload = T(payload), .lane = LANE_LOW }
        };
        assert_int_equal(submit_items(w, &item, 1), 0);
        struct store_advance a = claim(w, o, 1);
        assert_int_equal(a.tasks_count, 1);
        (void)settle(w, o, dead(&a.tasks[0], "rejected"));
        return F(w, "%s", item.id);
}

static void a_dead_task_is_requeued_to_the_tail_with_fresh_budgets(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = make_dead(w, &o, "k", "h", "dead");
        (void)submit_lane(w, "k", "waiting", LANE_LOW);
        assert_int_equal(dead_act(w, DEAD_REQUEUE, id).acted, 1);
        assert_int_equal(dead_act(w, DEAD_REQUEUE, id).acted, 0);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "waiting dead");
        assert_int_equal(a.tasks[1].envelope.lane, LANE_LOW);
        assert_int_equal(a.tasks[1].note.attempts, 0);
        assert_true(span_is(a.tasks[1].envelope.id, id));
        struct note_event event;
        assert_true(note_event_next(&a.tasks[1].note.events, &event)); /* the history stays */
        assert_true(span_is(event.kind, T("attempt")));
        assert_int_equal(counts(w, 0).dead, 0);
        assert_int_equal(counts(w, 0).submitted, 2);
}

static void dead_tasks_are_dropped_by_id_and_by_number(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span one = make_dead(w, &o, "a", "h", "1");
        for (unsigned i = 0; i < 3; i++) {
                (void)make_dead(w, &o, "b", "mail", "2");
                (void)make_dead(w, &o, "c", "h", "3");
        }
        assert_int_equal(dead_act(w, DEAD_DROP, one).acted, 1);
        assert_int_equal(counts(w, 0).dropped, 1);
        struct store_list all = list(w, 0, STATE_DEAD);
        uint64_t numbers[2][8];
        uint32_t count[2] = { 0, 0 };
        for (uint32_t i = 0; i < all.tasks_count; i++) {
                unsigned which = span_is(all.tasks[i].envelope.handler, T("mail")) ? 0 : 1;
                numbers[which][count[which]++] = all.tasks[i].number;
        }
        struct store_dead mail = dead_act_on(w, DEAD_DROP, numbers[0], count[0]);
        assert_int_equal(mail.acted, 3);
        assert_int_equal(mail.looked, 3);
        assert_int_equal(dead_act_on(w, DEAD_DROP, numbers[0], count[0]).acted, 0);
        assert_int_equal(counts(w, 0).dead, 3);
        assert_int_equal(dead_act_on(w, DEAD_REQUEUE, numbers[1], count[1]).acted, 3);
        expect_tasks(w, claim(w, &o, 10), "3 3 3");
        assert_int_equal(counts(w, 0).dropped, 4);
        expect_sound(w);
}

/* Whoever chose a task by its number did not choose what became of it later. */
static void a_task_that_is_dead_again_has_another_number(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        uint64_t before = dead_act(w, DEAD_DROP, (struct span){ 0 }).last;
        struct span id = make_dead(w, &o, "k", "h", "1");
        uint64_t number = list(w, 0, STATE_DEAD).tasks[0].number;
        assert_int_equal(dead_act(w, DEAD_DROP, (struct span){ 0 }).last, number);
        assert_true(number > before);
        assert_int_equal(dead_act(w, DEAD_REQUEUE, id).acted, 1);
        struct store_advance a = claim(w, &o, 1);
        (void)settle(w, &o, dead(&a.tasks[0], "rejected"));
        assert_int_equal(dead_act_on(w, DEAD_DROP, &number, 1).acted, 0);
        assert_int_equal(counts(w, 0).dead, 1);
        const uint64_t unknown[] = { 0, 7777, UINT64_MAX, number + 1, number + 1 };
        assert_int_equal(dead_act_on(w, DEAD_DROP, unknown, 5).acted, 1);
        expect_sound(w);
}

/* --- dead, by group ---------------------------------------------------------------------------------------------- */

static uint64_t group(struct world *w, const char *reason, const char *error)
{
        struct store_dead_groups g = dead_groups(w, 0);
        uint64_t tasks = 0;
        for (uint32_t i = 0; i < g.groups_count; i++)
                if (span_is(g.groups[i].reason, T(reason)) && span_is(g.groups[i].error, T(error)))
                        tasks += g.groups[i].tasks;
        return tasks;
}

static void dead_of(struct world *w, struct owner *o, const char *reason, struct span error)
{
        (void)submit(w, "", "x");
        struct store_advance a = claim(w, o, 1);
        assert_int_equal(a.tasks_count, 1);
        struct store_outcome outcome = dead(&a.tasks[0], reason);
        outcome.error = error;
        outcome.cost = COST_ATTEMPT;
        (void)settle(w, o, outcome);
}

static void the_dead_are_counted_by_reason_and_first_line(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 3; i++)
                dead_of(w, &o, "exhausted", F(w, "refused\nsecond line %u", i));
        dead_of(w, &o, "rejected", T("refused"));
        dead_of(w, &o, "rejected", T(""));
        assert_int_equal(group(w, "exhausted", "refused"), 3);
        assert_int_equal(group(w, "rejected", "refused"), 1);
        assert_int_equal(group(w, "rejected", ""), 1);
        struct store_list l = list(w, 0, STATE_DEAD);
        assert_int_equal(dead_act(w, DEAD_DROP, l.tasks[0].id).acted, 1);
        assert_int_equal(dead_act(w, DEAD_REQUEUE, l.tasks[1].id).acted, 1);
        assert_int_equal(group(w, "exhausted", "refused"), 1);
        expect_sound(w);
        assert_int_equal(dead_act(w, DEAD_DROP, l.tasks[2].id).acted, 1);
        assert_int_equal(group(w, "exhausted", "refused"), 0);
        assert_int_equal(dead_groups(w, 0).groups_count, 2);
        expect_sound(w);
}

static void groups_of_the_dead_are_few_and_add_up(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < STORE_DEAD_GROUPS + 20; i++)
                dead_of(w, &o, "exhausted", F(w, "error %u", i));
        assert_int_equal(dead_groups(w, 0).groups_count, STORE_DEAD_GROUPS + 1);
        assert_int_equal(group(w, "", ""), 20);
        expect_sound(w);
        struct store_list l = list(w, 0, STATE_DEAD);
        for (uint32_t i = 0; i < l.tasks_count; i++)
                assert_int_equal(dead_act(w, DEAD_DROP, l.tasks[i].id).acted, 1);
        assert_int_equal(dead_groups(w, 0).groups_count, 0);
        expect_sound(w);
}

/* --- repair ------------------------------------------------------------------------------------------------------ */

static void an_owned_shard_is_not_repaired(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        assert_true(repair(w, 0) < 0);
        assert_int_equal(release(w, &o), STORE_OK);
        assert_int_equal(repair(w, 0), 0);
}

const struct CMUnitTest intervene_tests[] = {
        IN_WORLD(a_queued_task_can_be_cancelled),
        IN_WORLD(the_last_queued_task_can_be_cancelled),
        IN_WORLD(a_delayed_task_can_be_given_another_time),
        IN_WORLD(another_time_counts_for_more_than_that_of_the_envelope),
        IN_WORLD(a_delayed_task_can_be_cancelled),
        IN_WORLD(a_parked_task_can_be_cancelled),
        IN_WORLD(a_running_task_is_cancelled_through_its_owner),
        IN_WORLD(done_before_the_cancel_wins),
        IN_WORLD(an_in_flight_task_that_nobody_owns_is_cancelled_at_once),
        IN_WORLD(a_dead_task_is_requeued_to_the_tail_with_fresh_budgets),
        IN_WORLD(dead_tasks_are_dropped_by_id_and_by_number),
        IN_WORLD(a_task_that_is_dead_again_has_another_number),
        IN_WORLD(the_dead_are_counted_by_reason_and_first_line),
        IN_WORLD(groups_of_the_dead_are_few_and_add_up),
        IN_WORLD(an_owned_shard_is_not_repaired),
};
GROUP(intervene);
