/* Tasks that workers outside run: what is handed out to whom, for how long, and what becomes of it. */
#include "remote_rig.h"

/* --- handing out --- */

static void a_task_goes_out_once_its_start_is_durable(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_own(&w);
        hand_task(&w, 1, "k");
        call_store(&w);
        ask_now(&w, &a, "alice");
        assert_false(a.is_done);
        const struct store_outcome *o = call_telling(&w, 1, STORE_START);
        assert_true(span_is(o->holder, SPAN_TEXT("worker/40.1/alice")));
        assert_int_equal(o->until_ms, TTL_MS);
        turn(&w);
        assert_false(a.is_done);
        w.now_ms += 100;
        answer_call(&w, STORE_OK);
        assert_true(a.is_done);
        assert_int_equal(a.verdict, WORK_TASK);
        assert_string_equal(a.id, "k");
        /* It counts from before the call was sent, and less than was recorded. */
        assert_int_equal(a.remaining_ms, TTL_MS - TTL_MS / 10 - 100);
        world_close(&w);
}

static void polls_are_served_in_order_and_end_in_time(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        struct asked c;
        world_own(&w);
        ask(&w, &a, "alice", 1000);
        ask(&w, &b, "bob", 5000);
        ask(&w, &c, "carl", 0);
        turn(&w);
        assert_true(c.is_done);
        assert_int_equal(c.verdict, WORK_NONE);
        assert_int_equal(remotes_due_ms(&w.handlers, w.now_ms), w.now_ms + 1000);
        hand_task(&w, 1, "k");
        call_store(&w);
        pass(&w, 1000); /* its time is over, but a task is being started for it */
        call_store(&w);
        assert_int_equal(a.verdict, WORK_TASK);
        assert_false(b.is_done);
        pass(&w, 4000);
        assert_int_equal(b.verdict, WORK_NONE);
        world_close(&w);
}

static void a_task_of_a_busy_key_is_not_handed_out(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        struct told t;
        world_give(&w, &a);
        hand_task(&w, 2, "k");
        call_store(&w);
        ask_now(&w, &b, "bob");
        send_call(&w);
        assert_null(outcome_of(&w, 2, STORE_START));
        answer_call(&w, STORE_OK);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        turn(&w);
        (void)call_telling(&w, 1, STORE_DONE);
        assert_false(t.is_done);
        answer_call(&w, STORE_OK);
        assert_true(t.is_done);
        assert_int_equal(t.saying.verdict, WORK_TAKEN);
        call_store(&w);
        assert_int_equal(b.verdict, WORK_TASK);
        world_close(&w);
}

static void no_task_goes_to_a_worker_that_has_left(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        world_own(&w);
        ask(&w, &a, "alice", 10000);
        remotes_leave(&w.handlers, &a.poll);
        hand_task(&w, 1, "k");
        call_store(&w);
        turn(&w);
        send_call(&w);
        assert_null(outcome_of(&w, 1, STORE_START));
        answer_call(&w, STORE_OK);
        /* It leaves while its start is being recorded: the record is taken back, and the next one gets the task. */
        ask_now(&w, &a, "alice");
        (void)call_telling(&w, 1, STORE_START);
        remotes_leave(&w.handlers, &a.poll);
        answer_call(&w, STORE_OK);
        ask(&w, &b, "bob", 10000);
        const struct store_outcome *o = call_telling(&w, 1, STORE_INTERRUPTED);
        assert_int_equal(o->cost, COST_NONE);
        answer_call(&w, STORE_OK);
        turn(&w);
        call_store(&w);
        assert_false(a.is_done);
        assert_int_equal(b.verdict, WORK_TASK);
        assert_int_equal(b.fence.start, 2);
        world_close(&w);
}

