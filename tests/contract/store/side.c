/* Side queues: parked, held, and keys with more than their share. */
#include <string.h>

#include "harness.h"

static void a_retry_is_not_overtaken(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        (void)submit(w, "other", "x");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcomes[] = { retry(&a.tasks[0], 500), divert(&a.tasks[1]), done(&a.tasks[2]) };
        (void)submit(w, "k", "3");
        struct store_advance b = advance(w, &o, outcomes, 3, 10);
        assert_int_equal(b.tasks_count, 0); /* 3 was diverted by the claim itself */
        assert_int_equal(b.next_due_ms, 500);
        struct store_counts c = counts(w, 0);
        assert_int_equal(c.parked[LANE_NORMAL], 3);
        assert_int_equal(c.in_flight, 0);
        assert_int_equal(c.keys, 1);
        world_step(w, 499);
        assert_int_equal(claim(w, &o, 10).tasks_count, 0);
        world_step(w, 1);
        b = claim(w, &o, 10);
        expect_tasks(w, b, "1"); /* the head, alone */
        assert_int_equal(b.tasks[0].note.attempts, 1);
        struct store_outcome head = done(&b.tasks[0]);
        head.refill = 16;
        b = advance(w, &o, &head, 1, 10);
        expect_tasks(w, b, "2 3");
        assert_int_equal(counts(w, 0).keys, 0);
        (void)submit(w, "k", "4");
        expect_tasks(w, claim(w, &o, 10), "4"); /* the key is free again */
}

static void a_new_owner_does_not_start_what_waits_behind_a_retry(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct store_advance first = claim(w, &a, 10);
        (void)settle(w, &a, retry(&first.tasks[0], 5000)); /* and dies before it gives 2 back */
        world_reopen(w);
        world_step(w, TTL_MS);
        struct owner b = own(w, 0, 2, 2);
        assert_int_equal(b.granted.page.tasks_count, 1);
        assert_true(b.granted.page.tasks[0].is_key_waiting);
        (void)settle(w, &b, divert(&b.granted.page.tasks[0]));
        world_step(w, 5000);
        struct store_advance head = claim(w, &b, 10);
        expect_tasks(w, head, "1");
        struct store_outcome outcome = done(&head.tasks[0]);
        expect_tasks(w, advance(w, &b, &outcome, 1, 0), "2");
}

/* The head of a key waits for a time (a worker may run it), and its owner dies before it gives the rest back. */
static void a_new_owner_does_not_start_what_waits_behind_a_time(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 1, 1);
        for (unsigned i = 1; i < 5; i++)
                (void)submit(w, "k", F(w, "%u", i).data);
        (void)submit(w, "other", "o");
        struct store_advance first = claim(w, &a, 10);
        struct store_outcome head = divert(&first.tasks[1]);
        head.delay_ms = 5000;
        (void)settle(w, &a, head);
        world_reopen(w);
        world_step(w, TTL_MS);
        struct owner b = own(w, 0, 2, 2);
        assert_string_equal(payloads(w, b.granted.page.tasks, b.granted.page.tasks_count), "1 3 4 o");
        assert_false(b.granted.page.tasks[0].is_key_waiting); /* it comes before the one that waits */
        assert_true(b.granted.page.tasks[1].is_key_waiting);
        assert_true(b.granted.page.tasks[2].is_key_waiting);
        assert_false(b.granted.page.tasks[3].is_key_waiting);
        struct store_page rest = in_flight_page(w, &b, b.granted.page.tasks[0].seq, 10);
        assert_int_equal(rest.tasks_count, 3);
        assert_true(rest.tasks[0].is_key_waiting);
        assert_false(rest.tasks[2].is_key_waiting);
        struct store_outcome back[] = { divert(&rest.tasks[1]), divert(&rest.tasks[0]),
                done(&b.granted.page.tasks[0]) };
        back[2].refill = 16;
        expect_tasks(w, advance(w, &b, back, 3, 10), "2 3 4");
}

