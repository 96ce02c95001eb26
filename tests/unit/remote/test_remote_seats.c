/* Tasks of ours on seats of other hosts: which go there, and that they come back once, whoever owns the shard by then.
 */
#include "remote_rig.h"

#include "host/lend/seat_outcome.h"

#define SEAT_TTL_MS 2000
#define HOLDER      "seat/7.3/0123456789abcdef0123456789abcdef/host-b"

static const struct lent *stopped;

static void on_stop_seat(void *self, const struct lent *lent)
{
        (void)self;
        stopped = lent;
}

static const struct handlers_events seat_events = { .changed = on_changed, .stop_seat = on_stop_seat };

/* As world_open(), but the handler has a plugin, and all its seats are busy. */
static void seats_open(struct world *w)
{
        world_open(w);
        w->settings.plugin = w->settings.plugin_path = "a.so";
        w->settings.spread = true;
        w->handlers.seat_ttl_ms = SEAT_TTL_MS;
        w->handlers.events = &seat_events;
        stopped = NULL;
}

static void seat_turn(struct world *w)
{
        remotes_tick(&w->handlers, w->now_ms);
        dispatch_look(&w->dispatch, &w->shards.schedule.changed);
        remotes_look(&w->handlers, &w->shards, w->now_ms);
        remote_feed_seats(w->handlers.list[0], w->now_ms);
}

static void seats_own(struct world *w)
{
        shard_fill_acquire(w->shard, &w->acquire, w->now_ms);
        w->acquire.grant = STORE_GRANTED;
        w->acquire.call = 1;
        w->acquire.left_ms = RIG_TTL_MS;
        w->acquire.next_due_ms = w->acquire.next_schedule_ms = STORE_NEVER;
        w->acquire.page = (struct store_page){ w->tasks, w->tasks_count, false };
        shard_acquired(w->shard, &w->acquire, w->now_ms);
        w->tasks_count = 0;
        seat_turn(w);
}

static void seat_answer(struct world *w)
{
        w->advance.verdict = STORE_OK;
        w->advance.tasks = w->tasks;
        w->advance.tasks_count = w->tasks_count;
        w->advance.left_ms = RIG_TTL_MS;
        w->advance.next_due_ms = STORE_NEVER;
        shard_advanced(w->shard, &w->advance, w->now_ms);
        w->tasks_count = 0;
        seat_turn(w);
}

static void seat_call(struct world *w)
{
        send_call(w);
        seat_answer(w);
}

/* A task of that key (its id is the same: it has none), claimed and ready. */
static void claim_task(struct world *w, uint64_t seq, const char *key)
{
        hand_task(w, seq, key);
        seat_call(w);
}

/* Another host offers a seat; whether it got a task, once its start is durable. */
static bool offer(struct world *w, struct asked *a)
{
        *a = (struct asked){
                .poll = { .handler = "a", .worker = "host-b", .is_foreign = true, .is_seat = true, .done = on_polled }
        };
        memset(a->poll.nonce, 0x0b, sizeof(a->poll.nonce));
        remotes_take(&w->handlers, &a->poll, w->now_ms);
        seat_turn(w);
        if (!a->is_done)
                seat_call(w);
        return a->is_done && a->verdict == WORK_TASK;
}

/* A host that owns its shard, and host-b with its task 1. */
static void seats_give(struct world *w, struct asked *a)
{
        seats_open(w);
        seats_own(w);
        claim_task(w, 1, "k");
        w->now_ms += 200;
        assert_true(offer(w, a));
}

static void report_seat(struct world *w, const struct seat_outcome *outcome, const char *id)
{
        struct buffer bytes = { 0 };
        seat_outcome_put(&bytes, outcome);
        struct store_control control = { .verb = CONTROL_OUTCOME,
                .id = rig_span(id),
                .seq = 1,
                .start = SPAN_TEXT("seat/1.1/"),
                .data = { (const char *)bytes.data, bytes.size } };
        remotes_obey(&w->handlers, w->shard, &control, w->now_ms);
        buffer_free(&bytes);
}

