/* Looking and intervening: counts, lists, find, cancel, dead tasks, desired state, status documents. */
#include "harness.h"
#include "store/app.h"

static void counts_add_up_in_every_state(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 12; i++)
                (void)submit_lane(w, F(w, "k%u", i).data, "x", (enum lane)(i % 3));
        (void)submit_delayed(w, "k", "x", 1000);
        struct store_advance a = claim_each(w, &o, 4, 4, 0);
        struct store_outcome outcomes[] = { done(&a.tasks[0]), retry(&a.tasks[1], 100), dead(&a.tasks[2], "rejected"),
                hold(&a.tasks[3]) };
        (void)advance(w, &o, outcomes, 4, 0);
        struct store_counts c = counts(w, 0);
        assert_int_equal(c.submitted, 13);
        assert_int_equal(c.queued[LANE_HIGH], 0);
        assert_int_equal(c.queued[LANE_NORMAL], 0);
        assert_int_equal(c.queued[LANE_LOW], 4);
        assert_int_equal(c.delayed, 1);
        assert_int_equal(c.in_flight, 4);
        assert_int_equal(c.parked, 2);
        assert_int_equal(c.dead, 1);
        assert_int_equal(c.done, 1);
        assert_true(c.is_held);
        assert_int_equal(c.left_ms, TTL_MS);
        assert_int_equal(list(w, 0, STATE_QUEUED).tasks_count, 4);
        assert_int_equal(list(w, 0, STATE_DELAYED).tasks_count, 1);
        assert_int_equal(list(w, 0, STATE_IN_FLIGHT).tasks_count, 4);
        assert_int_equal(list(w, 0, STATE_PARKED).tasks_count, 2);
        assert_int_equal(list(w, 0, STATE_DEAD).tasks_count, 1);
}

static uint64_t store_now_ms(struct world *w)
{
        assert_int_equal(key_act(w, CONTROL_HOLD, "clock"), 0);
        uint64_t now_ms = key(w, "clock").since_ms;
        assert_int_equal(key_act(w, CONTROL_UNHOLD, "clock"), 0);
        return now_ms;
}

static void submit_at(struct world *w, const char *name, enum lane lane, uint64_t submitted_ms)
{
        struct store_submission item = {
                .envelope = { .key = T(name), .handler = T("h"), .lane = lane, .submitted_ms = submitted_ms }
        };
        assert_int_equal(submit_items(w, &item, 1), 0);
}

/* Waiting is waiting: queued, claimed, or behind a key that waits. */
static void the_oldest_task_is_known_whoever_holds_it(void **state)
{
        struct world *w = *state;
        uint64_t began_ms = store_now_ms(w);
        struct owner o = own(w, 0, 1, 1);
        submit_at(w, "first", LANE_LOW, began_ms);
        submit_at(w, "second", LANE_NORMAL, began_ms + 500);
        submit_at(w, "third", LANE_HIGH, began_ms + 800);
        world_step(w, 800);
        assert_int_equal(counts(w, 0).oldest_ms, 800);
        assert_int_equal(counts(w, 0).time_ms, began_ms + 800);
        struct store_advance a = claim(w, &o, 10);
        assert_int_equal(a.tasks_count, 3);
        assert_int_equal(counts(w, 0).oldest_ms, 800);
        (void)settle(w, &o, done(&a.tasks[2]));
        assert_int_equal(counts(w, 0).oldest_ms, 300);
        assert_int_equal(release(w, &o), STORE_OK);
        world_step(w, 100);
        assert_int_equal(counts(w, 0).oldest_ms, 400);
        o = own(w, 0, 2, 2);
        struct store_outcome outcomes[] = { retry(&o.granted.page.tasks[1], 1000), done(&o.granted.page.tasks[0]) };
        (void)advance(w, &o, outcomes, 2, 0);
        assert_int_equal(counts(w, 0).oldest_ms, 0);
        world_step(w, 50);
        assert_int_equal(key(w, "second").head_age_ms, 450);
        assert_int_equal(key(w, "third").head_age_ms, 0);
}

/* A producer's clock may be anywhere. */
static void nothing_is_older_than_its_app(void **state)
{
        struct world *w = *state;
        struct store_info info;
        uint64_t began_ms = store_now_ms(w);
        struct owner o = own(w, 0, 1, 1);
        store_info(w->store, &info);
        assert_in_range(info.record->created_ms, 1, began_ms);
        submit_at(w, "first", LANE_NORMAL, 1);
        world_step(w, 800);
        uint64_t age_ms = began_ms + 800 - info.record->created_ms;
        assert_int_equal(counts(w, 0).oldest_ms, age_ms);
        struct store_advance a = claim(w, &o, 10);
        (void)settle(w, &o, retry(&a.tasks[0], 1000));
        assert_int_equal(key(w, "first").head_age_ms, age_ms);
        world_reopen(w);
        store_info(w->store, &info);
        assert_int_equal(began_ms + 800 - info.record->created_ms, age_ms);
}