static void a_key_with_more_than_its_share_leaves_room_for_others(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 20; i++)
                (void)submit(w, "hot", F(w, "h%u", i).data);
        struct store_advance a = claim(w, &o, 6);
        struct store_outcome surplus[] = { divert(&a.tasks[4]), divert(&a.tasks[5]) };
        (void)submit(w, "cold", "c");
        struct store_advance b = advance(w, &o, surplus, 2, 100);
        expect_tasks(w, b, "c"); /* 14 more hot ones were diverted on the way */
        assert_int_equal(counts(w, 0).parked[LANE_NORMAL], 16);
        assert_int_equal(key(w, "hot").state, KEY_WAITING);
        assert_int_equal(key(w, "hot").tasks, 16);
        /* Each one done brings the next, in order. */
        struct store_task running[20];
        memcpy(running, a.tasks, 4 * sizeof(running[0]));
        unsigned count = 4;
        for (unsigned i = 0; i < 20; i++) {
                assert_true(span_is(running[i].envelope.payload, F(w, "h%u", i)));
                struct store_advance next = settle(w, &o, done(&running[i]));
                for (uint32_t n = 0; n < next.tasks_count; n++)
                        running[count++] = next.tasks[n];
        }
        assert_int_equal(count, 20);
        assert_int_equal(counts(w, 0).done, 20);
        assert_int_equal(counts(w, 0).keys, 0);
}

static void a_waiting_key_comes_back_by_itself(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome both[] = { divert(&a.tasks[1]), divert(&a.tasks[0]) };
        both[0].delay_ms = 5000;
        both[1].delay_ms = 100;
        a = advance(w, &o, both, 2, 0);
        assert_int_equal(a.next_due_ms, 100);
        world_step(w, 100);
        expect_tasks(w, claim(w, &o, 10), "1");
        world_step(w, 3600 * 1000); /* the owner never says that 1 is done */
        expect_tasks(w, claim(w, &o, 10), "2");
}

static void lanes_hold_in_side_queues_too(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "n1");
        struct store_advance a = claim(w, &o, 10);
        (void)settle(w, &o, retry(&a.tasks[0], 100));
        (void)submit(w, "k", "n2");
        (void)submit_lane(w, "k", "l1", LANE_LOW);
        (void)submit_lane(w, "k", "h1", LANE_HIGH);
        assert_int_equal(claim(w, &o, 10).tasks_count, 0); /* a parked key is so in all lanes */
        world_step(w, 100);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "h1");
        struct store_outcome outcome = done(&a.tasks[0]);
        outcome.refill = 16;
        expect_tasks(w, advance(w, &o, &outcome, 1, 0), "n1 n2 l1");
}

static void a_hold_waits_for_a_person(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 10);
        (void)settle(w, &o, hold(&a.tasks[0]));
        (void)submit(w, "k", "2");
        world_step(w, 3600 * 1000);
        a = claim(w, &o, 10);
        assert_int_equal(a.tasks_count, 0);
        assert_true(a.next_due_ms == STORE_NEVER);
        struct store_key_info k = key(w, "k");
        assert_int_equal(k.state, KEY_HELD);
        assert_int_equal(k.tasks, 2);
        assert_true(span_is(k.reason, T("gave up")));
        assert_int_equal(key_act(w, CONTROL_RETRY, "k"), 0);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "1");
        assert_int_equal(a.controls_count, 1);
        assert_int_equal(a.controls[0].verb, CONTROL_RETRY);
        assert_true(span_is(a.controls[0].key, T("k")));
}

static void hold_reaches_the_owner_exactly_once_and_again_if_lost(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 10);
        assert_int_equal(key_act(w, CONTROL_HOLD, "k"), 0);
        assert_int_equal(key(w, "k").state, KEY_FREE); /* until the owner takes it up */
        assert_int_equal(counts(w, 0).controls, 1);
        assert_true(renew(w, &o).has_work);
        w->lose_next = true;
        (void)advance(w, &o, NULL, 0, 10);
        struct store_advance b = advance(w, &o, NULL, 0, 10); /* the same call again */
        assert_int_equal(b.controls_count, 1);
        assert_int_equal(b.controls[0].verb, CONTROL_HOLD);
        assert_int_equal(key(w, "k").state, KEY_HELD);
        (void)submit(w, "k", "2");
        b = claim(w, &o, 10);
        assert_int_equal(b.controls_count, 0);
        assert_int_equal(b.tasks_count, 0);
        (void)settle(w, &o, done(&a.tasks[0])); /* what runs may end; nothing follows it */
        assert_int_equal(key(w, "k").tasks, 1);
        assert_int_equal(key_act(w, CONTROL_UNHOLD, "k"), 0);
        expect_tasks(w, claim(w, &o, 10), "2");
        assert_int_equal(key(w, "k").state, KEY_FREE);
}