static struct seat_outcome done_of(uint64_t epoch, uint64_t start)
{
        return (struct seat_outcome){ .fence = { epoch, start, 0 },
                .outcome = OUTCOME_DONE,
                .has_reply = true,
                .ran_ms = 5,
                .error = "",
                .reply = { .outcome = OUTCOME_DONE, .error = "" } };
}

static void a_task_is_lent_once_it_has_waited(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_open(&w);
        seats_own(&w);
        claim_task(&w, 1, "k");
        w.now_ms += 99;
        assert_false(offer(&w, &a)); /* it may start here in a moment */
        assert_int_equal(a.verdict, WORK_NONE);
        w.now_ms += 1;
        assert_true(offer(&w, &a));
        assert_string_equal(a.id, "k");
        assert_int_equal(w.shard->lent, 1);
        assert_int_equal(w.shard->running, 0);
        assert_false(offer(&w, &a)); /* there is no other */
        world_close(&w);
}

/* What has waited long enough is why a seat is lent; a higher lane goes there first, however young its task is. */
static void a_higher_lane_is_lent_before_what_has_waited_longer(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_open(&w);
        seats_own(&w);
        claim_task(&w, (UINT64_C(2) << STORE_SEQ_LANE_SHIFT) + 1, "low");
        w.now_ms += 200;
        claim_task(&w, 1, "high");
        assert_true(offer(&w, &a));
        assert_string_equal(a.id, "high");
        assert_true(offer(&w, &a));
        assert_string_equal(a.id, "low");
        world_close(&w);
}

/* The store knows who has it before that one does, and until when. */
static void its_start_is_durable_before_it_is_handed_over(void **state)
{
        (void)state;
        struct world w;
        struct asked a = {
                .poll = { .handler = "a", .worker = "host-b", .is_foreign = true, .is_seat = true, .done = on_polled }
        };
        seats_open(&w);
        seats_own(&w);
        claim_task(&w, 1, "k");
        w.now_ms += 200;
        a.poll.nonce[0] = 0xab;
        remotes_take(&w.handlers, &a.poll, w.now_ms);
        seat_turn(&w);
        const struct store_outcome *o = call_telling(&w, 1, STORE_START);
        assert_false(a.is_done);
        assert_true(span_is(o->holder, SPAN_TEXT("seat/40.1/ab000000000000000000000000000000/host-b")));
        assert_int_equal(o->until_ms, SEAT_TTL_MS);
        seat_answer(&w);
        assert_true(a.is_done && a.verdict == WORK_TASK);
        world_close(&w);
}

static void a_task_with_a_key_is_not_lent(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_open(&w);
        seats_own(&w);
        hand_task(&w, 1, "alice")->envelope.id = SPAN_TEXT("other-0");
        seat_call(&w);
        w.now_ms += 200;
        assert_false(offer(&w, &a));
        claim_task(&w, 2, "k"); /* one without a key is, though it stands behind */
        w.now_ms += 200;
        assert_true(offer(&w, &a));
        assert_string_equal(a.id, "k");
        world_close(&w);
}

/* However many with keys are ready before it; the line knows how many have none. */
static void many_with_keys_hide_none_without(void **state)
{
        (void)state;
        enum { KEYED = 112 };
        static char ids[KEYED][16];
        struct world w;
        struct asked a;
        seats_open(&w);
        w.limits.window_tasks = 256;
        seats_own(&w);
        for (uint32_t i = 0; i < KEYED; i++) {
                (void)snprintf(ids[i], sizeof(ids[i]), "key-%u", i);
                hand_task(&w, i + 1, ids[i])->envelope.id = SPAN_TEXT("other-0");
                if (w.tasks_count == sizeof(w.tasks) / sizeof(w.tasks[0]))
                        seat_call(&w);
        }
        assert_int_equal(w.shard->window.lines[LANE_HIGH].unkeyed, 0);
        claim_task(&w, KEYED + 1, "k");
        assert_int_equal(w.shard->window.lines[LANE_HIGH].unkeyed, 1);
        assert_int_equal(w.shard->window.lines[LANE_HIGH].keys, KEYED + 1);
        w.now_ms += 200;
        assert_int_equal(remote_count_wanting(w.handlers.list[0], 16, w.now_ms), 1);
        assert_true(offer(&w, &a));
        assert_string_equal(a.id, "k");
        assert_int_equal(w.shard->window.lines[LANE_HIGH].unkeyed, 0);
        world_close(&w);
}