static void lists_page_through_everything_once(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < 100; i++)
                (void)submit_lane(w, F(w, "k%u", i % 9).data, F(w, "%u", i).data, (enum lane)(i % 3));
        for (unsigned i = 0; i < 50; i++)
                (void)submit_delayed(w, "later", F(w, "%u", i).data, 1000 - i % 7);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim_each(w, &o, 34, 26, 0);
        struct store_outcome outcomes[40];
        for (unsigned i = 0; i < 40; i++)
                outcomes[i] = i % 2 ? retry(&a.tasks[i], 500) : dead(&a.tasks[i], "rejected");
        (void)advance(w, &o, outcomes, 40, 0);
        for (unsigned s = 0; s < STATES; s++)
                for (uint32_t size = 1; size <= 64; size *= 4)
                        assert_int_equal(list_pages(w, 0, (enum store_state)s, size),
                                list_pages(w, 0, (enum store_state)s, 256));
        assert_int_equal(list_pages(w, 0, STATE_QUEUED, 7), 40);
        assert_int_equal(list_pages(w, 0, STATE_DELAYED, 7), 50);
        assert_int_equal(list_pages(w, 0, STATE_IN_FLIGHT, 7), 20);
        assert_int_equal(list_pages(w, 0, STATE_PARKED, 7), 20);
        assert_int_equal(list_pages(w, 0, STATE_DEAD, 7), 20);
}

static void find_knows_every_state(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span ids[5];
        ids[STATE_DEAD] = submit(w, "a", "x");
        ids[STATE_PARKED] = submit(w, "b", "x");
        ids[STATE_IN_FLIGHT] = submit(w, "c", "x");
        struct store_advance a = claim(w, &o, 3);
        struct store_outcome outcomes[] = { dead(&a.tasks[0], "rejected"), retry(&a.tasks[1], 100) };
        (void)advance(w, &o, outcomes, 2, 0);
        ids[STATE_QUEUED] = submit(w, "d", "payload");
        ids[STATE_DELAYED] = submit_delayed(w, "e", "x", 100);
        for (unsigned s = 0; s < STATES; s++) {
                const struct store_listed *task = find(w, ids[s]);
                assert_non_null(task);
                assert_int_equal(task->state, s);
                assert_true(span_is(task->id, ids[s]));
        }
        assert_true(span_is(find(w, ids[STATE_QUEUED])->envelope.payload, T("payload")));
        assert_true(span_is(find(w, ids[STATE_PARKED])->key, T("b")));
        assert_int_equal(find(w, ids[STATE_DELAYED])->due_in_ms, 100);
        assert_null(find(w, T("nobody-0")));
}

static void find_reads_a_long_log_in_slices(void **state)
{
        struct world *w = *state;
        static struct store_submission items[1000];
        for (unsigned round = 0; round < 10; round++) {
                for (unsigned i = 0; i < 1000; i++)
                        items[i] = (struct store_submission){
                                .envelope = { .key = T("k"), .handler = T("h"), .lane = LANE_NORMAL }
                        };
                assert_int_equal(submit_items(w, items, 1000), 0);
        }
        const struct store_listed *task = find(w, T(items[999].id));
        assert_non_null(task);
        assert_int_equal(task->state, STATE_QUEUED);
}

/* --- cancel ------------------------------------------------------------------------------------------------------ */

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

/* --- keys, desired state, status --------------------------------------------------------------------------------- */

static void keys_are_listed_with_their_reasons(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 20; i++) {
                (void)submit(w, F(w, "k%u", i).data, "x");
                struct store_advance a = claim(w, &o, 1);
                (void)settle(w, &o, i % 2 ? retry(&a.tasks[0], 100 + i) : hold(&a.tasks[0]));
        }
        assert_int_equal(keys_pages(w, 0, 3), 20);
        assert_int_equal(keys_pages(w, 0, 100), 20);
        assert_int_equal(key(w, "k3").due_in_ms, 103);
}

static void the_desired_state_has_a_version_and_survives(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        uint64_t first = desired_set(w, "pause", "yes");
        uint64_t second = desired_set(w, "pause.mail", "no");
        assert_true(second > first);
        assert_true(renew_version(w, &o) == second);
        world_reopen(w);
        struct store_desired_get get = desired_get(w);
        assert_int_equal(get.version, second);
        assert_int_equal(get.items_count, 2);
        assert_true(span_is(get.items[0].name, T("pause")));
        assert_true(span_is(get.items[0].value, T("yes")));
        assert_true(desired_set(w, "pause", NULL) > second);
        get = desired_get(w);
        assert_int_equal(get.items_count, 1);
        for (unsigned i = 1; i < STORE_DESIRED_MAX; i++)
                (void)desired_set(w, F(w, "n%u", i).data, "x");
        struct store_desired_set one_more = { .item = { T("more"), T("x") }, .has_value = true };
        assert_int_equal(call_desired_set(w, &one_more), -E2BIG);
}

