/* Every outcome, what it leaves behind, and that it does so in one step. */
#include "harness.h"

static struct store_advance first_task(struct world *w, struct owner *o, const char *key)
{
        (void)submit(w, key, "1");
        struct store_advance a = claim(w, o, 1);
        assert_int_equal(a.tasks_count, 1);
        return a;
}

/* The task as the next owner finds it. */
static struct store_task after_crash(struct world *w, uint64_t epoch)
{
        world_reopen(w);
        world_step(w, TTL_MS);
        struct owner o = own(w, 0, epoch, (uint8_t)epoch);
        assert_int_equal(o.granted.page.tasks_count, 1);
        return o.granted.page.tasks[0];
}

static struct note_event event_at(const struct task_note *note, unsigned number)
{
        struct span events = note->events;
        struct note_event event = { 0 };
        for (unsigned i = 0; i <= number; i++)
                assert_true(note_event_next(&events, &event));
        return event;
}

static void done_is_final(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        assert_int_equal(settle(w, &o, done(&a.tasks[0])).gone, 0);
        assert_int_equal(counts(w, 0).done, 1);
        struct store_follow_up follow_up = { .envelope = { .key = T("k"), .handler = T("h"), .lane = LANE_NORMAL } };
        struct store_outcome again = done(&a.tasks[0]);
        again.has_result = true;
        again.follow_ups = &follow_up;
        again.follow_ups_count = 1;
        assert_int_equal(settle(w, &o, again).gone, 1); /* and cannot be had twice: nothing of it is kept */
        assert_int_equal(counts(w, 0).done, 1);
        assert_int_equal(counts(w, 0).results, 0);
        assert_int_equal(counts(w, 0).submitted, 1);
        assert_null(find(w, a.tasks[0].envelope.id));
}

static void an_outcome_of_a_queued_task_changes_nothing(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        (void)submit(w, "k", "2");
        struct store_task queued = a.tasks[0];
        queued.seq++;
        struct store_outcome outcomes[] = { done(&queued), retry(&queued, 1), dead(&queued, "x"), divert(&queued) };
        assert_int_equal(advance(w, &o, outcomes, 4, 0).gone, 4);
        assert_int_equal(counts(w, 0).queued[LANE_NORMAL], 1);
        expect_tasks(w, claim(w, &o, 1), "2");
}

/* In any order, with gaps, one twice, one that is queued yet: the others are where they were. */
static void only_those_that_are_named_are_done(void **state)
{
        struct world *w = *state;
        static const uint8_t ended[] = { 7, 2, 3, 0, 3, 6, 9, 5 };
        enum { TASKS = 11, ENDED = sizeof(ended) };
        struct store_outcome outcomes[ENDED + 1];
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < TASKS; i++)
                (void)submit(w, F(w, "key-%u", i).data, F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, TASKS - 1);
        for (unsigned i = 0; i < ENDED; i++)
                outcomes[i] = done(&a.tasks[ended[i]]);
        struct store_task queued = a.tasks[TASKS - 2];
        queued.seq++;
        outcomes[ENDED] = done(&queued);
        struct store_advance b = advance(w, &o, outcomes, ENDED + 1, 0);
        assert_int_equal(b.gone, 2);
        assert_int_equal(counts(w, 0).done, ENDED - 1);
        assert_int_equal(counts(w, 0).in_flight, 3);
        assert_int_equal(counts(w, 0).queued[LANE_NORMAL], 1);
        struct store_page page = in_flight_page(w, &o, 0, 10);
        assert_string_equal(payloads(w, page.tasks, page.tasks_count), "1 4 8");
        expect_tasks(w, claim(w, &o, 5), "10");
        expect_sound(w);
}

