/* Keys that wait for a name instead of a time. */
#include <errno.h>

#include "call.h"
#include "harness.h"
#include "store/names.h"

static struct store_outcome divert_for(const struct store_task *task, const char *name)
{
        struct store_outcome outcome = divert(task);
        outcome.name = T(name);
        outcome.reason = T("its handler is paused");
        return outcome;
}

static struct store_wake wake(struct world *w, struct owner *o, const char *name, uint32_t max)
{
        struct store_wake woken = wake_call(w, o, ++o->call, T(name), max);
        assert_int_equal(woken.request.status, 0);
        assert_int_equal(woken.verdict, STORE_OK);
        return woken;
}

static void keep_names(struct world *w, struct store_request *request)
{
        struct store_names *n = (struct store_names *)request;
        n->names = keep_array(w, n->names, n->names_count, sizeof(*n->names));
        for (uint32_t i = 0; i < n->names_count; i++)
                n->names[i] = keep(w, n->names[i]);
}

static struct store_names names_after(struct world *w, const struct owner *o, struct span after)
{
        struct store_names names = { .lease = o->lease, .after = after };
        assert_int_equal(CALL(w, store_names, &names, keep_names), 0);
        return names;
}

/* One claimed task of each key, all diverted to wait for the name. */
static void name_all(struct world *w, struct owner *o, unsigned count, const char *name)
{
        struct store_outcome outcomes[STORE_CALL_TASKS];
        struct store_advance a = claim(w, o, count);
        assert_int_equal(a.tasks_count, count);
        for (unsigned i = 0; i < count; i++)
                outcomes[i] = divert_for(&a.tasks[i], name);
        (void)advance(w, o, outcomes, count, 0);
}

static void a_key_that_waits_for_a_name_has_no_due_time(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        assert_false(o.granted.has_names);
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcomes[] = { divert_for(&a.tasks[1], "handler:h"),
                divert_for(&a.tasks[0], "handler:h") };
        a = advance(w, &o, outcomes, 2, 10);
        assert_int_equal(a.tasks_count, 0);
        assert_int_equal(a.next_due_ms, STORE_NEVER);
        assert_false(store_has_more(&a));
        struct store_key_info k = key(w, "k");
        assert_int_equal(k.state, KEY_NAMED);
        assert_true(span_is(k.name, T("handler:h")));
        assert_true(span_is(k.reason, T("its handler is paused")));
        assert_int_equal(k.tasks, 2);
        (void)submit(w, "k", "3"); /* claim itself puts it behind them */
        world_step(w, 100 * STORE_WAITING_MS);
        assert_int_equal(acquire(w, &o), 0);
        assert_true(o.granted.has_names);
        a = claim(w, &o, 10);
        assert_int_equal(a.tasks_count, 0);
        assert_int_equal(a.next_due_ms, STORE_NEVER);
        assert_int_equal(key(w, "k").tasks, 3);
        assert_false(renew(w, &o).has_work);
        expect_sound(w);
}

static void a_wake_brings_the_head_and_then_the_rest_in_order(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 1; i <= 4; i++)
                (void)submit(w, "k", F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 3);
        struct store_outcome outcomes[] = { divert_for(&a.tasks[2], "handler:h"), divert_for(&a.tasks[1], "handler:h"),
                divert_for(&a.tasks[0], "handler:h") };
        (void)advance(w, &o, outcomes, 3, 10);
        assert_int_equal(wake(w, &o, "handler:other", 10).woken, 0);
        assert_int_equal(claim(w, &o, 10).tasks_count, 0);
        struct store_wake woken = wake(w, &o, "handler:h", 10);
        assert_int_equal(woken.woken, 1);
        assert_false(woken.has_more);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "1");
        struct store_outcome head = done(&a.tasks[0]);
        head.refill = 16;
        expect_tasks(w, advance(w, &o, &head, 1, 10), "2 3 4");
        assert_int_equal(counts(w, 0).keys, 0);
        assert_int_equal(names_after(w, &o, (struct span){ 0 }).names_count, 0);
        expect_sound(w);
}

static void those_that_wait_longest_are_woken_first_page_by_page(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 5; i++) {
                (void)submit(w, F(w, "%u", 9 - i).data, F(w, "%u", i).data);
                name_all(w, &o, 1, "limit:api");
                world_step(w, 10);
        }
        struct store_wake woken = wake(w, &o, "limit:api", 2);
        assert_int_equal(woken.woken, 2);
        assert_true(woken.has_more);
        expect_tasks(w, claim(w, &o, 10), "1 0"); /* due at once, so by key */
        woken = wake(w, &o, "limit:api", 2);
        assert_true(woken.has_more);
        expect_tasks(w, claim(w, &o, 10), "3 2");
        woken = wake(w, &o, "limit:api", 2);
        assert_int_equal(woken.woken, 1);
        assert_false(woken.has_more);
        expect_tasks(w, claim(w, &o, 10), "4");
        expect_sound(w);
}