static void status_documents_show_their_age_and_go(void **state)
{
        struct world *w = *state;
        assert_int_equal(status_put(w, 1, "{\"a\":1}", 5000), 0);
        assert_int_equal(status_put(w, 2, "{}", 1000), 0);
        world_step(w, 500);
        assert_int_equal(status_put(w, 1, "{\"a\":2}", 5000), 0);
        struct store_status_list l = status_list(w);
        assert_int_equal(l.items_count, 2);
        assert_int_equal(l.items[0].nonce[0], 1);
        assert_true(span_is(l.items[0].document, T("{\"a\":2}")));
        assert_int_equal(l.items[0].age_ms, 0);
        assert_int_equal(l.items[1].age_ms, 500);
        world_step(w, 500);
        assert_int_equal(status_list(w).items_count, 1);
        assert_int_equal(status_put(w, 1, "", 5000), 0);
        assert_int_equal(status_list(w).items_count, 0);
        char *large = calloc(1, STORE_STATUS_MAX + 2);
        assert_non_null(large);
        memset(large, 'x', STORE_STATUS_MAX + 1);
        assert_int_equal(status_put(w, 1, large, 1000), -EINVAL);
        free(large);
}

static uint64_t total(struct world *w, const char *name)
{
        struct store_status_list l = status_list(w);
        for (uint32_t i = 0; i < l.totals_count; i++)
                if (span_is(l.totals[i].name, T(name)))
                        return l.totals[i].value;
        return 0;
}

static void put_counter(struct world *w, uint8_t who, const char *document, uint64_t before, uint64_t value)
{
        struct store_counter counter = { T("mail.done"), before, value };
        struct store_status_put put = {
                .document = T(document), .keep_ms = 1000, .counters = &counter, .counters_count = 1
        };
        memset(put.nonce, who, sizeof(put.nonce));
        assert_int_equal(call_status_put(w, &put), 0);
}

static void counters_only_grow_whoever_comes_and_goes(void **state)
{
        struct world *w = *state;
        put_counter(w, 1, "{}", 0, 5);
        assert_int_equal(total(w, "mail.done"), 5);
        put_counter(w, 1, "{}", 0, 5); /* a repeat, whose answer was lost */
        put_counter(w, 2, "{}", 0, 10);
        put_counter(w, 1, "{}", 5, 7);
        assert_int_equal(total(w, "mail.done"), 17);
        put_counter(w, 1, "", 7, 8); /* it leaves */
        assert_int_equal(total(w, "mail.done"), 18);
        world_step(w, 2000); /* the other falls silent, is forgotten, and comes back */
        put_counter(w, 3, "{}", 0, 1);
        put_counter(w, 2, "{}", 10, 11);
        assert_int_equal(total(w, "mail.done"), 20);
        world_reopen(w);
        assert_int_equal(total(w, "mail.done"), 20);
        struct store_counter wrong = { T("mail.done"), 2, 1 };
        struct store_status_put put = { .document = T("{}"), .keep_ms = 1000, .counters = &wrong, .counters_count = 1 };
        assert_int_equal(call_status_put(w, &put), -EINVAL);
}

static void what_runs_is_a_document_of_its_own(void **state)
{
        struct world *w = *state;
        struct store_status_put put = { .kind = DOCUMENT_RUNNING, .document = T("{\"tasks\":[]}"), .keep_ms = 1000 };
        memset(put.nonce, 1, sizeof(put.nonce));
        assert_int_equal(call_status_put(w, &put), 0);
        assert_int_equal(status_put(w, 1, "{}", 5000), 0);
        struct store_status_list l = status_list_of(w, DOCUMENT_RUNNING);
        assert_int_equal(l.items_count, 1);
        assert_int_equal(l.items[0].nonce[0], 1);
        assert_true(span_is(l.items[0].document, T("{\"tasks\":[]}")));
        l = status_list(w);
        assert_int_equal(l.items_count, 1);
        assert_true(span_is(l.items[0].document, T("{}")));
        world_step(w, 1500);
        assert_int_equal(status_list_of(w, DOCUMENT_RUNNING).items_count, 0);
        assert_int_equal(status_list(w).items_count, 1);
        char *large = calloc(1, STORE_RUNNING_MAX + 2);
        assert_non_null(large);
        memset(large, 'x', STORE_RUNNING_MAX);
        put.document = T(large);
        assert_int_equal(call_status_put(w, &put), 0);
        large[STORE_RUNNING_MAX] = 'x';
        put.document = T(large);
        assert_int_equal(call_status_put(w, &put), -EINVAL);
        free(large);
}