static void completion_result_and_follow_ups_commit_together(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 1, 1, 1);
        struct span here = key_of(w, 1, 0);
        struct span there = key_of(w, 2, 0);
        (void)submit(w, here.data, "1");
        struct store_advance a = claim(w, &o, 1);
        struct store_follow_up follow_ups[] = {
                { .envelope = { .key = here, .handler = T("h"), .payload = T("own"), .lane = LANE_HIGH } },
                { .envelope = { .key = there, .handler = T("h"), .payload = T("other1"), .lane = LANE_NORMAL } },
                { .envelope = { .key = there, .handler = T("h"), .payload = T("other2"), .lane = LANE_NORMAL } },
                { .envelope = { .key = there, .handler = T("h"), .payload = T("later"), .lane = LANE_NORMAL },
                        .delay_ms = 100 },
        };
        struct store_outcome outcome = done(&a.tasks[0]);
        outcome.follow_ups = follow_ups;
        outcome.follow_ups_count = 4;
        w->lose_next = true;
        (void)advance(w, &o, &outcome, 1, 1);
        a = advance(w, &o, &outcome, 1, 1); /* repeated: still once */
        expect_tasks(w, a, "own");
        forward_all(w, &o);
        struct owner p = own(w, 2, 1, 1);
        expect_tasks(w, claim(w, &p, 10), "other1 other2");
        world_step(w, 100);
        expect_tasks(w, claim(w, &p, 10), "later");
        assert_int_equal(counts(w, 2).submitted, 3);
}

static void a_bad_follow_up_refuses_the_whole_call(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_follow_up follow_up = { .envelope = { .key = T("a\nb"), .handler = T("h") } };
        struct store_outcome outcome = done(&a.tasks[0]);
        outcome.follow_ups = &follow_up;
        outcome.follow_ups_count = 1;
        assert_int_equal(advance(w, &o, &outcome, 1, 0).request.status, -EINVAL);
        assert_int_equal(counts(w, 0).in_flight, 1);
}

static void follow_ups_are_exempt_from_the_backlog_limit(void **state)
{
        struct world *w = *state;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .backlog_max = 1 }, NULL), 0);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        (void)submit(w, "k", "full");
        struct store_follow_up follow_up = { .envelope = {
                                                     .key = T("k"), .handler = T("h"), .payload = T("f"), .lane = 1 } };
        struct store_outcome outcome = done(&a.tasks[0]);
        outcome.follow_ups = &follow_up;
        outcome.follow_ups_count = 1;
        (void)settle(w, &o, outcome);
        assert_int_equal(counts(w, 0).queued[LANE_NORMAL], 2);
}

static void attempts_crashes_and_interruptions_are_counted_apart(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_outcome outcome = retry(&a.tasks[0], 0);
        const enum task_cost costs[] = { COST_ATTEMPT, COST_CRASH, COST_CRASH, COST_INTERRUPTION, COST_NONE };
        for (unsigned i = 0; i < 5; i++) {
                outcome.cost = costs[i];
                outcome.error = F(w, "why %u", i);
                (void)settle(w, &o, outcome);
                a = claim(w, &o, 1);
                assert_int_equal(a.tasks_count, 1);
        }
        const struct task_note *note = &a.tasks[0].note;
        assert_int_equal(note->attempts, 1);
        assert_int_equal(note->crashes, 2);
        assert_int_equal(note->interruptions, 1);
        assert_true(span_is(event_at(note, 0).kind, T("attempt")));
        assert_true(span_is(event_at(note, 2).text, T("why 2")));
        assert_true(span_is(event_at(note, 3).kind, T("interruption")));
        assert_true(span_is(event_at(note, 4).kind, T("waited")));
}

/* Its owner did not start it, but an earlier one may have. */
static void a_diverted_task_keeps_what_it_says_of_an_interruption(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_outcome outcome = divert(&a.tasks[0]);
        outcome.delay_ms = 0;
        outcome.cost = COST_INTERRUPTION;
        outcome.error = T("perhaps");
        (void)settle(w, &o, outcome);
        a = claim(w, &o, 1);
        assert_int_equal(a.tasks_count, 1);
        assert_int_equal(a.tasks[0].note.interruptions, 1);
        assert_true(span_is(event_at(&a.tasks[0].note, 0).kind, T("interruption")));
        assert_true(span_is(event_at(&a.tasks[0].note, 0).text, T("perhaps")));
        outcome = divert(&a.tasks[0]);
        outcome.cost = COST_ATTEMPT;
        assert_int_equal(advance_call(w, &o, o.call + 1, &outcome, 1, 0).request.status, -EINVAL);
}