static void a_control_lost_with_its_owner_reaches_the_next(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct store_advance first = claim(w, &a, 1);
        (void)settle(w, &a, hold(&first.tasks[0]));
        (void)submit(w, "k", "2");
        (void)submit(w, "k", "3");
        (void)claim(w, &a, 10);
        assert_int_equal(key_act(w, CONTROL_SKIP, "k"), 0);
        w->lose_next = true;
        (void)advance(w, &a, NULL, 0, 0); /* applied; the answer is lost and the owner dies */
        world_reopen(w);
        world_step(w, TTL_MS);
        struct owner b = own(w, 0, 2, 2);
        struct store_advance next = claim(w, &b, 10);
        assert_int_equal(next.controls_count, 1);
        assert_int_equal(next.controls[0].verb, CONTROL_SKIP);
        expect_tasks(w, next, "2"); /* one head was skipped, not two */
        assert_int_equal(counts(w, 0).dead, 1);
}

static void keys_of_a_shard_that_nobody_owns_are_changed_at_once(void **state)
{
        struct world *w = *state;
        assert_int_equal(key_act(w, CONTROL_HOLD, "k"), 0);
        assert_int_equal(key(w, "k").state, KEY_HELD);
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct owner o = own(w, 0, 1, 1);
        assert_int_equal(claim(w, &o, 10).tasks_count, 0);
        assert_int_equal(release(w, &o), STORE_OK);
        assert_int_equal(key_act(w, CONTROL_SKIP, "k"), 0);
        assert_int_equal(counts(w, 0).dead, 1);
        o = own(w, 0, 2, 1);
        expect_tasks(w, claim(w, &o, 10), "2");
}

static void acting_on_a_free_key_is_refused(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        assert_int_equal(key_act(w, CONTROL_UNHOLD, "k"), -ENOENT);
        assert_int_equal(key_act(w, CONTROL_RETRY, "k"), -ENOENT);
        assert_int_equal(key_act(w, CONTROL_SKIP, "k"), -ENOENT);
        assert_int_equal(key_act(w, CONTROL_HOLD, "k\n"), -EINVAL);
}

static void retry_now_and_skip_act_on_a_parked_head(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcomes[] = { retry(&a.tasks[0], 3600 * 1000), divert(&a.tasks[1]) };
        (void)advance(w, &o, outcomes, 2, 0);
        struct store_key_info k = key(w, "k");
        assert_int_equal(k.state, KEY_PARKED);
        assert_true(k.due_in_ms == 3600 * 1000);
        assert_true(span_is(k.head, id));
        assert_true(span_is(k.reason, T("not now")));
        assert_int_equal(key_act(w, CONTROL_RETRY, "k"), 0);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "1");
        (void)settle(w, &o, retry(&a.tasks[0], 3600 * 1000));
        assert_int_equal(key_act(w, CONTROL_SKIP, "k"), 0);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "2");
        const struct store_listed *skipped = find(w, id);
        assert_non_null(skipped);
        assert_int_equal(skipped->state, STATE_DEAD);
        assert_true(span_is(skipped->reason, T("skipped")));
        assert_int_equal(skipped->note.attempts, 2);
}

static void many_parked_keys_do_not_fill_a_claim(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned round = 0; round < 3; round++) {
                struct store_outcome outcomes[200];
                for (unsigned i = 0; i < 200; i++)
                        (void)submit(w, F(w, "bad%u.%u", round, i).data, "x");
                for (unsigned claimed = 0; claimed < 200;) {
                        struct store_advance a = claim(w, &o, 200 - claimed);
                        for (unsigned i = 0; i < a.tasks_count; i++)
                                outcomes[i] = retry(&a.tasks[i], 1000);
                        claimed += a.tasks_count;
                        (void)advance(w, &o, outcomes, a.tasks_count, 0);
                }
        }
        (void)submit(w, "good", "g");
        expect_tasks(w, claim(w, &o, 10), "g");
        assert_int_equal(counts(w, 0).keys, 600);
        world_step(w, 1000);
        uint32_t back = 0;
        while (back < 600) {
                struct store_advance a = claim(w, &o, 256);
                assert_true(a.tasks_count > 0);
                back += a.tasks_count;
        }
        assert_int_equal(counts(w, 0).keys, 0);
}