static void what_was_done_is_a_document_too_and_can_be_read_alone(void **state)
{
        struct world *w = *state;
        struct store_status_list one = { .kind = DOCUMENT_DONE, .is_one = true };
        for (uint8_t n = 1; n <= 2; n++) {
                struct store_status_put put = { .kind = DOCUMENT_DONE,
                        .document = n == 1 ? T("{\"n\":1}") : T("{\"n\":2}"),
                        .keep_ms = 1000u * n };
                memset(put.nonce, n, sizeof(put.nonce));
                assert_int_equal(call_status_put(w, &put), 0);
        }
        assert_int_equal(status_list_of(w, DOCUMENT_DONE).items_count, 2);
        assert_int_equal(status_list_of(w, DOCUMENT_RUNNING).items_count, 0);
        assert_int_equal(status_list(w).items_count, 0);
        memset(one.nonce, 1, sizeof(one.nonce));
        one = status_list_one(w, one);
        assert_int_equal(one.items_count, 1);
        assert_int_equal(one.items[0].nonce[0], 1);
        assert_true(span_is(one.items[0].document, T("{\"n\":1}")));
        one = (struct store_status_list){ .kind = DOCUMENT_DONE, .is_one = true, .nonce = { 7 } };
        assert_int_equal(status_list_one(w, one).items_count, 0);
        world_step(w, 1500); /* the first is forgotten */
        memset(one.nonce, 1, sizeof(one.nonce));
        assert_int_equal(status_list_one(w, one).items_count, 0);
        memset(one.nonce, 2, sizeof(one.nonce));
        assert_int_equal(status_list_one(w, one).items_count, 1);
}

static void an_hour_is_a_document_with_a_limit_of_its_own(void **state)
{
        struct world *w = *state;
        char *large = calloc(1, STORE_HISTORY_MAX + 2);
        assert_non_null(large);
        memset(large, 'x', STORE_HISTORY_MAX);
        struct store_status_put put = { .kind = DOCUMENT_HISTORY, .document = T(large), .keep_ms = 1000 };
        memset(put.nonce, 1, sizeof(put.nonce));
        assert_int_equal(call_status_put(w, &put), 0);
        struct store_status_list l = status_list_of(w, DOCUMENT_HISTORY);
        assert_int_equal(l.items_count, 1);
        assert_int_equal(l.items[0].document.size, STORE_HISTORY_MAX);
        assert_int_equal(status_list_of(w, DOCUMENT_DONE).items_count, 0);
        assert_int_equal(status_list(w).items_count, 0);
        large[STORE_HISTORY_MAX] = 'x';
        put.document = T(large);
        assert_int_equal(call_status_put(w, &put), -EINVAL);
        world_step(w, 1500);
        assert_int_equal(status_list_of(w, DOCUMENT_HISTORY).items_count, 0);
        free(large);
}

/* --- dead, by group ----------------------------------------------------------------------------------------------- */

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

/* --- moving house ------------------------------------------------------------------------------------------------- */

static void an_owned_shard_is_not_repaired(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        assert_true(repair(w, 0) < 0);
        assert_int_equal(release(w, &o), STORE_OK);
        assert_int_equal(repair(w, 0), 0);
}

const struct CMUnitTest admin_tests[] = {
        IN_WORLD(an_owned_shard_is_not_repaired),
        IN_WORLD(counts_add_up_in_every_state),
        IN_WORLD(the_oldest_task_is_known_whoever_holds_it),
        IN_WORLD(nothing_is_older_than_its_app),
        IN_WORLD(lists_page_through_everything_once),
        IN_WORLD(find_knows_every_state),
        IN_WORLD(find_reads_a_long_log_in_slices),
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
        IN_WORLD(keys_are_listed_with_their_reasons),
        IN_WORLD(the_desired_state_has_a_version_and_survives),
        IN_WORLD(status_documents_show_their_age_and_go),
        IN_WORLD(counters_only_grow_whoever_comes_and_goes),
        IN_WORLD(what_runs_is_a_document_of_its_own),
        IN_WORLD(what_was_done_is_a_document_too_and_can_be_read_alone),
        IN_WORLD(an_hour_is_a_document_with_a_limit_of_its_own),
        IN_WORLD(the_dead_are_counted_by_reason_and_first_line),
        IN_WORLD(groups_of_the_dead_are_few_and_add_up),
};
GROUP(admin);