/* LATER costs nothing, but may not go on for ever: its count is in the store, and a new owner finds it. */
static void laters_are_counted_and_survive_a_takeover(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_outcome outcome = retry(&a.tasks[0], 0);
        outcome.error = T("failed");
        (void)settle(w, &o, outcome);
        outcome.cost = COST_LATER;
        outcome.reason = T(STORE_SAID_LATER);
        for (unsigned i = 0; i < 20; i++) {
                a = claim(w, &o, 1);
                assert_int_equal(a.tasks_count, 1);
                outcome.error = F(w, "no route %u", i);
                (void)settle(w, &o, outcome);
        }
        struct store_key_info waits = key(w, "k");
        assert_int_equal(waits.state, KEY_PARKED);
        assert_true(span_is(waits.reason, T("the handler said later: no route 19")));
        (void)claim(w, &o, 1);
        struct store_task found = after_crash(w, 2);
        assert_int_equal(found.note.laters, 20);
        assert_int_equal(found.note.attempts, 1);
        /* The rest of the history is still there. */
        assert_true(span_is(event_at(&found.note, 0).text, T("failed")));
        assert_true(span_is(event_at(&found.note, 1).kind, T("later")));
        assert_true(span_is(event_at(&found.note, 1).text, T("no route 19")));
}

static void laters_are_forgotten_by_a_requeue_and_told_with_a_result(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_outcome outcome = retry(&a.tasks[0], 0);
        outcome.cost = COST_LATER;
        (void)settle(w, &o, outcome);
        a = claim(w, &o, 1);
        (void)settle(w, &o, dead(&a.tasks[0], "rejected"));
        assert_int_equal(dead_act(w, DEAD_REQUEUE, a.tasks[0].envelope.id).acted, 1);
        a = claim(w, &o, 1);
        assert_int_equal(a.tasks_count, 1);
        assert_int_equal(a.tasks[0].note.laters, 0);
        outcome = retry(&a.tasks[0], 0);
        outcome.cost = COST_LATER;
        (void)settle(w, &o, outcome);
        a = claim(w, &o, 1);
        struct store_outcome end = done(&a.tasks[0]);
        end.has_result = true;
        end.result = T("r");
        (void)settle(w, &o, end);
        struct store_consume c = consume(w, 1, 10, 1000);
        assert_int_equal(c.results_count, 1);
        assert_int_equal(c.results[0].note.laters, 1);
}

/* A host of an older build would not know the count. */
static void later_needs_its_feature_and_a_retry(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_outcome outcome = { .kind = STORE_INTERRUPTED, .task = ref(&a.tasks[0]), .cost = COST_LATER };
        assert_int_equal(advance(w, &o, &outcome, 1, 0).request.status, -EINVAL);
        world_close(w);
        driver->record(w->place, "features", "names");
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
        outcome.kind = STORE_RETRY;
        assert_int_equal(advance(w, &o, &outcome, 1, 0).request.status, -ENOTSUP);
        outcome.cost = COST_ATTEMPT;
        assert_int_equal(advance(w, &o, &outcome, 1, 0).request.status, 0);
}

static void an_error_of_several_lines_keeps_them(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_outcome outcome = retry(&a.tasks[0], 0);
        outcome.error = T("crashed\n\thandle\x1b\x7f (mine.so)\n@a pid=1 generation=1 plugin=9f0c1a2b");
        (void)settle(w, &o, outcome);
        a = claim(w, &o, 1);
        assert_int_equal(a.tasks_count, 1);
        assert_true(span_is(event_at(&a.tasks[0].note, 0).text, T("crashed\x1f handle   (mine.so)")));
        assert_true(span_is(event_at(&a.tasks[0].note, 0).where, T("a pid=1 generation=1 plugin=9f0c1a2b")));
}

static void history_is_bounded(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        char text[NOTE_TEXT_MAX + 1500];
        memset(text, 'e', sizeof(text));
        for (unsigned i = 0; i < 30; i++) {
                struct store_outcome outcome = retry(&a.tasks[0], 0);
                outcome.error = (struct span){ text, sizeof(text) };
                (void)settle(w, &o, outcome);
                a = claim(w, &o, 1);
        }
        assert_int_equal(a.tasks[0].note.attempts, 30);
        assert_true(a.tasks[0].note.events.size < NOTE_EVENTS_MAX * (NOTE_TEXT_MAX + 64));
}