static void a_wake_is_fenced_and_numbered(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "j", "1");
        (void)submit(w, "k", "2");
        name_all(w, &o, 2, "handler:h");
        struct owner other = owner_of(0, 1, 2);
        assert_int_equal(wake_call(w, &other, o.call + 1, T("handler:h"), 1).verdict, STORE_FENCED);
        other = owner_of(0, 2, 1);
        assert_int_equal(wake_call(w, &other, o.call + 1, T("handler:h"), 1).verdict, STORE_FENCED);
        assert_int_equal(wake_call(w, &o, o.call + 2, T("handler:h"), 1).verdict, STORE_FENCED);
        assert_int_equal(wake_call(w, &o, o.call - 1, T("handler:h"), 1).verdict, STORE_FENCED);
        assert_int_equal(key(w, "j").state, KEY_NAMED);
        w->lose_next = true;
        assert_int_equal(wake_call(w, &o, o.call + 1, T("handler:h"), 1).request.status, -ETIMEDOUT);
        struct store_wake again = wake_call(w, &o, o.call + 1, T("handler:h"), 1);
        assert_int_equal(again.verdict, STORE_OK);
        assert_int_equal(again.woken, 0);
        assert_true(again.has_more);
        o.call++;
        assert_int_equal(key(w, "k").state, KEY_NAMED);
        expect_tasks(w, claim(w, &o, 10), "1");
        /* A call that was under way when the shard changed hands does nothing. */
        world_step(w, TTL_MS);
        struct owner next = own(w, 0, 2, 2);
        assert_int_equal(wake_call(w, &o, o.call + 1, T("handler:h"), 1).verdict, STORE_FENCED);
        assert_int_equal(key(w, "k").state, KEY_NAMED);
        assert_int_equal(wake(w, &next, "handler:h", 1).woken, 1);
}

static void a_new_owner_finds_the_names(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 150; i++) {
                (void)submit(w, F(w, "k%u", i).data, "x");
                name_all(w, &a, 1, F(w, "limit:api/%03u", i).data);
        }
        world_reopen(w);
        world_step(w, TTL_MS);
        struct owner b = own(w, 0, 2, 2);
        assert_true(b.granted.has_names);
        assert_int_equal(b.granted.page.tasks_count, 0);
        struct span after = { 0 };
        unsigned count = 0;
        struct store_names names;
        do {
                names = names_after(w, &b, after);
                assert_int_equal(names.verdict, STORE_OK);
                for (uint32_t i = 0; i < names.names_count; i++)
                        assert_true(span_is(names.names[i], F(w, "limit:api/%03u", count++)));
                after = names.names[names.names_count - 1];
        } while (names.has_more);
        assert_int_equal(count, 150);
        assert_int_equal(names_after(w, &a, (struct span){ 0 }).verdict, STORE_FENCED);
}

/* A key may have tasks of several handlers: it waits for what its first one waits for. */
static void a_key_waits_for_what_its_first_task_waits_for(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 1; i <= 3; i++)
                (void)submit(w, "k", F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcomes[] = { divert_for(&a.tasks[1], "handler:b"),
                divert_for(&a.tasks[2], "handler:c") };
        (void)advance(w, &o, outcomes, 2, 0);
        assert_true(span_is(key(w, "k").name, T("handler:b")));
        struct store_outcome first = divert_for(&a.tasks[0], "handler:a");
        (void)advance(w, &o, &first, 1, 0);
        assert_true(span_is(key(w, "k").name, T("handler:a")));
        assert_int_equal(wake(w, &o, "handler:b", 10).woken, 0);
        assert_int_equal(wake(w, &o, "handler:a", 10).woken, 1);
        expect_tasks(w, claim(w, &o, 10), "1");
        expect_sound(w);
}

/* The owner died while one of the key's tasks ran before those that wait for a name. */
static void what_was_in_flight_before_them_is_not_kept_waiting(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct store_advance claimed = claim(w, &a, 10);
        (void)settle(w, &a, divert_for(&claimed.tasks[1], "handler:h"));
        world_step(w, TTL_MS);
        struct owner b = own(w, 0, 2, 2);
        assert_int_equal(b.granted.page.tasks_count, 1);
        assert_true(b.granted.page.tasks[0].is_key_waiting);
        struct store_outcome back = divert(&b.granted.page.tasks[0]);
        back.delay_ms = 0;
        (void)settle(w, &b, back);
        assert_int_equal(key(w, "k").state, KEY_WAITING);
        claimed = claim(w, &b, 10);
        expect_tasks(w, claimed, "1");
        struct store_outcome head = done(&claimed.tasks[0]);
        head.refill = 1;
        expect_tasks(w, advance(w, &b, &head, 1, 10), "2");
        expect_sound(w);
}