/* Each asks for more of its key than all of them together may get. */
static void a_key_that_gets_no_more_of_its_tasks_in_a_call_gets_them_in_the_next(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_outcome outcomes[240];
        for (unsigned i = 0; i < 240; i++)
                (void)submit(w, F(w, "k%u", i % 80).data, F(w, "%u", i).data);
        struct store_task tasks[240];
        uint32_t count = 0;
        struct store_advance a;
        while (count < 240) {
                a = claim(w, &o, 240 - count);
                assert_true(a.tasks_count > 0);
                memcpy(tasks + count, a.tasks, a.tasks_count * sizeof(*tasks));
                count += a.tasks_count;
        }
        for (unsigned i = 0; i < 160; i++)
                outcomes[i] = divert(&tasks[239 - i]);
        (void)advance(w, &o, outcomes, 160, 0);
        for (unsigned i = 0; i < 400; i++)
                (void)submit(w, F(w, "k%u", i % 80).data, "more");
        assert_int_equal(claim(w, &o, 256).tasks_count + claim(w, &o, 256).tasks_count, 0); /* behind the others */
        for (unsigned i = 0; i < 80; i++) {
                outcomes[i] = done(&tasks[i]);
                outcomes[i].refill = 16;
        }
        a = advance(w, &o, outcomes, 80, 0);
        assert_int_equal(a.tasks_count, STORE_CALL_TASKS);
        assert_int_equal(a.next_due_ms, 0);
        assert_true(claim(w, &o, 256).tasks_count > 0);
}

static void expect_parked(struct world *w, uint64_t high, uint64_t normal, uint64_t low)
{
        struct store_counts c = counts(w, 0);
        assert_int_equal(c.parked[LANE_HIGH], high);
        assert_int_equal(c.parked[LANE_NORMAL], normal);
        assert_int_equal(c.parked[LANE_LOW], low);
        expect_sound(w);
}

/* By every way into a side queue and out of it. */
static void what_is_parked_is_counted_by_lane(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned lane = 0; lane < LANES; lane++)
                (void)submit_lane(w, F(w, "k%u", lane).data, "1", (enum lane)lane);
        struct store_advance a = claim_each(w, &o, 1, 1, 1);
        struct store_outcome aside[] = { retry(&a.tasks[0], 100), hold(&a.tasks[1]), divert(&a.tasks[2]) };
        aside[2].delay_ms = 100;
        (void)advance(w, &o, aside, 3, 0);
        expect_parked(w, 1, 1, 1);
        /* Behind others of their keys: the claim itself puts them there. */
        struct span cancelled[LANES];
        for (unsigned lane = 0; lane < LANES; lane++) {
                cancelled[lane] = submit_lane(w, F(w, "k%u", lane).data, "2", (enum lane)lane);
                (void)submit_lane(w, F(w, "k%u", lane).data, "3", (enum lane)lane);
        }
        assert_int_equal(claim_each(w, &o, 8, 8, 8).tasks_count, 0);
        expect_parked(w, 3, 3, 3);
        for (unsigned lane = 0; lane < LANES; lane++)
                assert_int_equal(cancel(w, cancelled[lane], NULL), 0);
        expect_parked(w, 2, 2, 2);
        assert_int_equal(release(w, &o), STORE_OK);
        for (unsigned lane = 0; lane < LANES; lane++) {
                assert_int_equal(key_act(w, CONTROL_HOLD, F(w, "k%u", lane).data), 0);
                assert_int_equal(key_act(w, CONTROL_SKIP, F(w, "k%u", lane).data), 0);
        }
        expect_parked(w, 1, 1, 1);
        o = own(w, 0, 2, 1);
        assert_int_equal(claim_each(w, &o, 8, 8, 8).tasks_count, 3);
        expect_parked(w, 0, 0, 0);
}

const struct CMUnitTest side_tests[] = {
        IN_WORLD(what_is_parked_is_counted_by_lane),
        IN_WORLD(a_key_that_gets_no_more_of_its_tasks_in_a_call_gets_them_in_the_next),
        IN_WORLD(a_retry_is_not_overtaken),
        IN_WORLD(a_new_owner_does_not_start_what_waits_behind_a_retry),
        IN_WORLD(a_new_owner_does_not_start_what_waits_behind_a_time),
        IN_WORLD(a_key_with_more_than_its_share_leaves_room_for_others),
        IN_WORLD(a_waiting_key_comes_back_by_itself),
        IN_WORLD(lanes_hold_in_side_queues_too),
        IN_WORLD(a_hold_waits_for_a_person),
        IN_WORLD(hold_reaches_the_owner_exactly_once_and_again_if_lost),
        IN_WORLD(a_control_lost_with_its_owner_reaches_the_next),
        IN_WORLD(keys_of_a_shard_that_nobody_owns_are_changed_at_once),
        IN_WORLD(acting_on_a_free_key_is_refused),
        IN_WORLD(retry_now_and_skip_act_on_a_parked_head),
        IN_WORLD(many_parked_keys_do_not_fill_a_claim),
};
GROUP(side);