static void a_suspects_start_is_durable_until_it_ends(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_outcome start = { .kind = STORE_START, .task = ref(&a.tasks[0]), .holder = T("aa") };
        (void)settle(w, &o, start);
        struct store_task found = after_crash(w, 2);
        assert_int_equal(found.note.started_epoch, 1);
        assert_int_equal(found.note.attempts, 0);
        struct owner p = own(w, 0, 2, 2);
        struct store_outcome interrupted = { .kind = STORE_INTERRUPTED,
                .task = ref(&found),
                .cost = COST_INTERRUPTION,
                .is_suspect = true,
                .error = T("the host died") };
        (void)settle(w, &p, interrupted);
        found = after_crash(w, 3);
        assert_int_equal(found.note.started_epoch, 0);
        assert_true(found.note.is_suspect);
        assert_int_equal(found.note.interruptions, 1);
}

static void a_checkpoint_survives_crash_and_retry(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        struct store_outcome checkpoint = { .kind = STORE_CHECKPOINT, .task = ref(&a.tasks[0]) };
        checkpoint.checkpoint = (struct span){ "old", 3 };
        (void)settle(w, &o, checkpoint);
        checkpoint.checkpoint = (struct span){ "\0at\n7", 5 };
        (void)settle(w, &o, checkpoint);
        (void)settle(w, &o, retry(&a.tasks[0], 0));
        a = claim(w, &o, 1);
        struct store_task found = after_crash(w, 2);
        assert_true(span_is(found.note.checkpoint, checkpoint.checkpoint));
        assert_int_equal(found.note.attempts, 1);
        char large[NOTE_CHECKPOINT_MAX + 1] = "";
        struct owner p = own(w, 0, 2, 2);
        checkpoint.checkpoint = (struct span){ large, sizeof(large) };
        assert_int_equal(advance(w, &p, &checkpoint, 1, 0).request.status, -EINVAL);
}

static void dead_is_kept_with_reason_history_and_bytes(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        (void)settle(w, &o, retry(&a.tasks[0], 0));
        a = claim(w, &o, 1);
        (void)settle(w, &o, dead(&a.tasks[0], "exhausted"));
        struct store_list l = list(w, 0, STATE_DEAD);
        assert_int_equal(l.tasks_count, 1);
        assert_true(span_is(l.tasks[0].reason, T("exhausted")));
        assert_int_equal(l.tasks[0].note.attempts, 2);
        assert_true(span_is(l.tasks[0].envelope.payload, T("1")));
        assert_true(span_is(l.tasks[0].id, a.tasks[0].envelope.id));
        assert_true(span_is(event_at(&l.tasks[0].note, 1).text, T("no")));
        assert_true(l.tasks[0].at_ms > 0);
}

static void a_held_keys_running_task_may_fail(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = first_task(w, &o, "k");
        assert_int_equal(key_act(w, CONTROL_HOLD, "k"), 0);
        struct store_outcome outcome = retry(&a.tasks[0], 0);
        (void)advance(w, &o, &outcome, 1, 0);
        assert_int_equal(key(w, "k").state, KEY_HELD); /* a retry does not end a hold */
        assert_int_equal(claim(w, &o, 10).tasks_count, 0);
}

static struct store_outcome start_of(const struct store_task *task, const char *holder, uint64_t until_ms)
{
        return (struct store_outcome){
                .kind = STORE_START, .task = ref(task), .holder = T(holder), .until_ms = until_ms
        };
}