static void workers_have_no_more_than_they_may_at_once(void **state)
{
        (void)state;
        struct world w;
        struct asked a[4];
        static const char *const keys[] = { "k", "l", "m", "n" };
        struct told t;
        world_own(&w);
        for (unsigned i = 0; i < 4; i++)
                hand_task(&w, i + 1, keys[i]);
        call_store(&w);
        for (unsigned i = 0; i < 4; i++)
                ask(&w, &a[i], "alice", 10000);
        turn(&w);
        call_store(&w);
        assert_true(a[0].is_done && a[1].is_done && a[2].is_done);
        assert_false(a[3].is_done);
        assert_int_equal(say(&w, &t, &a[1], REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        call_store(&w);
        turn(&w);
        call_store(&w);
        assert_true(a[3].is_done);
        world_close(&w);
}

static void a_handler_without_workers_leaves_the_windows_to_others(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_own(&w);
        turn(&w);
        assert_int_equal(w.dispatch.routes.states[0], ROUTE_DOWN);
        ask(&w, &a, "alice", 100);
        turn(&w);
        assert_int_equal(w.dispatch.routes.states[0], ROUTE_OPEN);
        pass(&w, 1000); /* it has got its answer, and asks again within a moment */
        assert_true(a.is_done);
        assert_int_equal(w.dispatch.routes.states[0], ROUTE_OPEN);
        pass(&w, 60000);
        assert_int_equal(w.dispatch.routes.states[0], ROUTE_DOWN);
        world_close(&w);
}

/* All of its tasks wait in the store, none in a window: a worker that polls another host has to hear of them. */
static void what_waits_in_the_store_for_a_worker_is_wanted(void **state)
{
        (void)state;
        static const char *const keys[] = { "a", "b", "c", "d", "e", "f" };
        struct world w;
        world_open(&w);
        w.settings.spread = true;
        w.limits.window_tasks = 16;
        own_shard(&w);
        const struct handler *handler = w.handlers.list[0];
        assert_int_equal(remote_count_wanting(handler, 16, w.now_ms), 0);
        assert_false(w.dispatch.pools[0].may_be_stored);
        for (uint32_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                (void)hand_task(&w, i + 1, keys[i]);
        call_store(&w);
        call_store(&w); /* they go back */
        pass(&w, 1);
        assert_int_equal(w.shard->window.count, 0);
        assert_int_equal(remote_count_wanting(handler, 16, w.now_ms), 1);
        /* Nobody waits there any more: it is found out once, and costs nothing from then on. */
        shard_names_clear(&w.shard->names);
        assert_int_equal(remote_count_wanting(handler, 16, w.now_ms), 0);
        assert_false(w.dispatch.pools[0].may_be_stored);
        world_close(&w);
}

static void a_host_that_stops_sends_its_workers_away(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_own(&w);
        ask(&w, &a, "alice", 10000);
        w.handlers.is_leaving = true;
        remotes_look(&w.handlers, &w.shards, w.now_ms);
        assert_true(a.is_done);
        assert_int_equal(a.verdict, WORK_STOPPING);
        world_close(&w);
}

/* --- heartbeats --- */

static void a_heartbeat_makes_the_time_later_at_most_every_third_of_it(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_give(&w, &a);
        w.now_ms += 900;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_TAKEN); /* at once: the store hears nothing */
        assert_int_equal(t.saying.remaining_ms, TTL_MS - TTL_MS / 10 - 900);
        w.now_ms += 100;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        const struct store_outcome *o = call_telling(&w, 1, STORE_START);
        assert_true(span_is(o->holder, SPAN_TEXT("worker/40.1/alice"))); /* it is the same start */
        assert_int_equal(o->until_ms, TTL_MS);
        assert_false(t.is_done);
        answer_call(&w, STORE_OK);
        assert_true(t.is_done);
        assert_int_equal(t.saying.remaining_ms, TTL_MS - TTL_MS / 10);
        pass(&w, TTL_MS - 1);
        assert_int_equal(w.shard->lent, 1);
        pass(&w, 1);
        assert_int_equal(w.shard->lent, 0);
        world_close(&w);
}

static void a_heartbeat_in_time_counts_though_the_store_is_slow(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_give(&w, &a);
        w.now_ms += TTL_MS - 1;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        send_call(&w);
        pass(&w, 2000);
        assert_int_equal(w.shard->lent, 1);
        answer_call(&w, STORE_OK);
        assert_true(t.is_done);
        assert_int_equal(w.shard->lent, 1);
        world_close(&w);
}

/* A client that sends two requests at once: the second is read while the first is answered. */
struct told_twice {
        struct told first;
        struct world *w;
        const struct asked *a;
        struct told outcome;
};

static void on_first_said(struct work_saying *saying)
{
        struct told_twice *both = (struct told_twice *)saying;
        both->first.is_done = true;
        assert_int_equal(say(both->w, &both->outcome, both->a, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
}

static void an_outcome_sent_together_with_a_heartbeat_is_confirmed_once_it_is_durable(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told_twice both = { .w = &w, .a = &a };
        world_open(&w);
        own_shard(&w);
        give(&w, &a, 1, "k");
        w.now_ms += 2000;
        assert_int_equal(say(&w, &both.first, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        both.first.saying.done = on_first_said;
        call_store(&w);
        assert_true(both.first.is_done);
        assert_false(both.outcome.is_done);
        assert_int_equal(w.handlers.list[0]->remote.lent, 1);
        call_store(&w);
        assert_true(both.outcome.is_done);
        assert_int_equal(both.outcome.saying.verdict, WORK_TAKEN);
        assert_int_equal(w.handlers.list[0]->remote.lent, 0);
        world_close(&w);
}

static void a_checkpoint_of_a_heartbeat_is_kept(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_give(&w, &a);
        struct work_report r = report_of(&a, REPORT_HEARTBEAT, 0);
        buffer_put(&r.checkpoint, "row 7", 5);
        r.has_checkpoint = r.has_progress = true;
        r.progress_done = 7;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_TAKEN);
        buffer_free(&r.checkpoint);
        const struct store_outcome *o = call_telling(&w, 1, STORE_CHECKPOINT);
        assert_true(span_is(o->checkpoint, SPAN_TEXT("row 7")));
        assert_int_equal(w.handlers.remotes.all->progress_done, 7);
        answer_call(&w, STORE_OK);
        world_close(&w);
}

static void past_its_timeout_a_task_gets_no_more_time(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        w.settings.timeout_ms = 4000;
        own_shard(&w);
        give(&w, &a, 1, "k");
        w.now_ms += 2000;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        assert_int_equal(call_telling(&w, 1, STORE_START)->until_ms, 2000);
        answer_call(&w, STORE_OK);
        assert_false(t.saying.is_stop);
        w.now_ms += 1999;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_NONE);
        call_store(&w);
        pass(&w, 1);
        const struct store_outcome *o = call_telling(&w, 1, STORE_RETRY);
        assert_int_equal(o->cost, COST_CRASH);
        assert_non_null(memmem(o->error.data, o->error.size, "timeout", strlen("timeout")));
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* --- outcomes --- */

static void only_the_current_start_is_listened_to(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_give(&w, &a);
        struct work_report r = report_of(&a, REPORT_OUTCOME, OUTCOME_DONE);
        r.fence.start++;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_STALE);
        r = report_of(&a, REPORT_OUTCOME, OUTCOME_DONE);
        r.fence.epoch--;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_STALE);
        r = report_of(&a, REPORT_OUTCOME, OUTCOME_DONE);
        r.fence.seq++;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_STALE);
        assert_int_equal(say_report(&w, &t, "other", report_of(&a, REPORT_OUTCOME, OUTCOME_DONE)), WORK_STALE);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        struct told twice;
        assert_int_equal(say(&w, &twice, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_STALE);
        call_store(&w);
        assert_int_equal(t.saying.verdict, WORK_TAKEN);
        world_close(&w);
}

static void an_outcome_is_judged_as_a_runners_is(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_give(&w, &a);
        struct work_report r = report_of(&a, REPORT_OUTCOME, OUTCOME_RETRY);
        buffer_put(&r.error, "no route", 8);
        r.has_retry_after = true;
        r.retry_after_ms = 1234;
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_NONE);
        buffer_free(&r.error);
        const struct store_outcome *o = call_telling(&w, 1, STORE_RETRY);
        assert_int_equal(o->cost, COST_ATTEMPT);
        assert_int_equal(o->delay_ms, 1234);
        assert_true(span_is(o->error, SPAN_TEXT("no route\n@worker alice (via host-a)")));
        answer_call(&w, STORE_OK);
        give(&w, &a, 2, "l");
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_REJECT), WORK_NONE);
        assert_true(span_is(call_telling(&w, 2, STORE_DEAD)->reason, SPAN_TEXT("rejected")));
        answer_call(&w, STORE_OK);
        give(&w, &a, 3, "m");
        char result[101] = "";
        r = report_of(&a, REPORT_OUTCOME, OUTCOME_DONE);
        r.has_result = true;
        buffer_put(&r.result, result, sizeof(result));
        assert_int_equal(say_report(&w, &t, a.id, r), WORK_REFUSED);
        assert_non_null(strstr(t.saying.text, "max_result"));
        buffer_free(&r.result);
        world_close(&w);
}