static void what_is_suspect_or_too_large_runs_at_its_owner(void **state)
{
        (void)state;
        static char payload[WINDOW_LEND_BYTES + 1];
        for (int i = 0; i < 5; i++) {
                struct world w;
                struct asked a;
                seats_open(&w);
                seats_own(&w);
                struct store_task *t = hand_task(&w, 1, "k");
                if (i == 0)
                        t->note.is_suspect = true;
                if (i == 1)
                        t->note.events = SPAN_TEXT("event:1 interruption its host died\n");
                if (i == 2)
                        t->note.events = SPAN_TEXT("event:1 interruption its borrowed seat fell silent, after 1s\n");
                if (i == 3)
                        t->envelope.payload = (struct span){ payload, sizeof(payload) };
                if (i == 4) /* a host died while it ran alone */
                        t->note = (struct task_note){ .is_suspect = true, .started_epoch = 7 };
                seat_call(&w);
                w.now_ms += 200;
                assert_false(offer(&w, &a));
                world_close(&w);
        }
}

static void a_handler_may_keep_its_tasks(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_open(&w);
        seats_own(&w);
        claim_task(&w, 1, "k");
        w.now_ms += 200;
        assert_int_equal(remote_count_wanting(w.handlers.list[0], 16, w.now_ms), 1);
        w.settings.spread = false;
        assert_false(offer(&w, &a));
        assert_int_equal(remote_count_wanting(w.handlers.list[0], 16, w.now_ms), 0);
        w.settings.spread = true;
        dispatch_pause(&w.dispatch, 0, true, w.now_ms); /* it is paused */
        assert_false(offer(&w, &a));
        world_close(&w);
}

static void an_outcome_is_committed_once(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_give(&w, &a);
        struct seat_outcome wrong = done_of(40, 99);
        report_seat(&w, &wrong, "k"); /* another start's */
        wrong = done_of(41, 1);
        report_seat(&w, &wrong, "k");
        wrong = done_of(40, 1);
        report_seat(&w, &wrong, "l"); /* another task's */
        assert_int_equal(w.shard->ended_count, 0);
        struct seat_outcome done = done_of(40, 1);
        report_seat(&w, &done, "k");
        assert_int_equal(w.shard->ended_count, 1);
        report_seat(&w, &done, "k"); /* it came twice */
        assert_int_equal(w.shard->ended_count, 1);
        assert_non_null(call_telling(&w, 1, STORE_DONE));
        seat_answer(&w);
        assert_int_equal(w.shard->lent, 0);
        assert_int_equal(w.handlers.list[0]->counts.done, 1);
        report_seat(&w, &done, "k");
        assert_int_equal(w.shard->ended_count, 0);
        world_close(&w);
}

/* What runs nowhere: a worker that knows the fence, or bytes that are none. */
static void nobody_else_speaks_for_a_seat(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        seats_give(&w, &a);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_STALE);
        struct store_control control = { .verb = CONTROL_OUTCOME,
                .id = SPAN_TEXT("k"),
                .seq = 1,
                .data = SPAN_TEXT("{\"fence\":\"40.1.1\",\"outcome\":\"done\"}") };
        remotes_obey(&w.handlers, w.shard, &control, w.now_ms);
        assert_int_equal(w.shard->ended_count, 0);
        world_close(&w);
}

/* Whether the outcome's text has it; the text has no NUL at its end. */
static bool says(const struct store_outcome *o, const char *text)
{
        return memmem(o->error.data, o->error.size, text, strlen(text)) != NULL;
}