static void a_retry_and_a_hold_come_before_a_name(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcomes[] = { retry(&a.tasks[0], 500), divert_for(&a.tasks[1], "handler:h") };
        (void)advance(w, &o, outcomes, 2, 0);
        assert_int_equal(key(w, "k").state, KEY_PARKED);
        world_step(w, 500);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "1");
        struct store_outcome again[] = { hold(&a.tasks[0]) };
        (void)advance(w, &o, again, 1, 0);
        assert_int_equal(key(w, "k").state, KEY_HELD);
        assert_int_equal(wake(w, &o, "handler:h", 10).woken, 0);
        expect_sound(w);
}

static void people_can_act_on_a_key_that_waits_for_a_name(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span ids[4];
        for (unsigned i = 0; i < 4; i++)
                ids[i] = submit(w, "k", F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 4);
        struct store_outcome outcomes[4];
        for (unsigned i = 0; i < 4; i++)
                outcomes[i] = divert_for(&a.tasks[3 - i], "handler:h");
        (void)advance(w, &o, outcomes, 4, 0);
        assert_int_equal(release(w, &o), STORE_OK);
        bool is_pending = true;
        assert_int_equal(cancel(w, ids[2], &is_pending), 0);
        assert_int_equal(key(w, "k").tasks, 3);
        assert_int_equal(key_act(w, CONTROL_HOLD, "k"), 0);
        assert_int_equal(key(w, "k").state, KEY_HELD);
        assert_int_equal(key_act(w, CONTROL_UNHOLD, "k"), 0);
        o = own(w, 0, 2, 1);
        assert_false(o.granted.has_names);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "0");
        (void)settle(w, &o, divert_for(&a.tasks[0], "handler:h"));
        assert_int_equal(release(w, &o), STORE_OK);
        assert_int_equal(key_act(w, CONTROL_SKIP, "k"), 0);
        assert_int_equal(counts(w, 0).dead, 2);
        o = own(w, 0, 3, 1);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "1");
        (void)settle(w, &o, divert_for(&a.tasks[0], "handler:h"));
        assert_int_equal(key_act(w, CONTROL_RETRY, "k"), 0);
        expect_tasks(w, claim(w, &o, 10), "1");
        expect_sound(w);
}

static void the_last_task_of_such_a_key_takes_it_out_of_the_index(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "k", "1");
        name_all(w, &o, 1, "handler:h");
        bool is_pending = true;
        assert_int_equal(cancel(w, id, &is_pending), 0);
        assert_int_equal(counts(w, 0).keys, 0);
        assert_int_equal(names_after(w, &o, (struct span){ 0 }).names_count, 0);
        expect_sound(w);
}

static void a_bad_name_is_refused(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 1);
        char text[STORE_NAME_MAX + 2];
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        const char *const bad[] = { "two words", "line\n", "caf\xc3\xa9", text };
        for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct store_outcome outcome = divert_for(&a.tasks[0], bad[i]);
                assert_int_equal(advance_call(w, &o, o.call + 1, &outcome, 1, 0).request.status, -EINVAL);
                assert_int_equal(wake_call(w, &o, o.call + 1, T(bad[i]), 1).request.status, -EINVAL);
        }
        assert_int_equal(wake_call(w, &o, o.call + 1, T(""), 1).request.status, -EINVAL);
        struct store_outcome other = done(&a.tasks[0]);
        other.name = T("handler:h");
        assert_int_equal(advance_call(w, &o, o.call + 1, &other, 1, 0).request.status, -EINVAL);
        text[STORE_NAME_MAX] = 0;
        (void)settle(w, &o, divert_for(&a.tasks[0], text));
        assert_int_equal(wake(w, &o, text, 1).woken, 1);
}

/* Names that begin alike are not confused. */
static void a_name_is_matched_whole(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        name_all(w, &o, 1, "handler:mailer");
        assert_int_equal(wake(w, &o, "handler:mail", 1).woken, 0);
        assert_int_equal(wake(w, &o, "handler:mailer", 1).woken, 1);
}

const struct CMUnitTest names_tests[] = {
        IN_WORLD(a_key_that_waits_for_a_name_has_no_due_time),
        IN_WORLD(a_wake_brings_the_head_and_then_the_rest_in_order),
        IN_WORLD(those_that_wait_longest_are_woken_first_page_by_page),
        IN_WORLD(a_wake_is_fenced_and_numbered),
        IN_WORLD(a_new_owner_finds_the_names),
        IN_WORLD(a_key_waits_for_what_its_first_task_waits_for),
        IN_WORLD(what_was_in_flight_before_them_is_not_kept_waiting),
        IN_WORLD(a_retry_and_a_hold_come_before_a_name),
        IN_WORLD(people_can_act_on_a_key_that_waits_for_a_name),
        IN_WORLD(the_last_task_of_such_a_key_takes_it_out_of_the_index),
        IN_WORLD(a_bad_name_is_refused),
        IN_WORLD(a_name_is_matched_whole),
};
GROUP(names);