static void unavailable_pauses_the_handler_and_costs_nothing(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_give(&w, &a);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_UNAVAILABLE), WORK_NONE);
        assert_int_equal(call_telling(&w, 1, STORE_INTERRUPTED)->cost, COST_NONE);
        answer_call(&w, STORE_OK);
        ask(&w, &a, "alice", 60000);
        turn(&w);
        assert_int_equal(remotes_due_ms(&w.handlers, w.now_ms), w.now_ms + 1000);
        pass(&w, 999);
        assert_null(w.shard->starts_waiting);
        pass(&w, 1);
        assert_non_null(w.shard->starts_waiting);
        call_store(&w);
        assert_true(a.is_done);
        world_close(&w);
}

static void a_cancelled_task_is_told_to_stop_and_is_dead_unless_it_was_done(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        struct told t;
        world_give(&w, &a);
        give(&w, &b, 2, "l");
        remotes_stop_task(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("k"), 1), w.now_ms);
        remotes_stop_task(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("l"), 2), w.now_ms);
        w.now_ms += 1500;
        assert_int_equal(say(&w, &t, &a, REPORT_HEARTBEAT, 0), WORK_TAKEN); /* and it gets no more time */
        assert_true(t.saying.is_stop);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_RETRY), WORK_NONE);
        struct told done;
        assert_int_equal(say(&w, &done, &b, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        assert_true(span_is(call_telling(&w, 1, STORE_DEAD)->reason, SPAN_TEXT("cancelled")));
        assert_non_null(outcome_of(&w, 2, STORE_DONE));
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* --- silence --- */

static void silence_is_an_interruption_and_the_fourth_in_a_row_a_crash(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_own(&w);
        hand_task(&w, 1, "k");
        call_store(&w);
        for (unsigned i = 1; i <= 4; i++) {
                ask_now(&w, &a, "alice");
                call_store(&w);
                assert_int_equal(a.verdict, WORK_TASK);
                pass(&w, TTL_MS);
                assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_STALE);
                const struct store_outcome *o = call_telling(&w, 1, i < 4 ? STORE_INTERRUPTED : STORE_RETRY);
                assert_int_equal(o->cost, i < 4 ? COST_INTERRUPTION : COST_CRASH);
                assert_memory_equal(o->error.data, WORKER_SILENT, strlen(WORKER_SILENT));
                answer_call(&w, STORE_OK);
        }
        world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_task_goes_out_once_its_start_is_durable),
                cmocka_unit_test(polls_are_served_in_order_and_end_in_time),
                cmocka_unit_test(a_task_of_a_busy_key_is_not_handed_out),
                cmocka_unit_test(no_task_goes_to_a_worker_that_has_left),
                cmocka_unit_test(workers_have_no_more_than_they_may_at_once),
                cmocka_unit_test(a_handler_without_workers_leaves_the_windows_to_others),
                cmocka_unit_test(what_waits_in_the_store_for_a_worker_is_wanted),
                cmocka_unit_test(a_host_that_stops_sends_its_workers_away),
                cmocka_unit_test(a_heartbeat_makes_the_time_later_at_most_every_third_of_it),
                cmocka_unit_test(a_heartbeat_in_time_counts_though_the_store_is_slow),
                cmocka_unit_test(an_outcome_sent_together_with_a_heartbeat_is_confirmed_once_it_is_durable),
                cmocka_unit_test(a_checkpoint_of_a_heartbeat_is_kept),
                cmocka_unit_test(past_its_timeout_a_task_gets_no_more_time),
                cmocka_unit_test(only_the_current_start_is_listened_to),
                cmocka_unit_test(an_outcome_is_judged_as_a_runners_is),
                cmocka_unit_test(unavailable_pauses_the_handler_and_costs_nothing),
                cmocka_unit_test(a_cancelled_task_is_told_to_stop_and_is_dead_unless_it_was_done),
                cmocka_unit_test(silence_is_an_interruption_and_the_fourth_in_a_row_a_crash),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