static void silence_costs_an_interruption_and_the_next_start_is_at_home(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_give(&w, &a);
        w.now_ms += SEAT_TTL_MS - 1;
        seat_turn(&w);
        assert_int_equal(w.shard->ended_count, 0);
        w.now_ms += 1;
        seat_turn(&w);
        const struct store_outcome *o = call_telling(&w, 1, STORE_INTERRUPTED);
        assert_int_equal(o->cost, COST_INTERRUPTION);
        assert_true(says(o, "its borrowed seat fell silent"));
        assert_true(says(o, "\n@host-b (borrowed seat)"));
        seat_answer(&w);
        w.now_ms += 200;
        assert_false(offer(&w, &a));
        struct shard *shard;
        uint32_t room[LANES] = { 1, 1, 1 };
        dispatch_begin(&w.dispatch, 0, DISPATCH_OPEN, room, w.now_ms);
        const struct claimed *c = dispatch_next(&w.dispatch, 0, room, w.now_ms, &shard);
        assert_non_null(c);
        assert_int_equal(c->silences, 0); /* those are workers' */
        shard_again(shard, (struct claimed *)c, w.now_ms);
        world_close(&w);
}

static void heartbeats_keep_it_there(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_give(&w, &a);
        struct store_control beat = { .verb = CONTROL_HEARTBEAT,
                .id = SPAN_TEXT("k"),
                .seq = 1,
                .data = SPAN_TEXT("{\"fence\":\"40.1.1\",\"progress\":[1,2]}") };
        for (int i = 0; i < 5; i++) {
                w.now_ms += SEAT_TTL_MS / 2;
                remotes_obey(&w.handlers, w.shard, &beat, w.now_ms);
                assert_int_equal(call_telling(&w, 1, STORE_START)->until_ms, SEAT_TTL_MS);
                seat_answer(&w);
        }
        assert_int_equal(w.shard->lent, 1);
        world_close(&w);
}

static void what_was_not_started_is_ready_again_at_no_cost(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_give(&w, &a);
        struct work_fence other = { 40, 2, 1 };
        remotes_decline(&w.handlers, 0, &other, SPAN_TEXT("k"), w.now_ms);
        assert_int_equal(w.shard->ended_count, 0);
        remotes_decline(&w.handlers, 0, &a.fence, SPAN_TEXT("k"), w.now_ms);
        assert_int_equal(call_telling(&w, 1, STORE_INTERRUPTED)->cost, COST_NONE);
        seat_answer(&w);
        assert_true(offer(&w, &a)); /* and may be lent again */
        assert_int_equal(a.fence.start, 2);
        world_close(&w);
}

/* It comes back after its handler was paused. */
static void what_comes_back_to_a_paused_handler_is_not_lent_again(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_give(&w, &a);
        dispatch_pause(&w.dispatch, 0, true, w.now_ms);
        remotes_decline(&w.handlers, 0, &a.fence, SPAN_TEXT("k"), w.now_ms);
        seat_call(&w);
        assert_false(offer(&w, &a));
        world_close(&w);
}

static void a_crash_there_is_the_tasks_own(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_give(&w, &a);
        struct seat_outcome crash = { .fence = { 40, 1, 0 },
                .outcome = OUTCOME_CRASHED,
                .error = "SIGSEGV\n@host-b pid=7 generation=2 plugin=00000000 (borrowed seat)" };
        report_seat(&w, &crash, "k");
        const struct store_outcome *o = call_telling(&w, 1, STORE_RETRY);
        assert_int_equal(o->cost, COST_CRASH);
        assert_true(span_is(o->error, span_of_text(crash.error))); /* it says where, once */
        seat_answer(&w);
        world_close(&w);
}

static void a_version_that_is_to_blame_there_costs_nothing(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_give(&w, &a);
        struct seat_outcome crash = {
                .fence = { 40, 1, 0 }, .outcome = OUTCOME_CRASHED, .is_excused = true, .error = "x"
        };
        report_seat(&w, &crash, "k");
        assert_int_equal(call_telling(&w, 1, STORE_RETRY)->cost, COST_INTERRUPTION);
        seat_answer(&w);
        world_close(&w);
}

static void a_cancelled_task_is_stopped_where_it_runs(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_give(&w, &a);
        struct claimed *c = window_find(&w.shard->window, SPAN_TEXT("k"), 1);
        remotes_stop_task(&w.handlers, c, w.now_ms);
        assert_ptr_equal(stopped, c->lent);
        struct seat_outcome stop = { .fence = { 40, 1, 0 }, .outcome = OUTCOME_INTERRUPTED, .error = "stopped" };
        report_seat(&w, &stop, "k");
        assert_true(span_is(call_telling(&w, 1, STORE_DEAD)->reason, SPAN_TEXT("cancelled")));
        seat_answer(&w);
        world_close(&w);
}