/* A worker, or another host's seat, may have it still: whoever owns the shard next knows who, and for how long. */
static void a_start_is_kept_with_its_holder_until_its_time(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct store_advance claimed = claim(w, &a, 1);
        assert_int_equal(claimed.tasks[0].busy_ms, 0);
        (void)settle(w, &a, start_of(&claimed.tasks[0], "worker-7", 5000));
        world_reopen(w);
        world_step(w, TTL_MS);
        struct owner b = own(w, 0, 2, 2);
        const struct store_task *task = &b.granted.page.tasks[0];
        assert_int_equal(task->note.started_epoch, 1);
        assert_true(span_is(task->note.holder, T("worker-7")));
        assert_int_equal(task->busy_ms, 5000 - TTL_MS);
        /* It waits for that time in the store, and keeps the mark. */
        struct store_outcome back = divert(task);
        back.delay_ms = task->busy_ms;
        assert_int_equal(settle(w, &b, back).next_due_ms, 5000 - TTL_MS);
        world_step(w, 5000 - TTL_MS - 1);
        assert_int_equal(claim(w, &b, 1).tasks_count, 0);
        world_step(w, 1);
        claimed = claim(w, &b, 1);
        expect_tasks(w, claimed, "1");
        assert_int_equal(claimed.tasks[0].busy_ms, 0);
        assert_true(span_is(claimed.tasks[0].note.holder, T("worker-7")));
        (void)settle(w, &b, start_of(&claimed.tasks[0], "worker-8", 100));
        (void)settle(w, &b, start_of(&claimed.tasks[0], "worker-8", 60000)); /* it is renewed */
        assert_int_equal(acquire(w, &b), 0);
        assert_int_equal(b.granted.page.tasks[0].busy_ms, 60000);
        struct store_outcome over = { .kind = STORE_INTERRUPTED, .task = ref(&claimed.tasks[0]), .cost = COST_NONE };
        (void)settle(w, &b, over);
        assert_int_equal(acquire(w, &b), 0);
        assert_int_equal(b.granted.page.tasks[0].busy_ms, 0);
        assert_int_equal(b.granted.page.tasks[0].note.holder.size, 0);
        assert_int_equal(b.granted.page.tasks[0].note.started_epoch, 0);
}

static void a_start_is_not_held_for_ever(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 1);
        (void)settle(w, &o, start_of(&a.tasks[0], "worker-7", UINT64_MAX));
        assert_int_equal(acquire(w, &o), 0);
        assert_int_equal(o.granted.page.tasks[0].busy_ms, STORE_START_MAX_MS);
}

static void a_start_needs_a_holder(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        struct store_advance a = claim(w, &o, 1);
        char text[NOTE_HOLDER_MAX + 2];
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        const char *const bad[] = { "", "two words", "line\n", text };
        for (unsigned i = 0; i < 4; i++) {
                struct store_outcome start = start_of(&a.tasks[0], bad[i], 1);
                assert_int_equal(advance_call(w, &o, o.call + 1, &start, 1, 0).request.status, -EINVAL);
        }
        struct store_outcome other = done(&a.tasks[0]);
        other.holder = T("aa");
        assert_int_equal(advance_call(w, &o, o.call + 1, &other, 1, 0).request.status, -EINVAL);
}

const struct CMUnitTest outcome_tests[] = {
        IN_WORLD(a_start_is_kept_with_its_holder_until_its_time),
        IN_WORLD(a_start_is_not_held_for_ever),
        IN_WORLD(a_start_needs_a_holder),
        IN_WORLD(done_is_final),
        IN_WORLD(an_outcome_of_a_queued_task_changes_nothing),
        IN_WORLD(only_those_that_are_named_are_done),
        IN_WORLD_4(completion_result_and_follow_ups_commit_together),
        IN_WORLD(a_bad_follow_up_refuses_the_whole_call),
        IN_WORLD(follow_ups_are_exempt_from_the_backlog_limit),
        IN_WORLD(attempts_crashes_and_interruptions_are_counted_apart),
        IN_WORLD(a_diverted_task_keeps_what_it_says_of_an_interruption),
        IN_WORLD(laters_are_counted_and_survive_a_takeover),
        IN_WORLD(laters_are_forgotten_by_a_requeue_and_told_with_a_result),
        IN_WORLD(later_needs_its_feature_and_a_retry),
        IN_WORLD(an_error_of_several_lines_keeps_them),
        IN_WORLD(history_is_bounded),
        IN_WORLD(a_suspects_start_is_durable_until_it_ends),
        IN_WORLD(a_checkpoint_survives_crash_and_retry),
        IN_WORLD(dead_is_kept_with_reason_history_and_bytes),
        IN_WORLD(a_held_keys_running_task_may_fail),
};
GROUP(outcome);