static void a_new_owner_waits_for_the_seat_of_the_old_one(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_open(&w);
        hand_lent(&w, 1, "k", HOLDER, 1500);
        seats_own(&w);
        assert_int_equal(w.shard->lent, 1);
        w.now_ms += 200;
        assert_false(offer(&w, &a)); /* nobody starts it */
        const struct claimed *c = window_find(&w.shard->window, SPAN_TEXT("k"), 1);
        assert_true(c->lent->is_seat);
        assert_int_equal(c->lent->nonce[0], 0x01);
        struct store_control beat = {
                .verb = CONTROL_HEARTBEAT, .id = SPAN_TEXT("k"), .seq = 1, .data = SPAN_TEXT("{\"fence\":\"7.3.1\"}")
        };
        w.now_ms += 1000;
        remotes_obey(&w.handlers, w.shard, &beat, w.now_ms);
        assert_true(span_is(call_telling(&w, 1, STORE_START)->holder, SPAN_TEXT(HOLDER)));
        seat_answer(&w);
        struct seat_outcome done = done_of(7, 3);
        report_seat(&w, &done, "k");
        assert_non_null(call_telling(&w, 1, STORE_DONE));
        seat_answer(&w);
        world_close(&w);
}

static void a_new_owner_starts_it_when_its_time_is_over(void **state)
{
        (void)state;
        struct world w;
        seats_open(&w);
        hand_lent(&w, 1, "k", HOLDER, 1500);
        seats_own(&w);
        w.now_ms += 1499;
        seat_turn(&w);
        assert_int_equal(w.shard->ended_count, 0);
        w.now_ms += 1;
        seat_turn(&w);
        assert_int_equal(call_telling(&w, 1, STORE_INTERRUPTED)->cost, COST_INTERRUPTION);
        seat_answer(&w);
        struct seat_outcome late = done_of(7, 3);
        report_seat(&w, &late, "k"); /* what it says now is too late */
        assert_int_equal(w.shard->ended_count, 0);
        world_close(&w);
}

/* A host that stops answers those that wait, and lends nothing more. */
static void a_host_that_stops_lends_nothing(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        seats_open(&w);
        seats_own(&w);
        claim_task(&w, 1, "k");
        w.now_ms += 200;
        w.handlers.is_leaving = true;
        assert_false(offer(&w, &a));
        assert_int_equal(a.verdict, WORK_STOPPING);
        world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_task_is_lent_once_it_has_waited),
                cmocka_unit_test(a_higher_lane_is_lent_before_what_has_waited_longer),
                cmocka_unit_test(its_start_is_durable_before_it_is_handed_over),
                cmocka_unit_test(a_task_with_a_key_is_not_lent),
                cmocka_unit_test(many_with_keys_hide_none_without),
                cmocka_unit_test(what_is_suspect_or_too_large_runs_at_its_owner),
                cmocka_unit_test(a_handler_may_keep_its_tasks),
                cmocka_unit_test(an_outcome_is_committed_once),
                cmocka_unit_test(nobody_else_speaks_for_a_seat),
                cmocka_unit_test(silence_costs_an_interruption_and_the_next_start_is_at_home),
                cmocka_unit_test(heartbeats_keep_it_there),
                cmocka_unit_test(what_was_not_started_is_ready_again_at_no_cost),
                cmocka_unit_test(what_comes_back_to_a_paused_handler_is_not_lent_again),
                cmocka_unit_test(a_crash_there_is_the_tasks_own),
                cmocka_unit_test(a_version_that_is_to_blame_there_costs_nothing),
                cmocka_unit_test(a_cancelled_task_is_stopped_where_it_runs),
                cmocka_unit_test(a_new_owner_waits_for_the_seat_of_the_old_one),
                cmocka_unit_test(a_new_owner_starts_it_when_its_time_is_over),
                cmocka_unit_test(a_host_that_stops_lends_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
