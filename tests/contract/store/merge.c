/* Tasks that are merged into another one that waits. */
#include "call.h"
#include "harness.h"

static struct span submit_merge_kept(struct world *w, const char *key, const char *payload, uint64_t reply_ms)
{
        struct buffer headers = { 0 };
        assert_int_equal(header_put(&headers, T("of"), T(payload), NULL), 0);
        struct store_submission item = { .envelope = { .key = T(key),
                                                 .handler = T("h"),
                                                 .payload = T(payload),
                                                 .headers = { (const char *)headers.data, headers.size },
                                                 .reply_ms = reply_ms,
                                                 .lane = LANE_NORMAL,
                                                 .is_merge = true } };
        assert_int_equal(submit_items(w, &item, 1), 0);
        assert_int_equal(item.status, 0);
        buffer_free(&headers);
        return keep(w, span_of_text(item.id));
}

static struct span submit_merge(struct world *w, const char *key, const char *payload)
{
        return submit_merge_kept(w, key, payload, 0);
}

/* What stands behind the first of these tasks is merged into it. */
static struct store_outcome merge(struct world *w, const struct store_task *tasks, uint32_t count)
{
        struct store_ref *refs = arena_take(&w->memory, count * sizeof(*refs));
        for (uint32_t i = 1; i < count; i++)
                refs[i - 1] = ref(&tasks[i]);
        return (struct store_outcome){
                .kind = STORE_MERGE, .task = ref(&tasks[0]), .merged = refs, .merged_count = count - 1
        };
}

static struct store_outcome debounce(const struct store_task *task, uint64_t delay_ms)
{
        struct store_outcome outcome = divert(task);
        outcome.is_debounce = true;
        outcome.delay_ms = delay_ms;
        outcome.reason = T("debounced");
        return outcome;
}

/* The tasks as the next owner finds them. */
static struct store_page after_crash(struct world *w, uint64_t epoch)
{
        world_reopen(w);
        world_step(w, TTL_MS);
        return own(w, 0, epoch, (uint8_t)epoch).granted.page;
}

static void the_first_keeps_its_place_and_gets_the_last_ones_payload(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span ids[3];
        for (unsigned i = 0; i < 3; i++)
                ids[i] = submit_merge(w, "k", F(w, "payload-%u", i).data);
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcome = merge(w, a.tasks, 3);
        assert_int_equal(advance(w, &o, &outcome, 1, 0).gone, 0);
        struct store_counts c = counts(w, 0);
        assert_int_equal(c.merged, 2);
        assert_int_equal(c.in_flight, 1);
        assert_int_equal(c.submitted, 3);
        assert_int_equal(c.done, 0);
        expect_sound(w);

        struct store_page page = after_crash(w, 2);
        assert_int_equal(page.tasks_count, 1);
        const struct store_task *task = &page.tasks[0];
        assert_int_equal(task->seq, a.tasks[0].seq);
        assert_true(span_is(task->envelope.id, ids[0]));
        assert_true(span_is(task->key, T("k")));
        assert_true(span_is(task->envelope.payload, T("payload-2")));
        assert_true(span_is(task->envelope.headers, T("header.of:payload-2\n")));
        assert_int_equal(task->envelope.submitted_ms, a.tasks[0].envelope.submitted_ms);
        assert_true(task->envelope.is_merge);
        assert_int_equal(task->note.merged, 2);
        assert_true(task->note.merged_ms > 0);
        assert_false(note_has_started(&task->note));
}

static void later_merges_add_up(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit_merge(w, "k", "1");
        (void)submit_merge(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_task tasks[2] = { a.tasks[0] };
        (void)settle(w, &o, merge(w, a.tasks, 2));
        world_step(w, 1000);
        (void)submit_merge(w, "k", "3");
        tasks[1] = claim(w, &o, 10).tasks[0];
        (void)settle(w, &o, merge(w, tasks, 2));
        struct store_page page = after_crash(w, 2);
        assert_int_equal(page.tasks_count, 1);
        assert_int_equal(page.tasks[0].note.merged, 2);
        assert_true(span_is(page.tasks[0].envelope.payload, T("3")));
        assert_int_equal(counts(w, 0).merged, 2);
        expect_sound(w);
}

static void a_merge_with_one_that_is_gone_changes_nothing(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 1; i <= 4; i++)
                (void)submit_merge(w, "k", F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 3);
        struct store_task tasks[3] = { a.tasks[0], a.tasks[1], a.tasks[2] };
        tasks[2].seq++; /* queued yet */
        assert_int_equal(settle(w, &o, merge(w, tasks, 3)).gone, 1);
        tasks[0].seq = tasks[2].seq;
        assert_int_equal(settle(w, &o, merge(w, tasks, 2)).gone, 1);
        assert_int_equal(counts(w, 0).merged, 0);
        assert_int_equal(counts(w, 0).in_flight, 3);
        expect_sound(w);
        struct store_page page = after_crash(w, 2);
        assert_string_equal(payloads(w, page.tasks, page.tasks_count), "1 2 3");
}

static void a_merge_is_fenced_and_a_repeat_merges_nothing_twice(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit_merge(w, "k", "1");
        (void)submit_merge(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcome = merge(w, a.tasks, 2);
        struct owner other = owner_of(0, 1, 2);
        assert_int_equal(advance_call(w, &other, o.call + 1, &outcome, 1, 0).verdict, STORE_FENCED);
        assert_int_equal(counts(w, 0).merged, 0);
        uint64_t call = o.call + 1;
        assert_int_equal(advance_call(w, &o, call, &outcome, 1, 0).verdict, STORE_OK);
        assert_int_equal(advance_call(w, &o, call, &outcome, 1, 0).verdict, STORE_OK);
        assert_int_equal(counts(w, 0).merged, 1);
        assert_int_equal(counts(w, 0).in_flight, 1);
        expect_sound(w);
}

static void who_waits_for_a_merged_task_gets_the_outcome(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span first = submit_merge(w, "k", "1");
        struct span waits = submit_merge_kept(w, "k", "2", 5000);
        struct span last = submit_merge_kept(w, "k", "3", 100);
        struct store_advance a = claim(w, &o, 10);
        (void)settle(w, &o, merge(w, a.tasks, 3));
        assert_int_equal(reply(w, waits, 0).state, REPLY_PENDING);
        world_step(w, 50000); /* longer than the outcome is to be kept */
        assert_int_equal(reply(w, waits, 0).state, REPLY_PENDING);
        assert_int_equal(acquire(w, &o), 0);
        struct store_task task = o.granted.page.tasks[0];
        assert_int_equal(task.envelope.reply_ms, 5000); /* what the one that asked for longest wants */
        struct store_outcome outcome = done(&task);
        outcome.has_result = true;
        outcome.result = T("the result");
        (void)settle(w, &o, outcome);
        struct span all[] = { first, waits, last };
        for (unsigned i = 0; i < 3; i++) {
                struct store_reply r = reply(w, all[i], 0);
                assert_int_equal(r.state, REPLY_DONE);
                assert_true(span_is(r.data, T("the result")));
                assert_int_equal(r.note.merged, 2);
        }
        assert_int_equal(counts(w, 0).results, 0); /* somebody waited for it */
        expect_sound(w);
}

static unsigned replied;

static void on_reply(struct store_request *request)
{
        const struct store_reply *r = (const struct store_reply *)request;
        assert_int_equal(request->status, 0);
        assert_int_equal(r->state, REPLY_DEAD);
        replied++;
}

static void a_wait_is_led_on_while_it_waits(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit_merge(w, "k", "1");
        struct span waits = submit_merge_kept(w, "k", "2", 60000);
        struct store_advance a = claim(w, &o, 10);
        replied = 0;
        struct store_reply r = { .request.done = on_reply, .id = waits, .wait_ms = 20000 };
        store_reply(w->store, &r);
        (void)settle(w, &o, merge(w, a.tasks, 2));
        struct store_task task = a.tasks[0];
        task.envelope.reply_ms = 60000;
        (void)settle(w, &o, dead(&task, "rejected"));
        world_wait(w, &replied, 1);
}

/* The other one may itself be merged, be cancelled, or be skipped. */
static void a_wait_is_led_on_as_often_as_it_takes(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span first = submit_merge(w, "k", "1");
        (void)submit_merge(w, "k", "2");
        struct span waits = submit_merge_kept(w, "k", "3", 60000);
        struct store_advance a = claim(w, &o, 10);
        (void)settle(w, &o, merge(w, a.tasks + 1, 2));
        struct store_task tasks[2] = { a.tasks[0], a.tasks[1] };
        tasks[1].envelope.reply_ms = 60000;
        (void)settle(w, &o, merge(w, tasks, 2));
        (void)release(w, &o);
        assert_int_equal(cancel(w, first, NULL), 0);
        struct store_reply r = reply(w, waits, 0);
        assert_int_equal(r.state, REPLY_DEAD);
        assert_true(span_is(r.reason, T("cancelled")));
        expect_sound(w);
        assert_int_equal(dead_act(w, DEAD_REQUEUE, first).acted, 1);
        o = own(w, 0, 2, 1);
        expect_tasks(w, claim(w, &o, 1), "3");
}

static void a_wait_is_led_nowhere_else(void **state)
{
        (void)state;
        struct store_reply r = { .id = T("a-0") };
        assert_true(span_is(store_reply_id(&r), T("a-0")));
        assert_false(store_reply_follow(&r, T("b-1"))); /* another shard's */
        assert_false(store_reply_follow(&r, T("no id")));
        assert_false(store_reply_follow(&r, (struct span){ 0 }));
        unsigned hops = 0;
        while (store_reply_follow(&r, T("a-0")))
                assert_true(++hops <= STORE_REPLY_HOPS);
        assert_int_equal(hops, STORE_REPLY_HOPS);
        assert_true(store_reply_follow(&(struct store_reply){ .id = T("a-0") }, T("b-0")));
}

static void it_is_known_where_a_task_went(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        enum { ROUNDS = 5, EACH = STORE_CALL_MERGED + 1 };
        struct span first = { 0 };
        struct span second = { 0 };
        struct span last = { 0 };
        struct store_task *tasks = arena_take(&w->memory, EACH * sizeof(*tasks));
        for (unsigned round = 0; round < ROUNDS; round++) {
                for (unsigned i = round ? 1 : 0; i < EACH; i++) {
                        last = submit_merge(w, "k", "x");
                        first = round || i ? first : last;
                        second = round || i != 1 ? second : last;
                }
                for (unsigned have = round ? 1 : 0; have < EACH;) {
                        struct store_advance a = claim(w, &o, EACH - have);
                        memcpy(tasks + have, a.tasks, a.tasks_count * sizeof(*tasks));
                        have += a.tasks_count;
                }
                assert_int_equal(settle(w, &o, merge(w, tasks, EACH)).gone, 0);
        }
        assert_int_equal(counts(w, 0).merged, ROUNDS * STORE_CALL_MERGED);
        struct store_find found = find_merged(w, last);
        assert_true(span_is(found.merged_into, first));
        assert_true(found.merged_ms > 0);
        assert_int_equal(find_merged(w, second).merged_into.size, 0); /* STORE_MERGED_KEPT, and it was before those */
        assert_non_null(find(w, first));
        assert_int_equal(find_merged(w, T("never-0")).merged_into.size, 0);
        expect_sound(w);
}

static void a_merge_takes_more_of_the_key(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 1; i <= 4; i++)
                (void)submit_merge(w, "k", F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 3);
        (void)settle(w, &o, divert(&a.tasks[2]));
        assert_int_equal(claim(w, &o, 10).tasks_count, 0); /* 4 goes behind 3 */
        struct store_outcome outcome = merge(w, a.tasks, 2);
        outcome.refill = 16;
        expect_tasks(w, settle(w, &o, outcome), "3 4");
        expect_sound(w);
}

/* Debounced: a key with a time, and claim itself puts later tasks behind the first. */
static void a_debounced_key_comes_with_what_has_joined_it(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit_merge(w, "k", "0");
        struct store_advance a = claim(w, &o, 1);
        assert_false(a.tasks[0].note.is_debounced);
        (void)settle(w, &o, debounce(&a.tasks[0], 500));
        struct store_key_info k = key(w, "k");
        assert_int_equal(k.state, KEY_WAITING);
        assert_in_range(k.due_in_ms, 1, 500);
        assert_true(span_is(k.reason, T("debounced")));
        for (unsigned i = 1; i < 20; i++)
                (void)submit_merge(w, "k", F(w, "%u", i).data);
        a = claim(w, &o, 40);
        assert_int_equal(a.tasks_count, 0);
        world_step(w, 501);
        assert_int_equal(acquire(w, &o), 0);
        a = claim(w, &o, 40);
        expect_tasks(w, a, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
        assert_true(a.tasks[0].note.is_debounced);
        assert_false(note_has_started(&a.tasks[0].note));
        struct store_outcome outcome = merge(w, a.tasks, a.tasks_count);
        outcome.refill = 16;
        expect_tasks(w, settle(w, &o, outcome), "16 17 18 19");
        expect_sound(w);
}

static void a_due_key_brings_no_more_than_there_is_room_for(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 5; i++)
                (void)submit_merge(w, "k", F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 5);
        struct store_outcome outcomes[5];
        for (unsigned i = 0; i < 5; i++)
                outcomes[i] = debounce(&a.tasks[i], 0);
        (void)advance(w, &o, outcomes, 5, 0);
        uint32_t want[LANES] = { [LANE_HIGH] = 9, [LANE_NORMAL] = 3, [LANE_LOW] = 9 };
        a = advance_lanes(w, &o, ++o.call, NULL, 0, want);
        expect_tasks(w, a, "0 1 2");
        expect_sound(w);
}

/* Nothing is merged into it yet, so no merge takes more of the key: what waits behind it comes with the next call. */
static void a_due_head_that_has_the_last_room_leaves_its_key_due(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 3; i++)
                (void)submit_merge(w, "k", F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 3);
        struct store_outcome outcomes[3];
        for (unsigned i = 0; i < 3; i++)
                outcomes[i] = debounce(&a.tasks[i], 0);
        (void)advance(w, &o, outcomes, 3, 0);
        a = claim_each(w, &o, 9, 1, 9);
        expect_tasks(w, a, "0");
        assert_true(a.has_more[LANE_NORMAL]);
        expect_tasks(w, claim_each(w, &o, 9, 0, 9), "");
        expect_tasks(w, claim_each(w, &o, 0, 1, 0), "1");
        expect_tasks(w, claim(w, &o, 9), "2");
        expect_sound(w);
}

static void a_due_head_that_is_not_to_be_merged_comes_alone(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "0");
        (void)submit_merge(w, "k", "1");
        struct store_advance a = claim(w, &o, 2);
        struct store_outcome outcomes[] = { divert(&a.tasks[1]), divert(&a.tasks[0]) };
        outcomes[0].delay_ms = outcomes[1].delay_ms = 0;
        expect_tasks(w, advance(w, &o, outcomes, 2, 10), "0");
        expect_sound(w);
}

/* Others of it wait already, for longer or shorter: the head's time is what was asked for. */
static void a_debounce_sets_the_keys_time(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit_merge(w, "k", "0");
        (void)submit_merge(w, "k", "1");
        (void)submit_merge(w, "k", "2");
        struct store_advance a = claim(w, &o, 3);
        struct store_outcome behind = divert(&a.tasks[2]);
        behind.delay_ms = STORE_WAITING_MS;
        (void)settle(w, &o, behind);
        (void)settle(w, &o, debounce(&a.tasks[0], 3600000));
        assert_in_range(key(w, "k").due_in_ms, STORE_WAITING_MS + 1, 3600000);
        (void)settle(w, &o, debounce(&a.tasks[1], 10)); /* not the first */
        assert_in_range(key(w, "k").due_in_ms, 0, 10);
        expect_sound(w);
}

static void what_cannot_be_merged_is_refused(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_submission item = { .envelope = { .handler = T("h"), .lane = LANE_NORMAL, .is_merge = true } };
        assert_int_equal(submit_items(w, &item, 1), 0);
        assert_int_equal(item.status, -EINVAL); /* needs a key */
        item = (struct store_submission){
                .envelope = { .key = T("k"), .handler = T("h"), .lane = LANE_NORMAL, .debounce_ms = 5 }
        };
        assert_int_equal(submit_items(w, &item, 1), 0);
        assert_int_equal(item.status, -EINVAL); /* needs merge */
        (void)submit_merge(w, "k", "1");
        (void)submit_merge(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome many = merge(w, a.tasks, 2);
        struct store_ref *refs = arena_take(&w->memory, (STORE_CALL_MERGED + 1) * sizeof(*refs));
        for (uint32_t i = 0; i <= STORE_CALL_MERGED; i++)
                refs[i] = ref(&a.tasks[1]);
        many.merged = refs;
        many.merged_count = STORE_CALL_MERGED + 1;
        struct store_outcome none = merge(w, a.tasks, 1);
        struct store_outcome done_with = done(&a.tasks[0]);
        done_with.merged = refs;
        done_with.merged_count = 1;
        struct store_outcome debounced = done(&a.tasks[0]);
        debounced.is_debounce = true;
        struct store_outcome no_seq = merge(w, a.tasks, 2);
        struct store_ref beyond = ref(&a.tasks[1]);
        beyond.seq = STORE_SEQ_MAX + 1;
        no_seq.merged = &beyond;
        struct store_outcome wrong[] = { many, none, done_with, debounced, no_seq };
        for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_int_equal(advance_call(w, &o, o.call + 1, &wrong[i], 1, 0).request.status, -EINVAL);
        assert_int_equal(counts(w, 0).in_flight, 2);
}

static void nothing_is_merged_before_the_feature_is_on(void **state)
{
        struct world *w = *state;
        world_close(w);
        driver->record(w->place, "features", "names");
        struct error error;
        assert_int_equal(world_open(w, (struct store_options){ .is_host = true }, &error), 0);
        struct owner o = own(w, 0, 1, 1);
        struct store_submission item = {
                .envelope = { .key = T("k"), .handler = T("h"), .lane = LANE_NORMAL, .is_merge = true }
        };
        assert_int_equal(submit_items(w, &item, 1), 0);
        assert_int_equal(item.status, -ENOTSUP);
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct store_advance a = claim(w, &o, 10);
        struct store_outcome outcome = merge(w, a.tasks, 2);
        assert_int_equal(advance_call(w, &o, o.call + 1, &outcome, 1, 0).request.status, -ENOTSUP);
}

const struct CMUnitTest merge_tests[] = {
        IN_WORLD(the_first_keeps_its_place_and_gets_the_last_ones_payload),
        IN_WORLD(later_merges_add_up),
        IN_WORLD(a_merge_with_one_that_is_gone_changes_nothing),
        IN_WORLD(a_merge_is_fenced_and_a_repeat_merges_nothing_twice),
        IN_WORLD(who_waits_for_a_merged_task_gets_the_outcome),
        IN_WORLD(a_wait_is_led_on_while_it_waits),
        IN_WORLD(a_wait_is_led_on_as_often_as_it_takes),
        IN_WORLD(a_wait_is_led_nowhere_else),
        IN_WORLD(it_is_known_where_a_task_went),
        IN_WORLD(a_merge_takes_more_of_the_key),
        IN_WORLD(a_debounced_key_comes_with_what_has_joined_it),
        IN_WORLD(a_due_key_brings_no_more_than_there_is_room_for),
        IN_WORLD(a_due_head_that_has_the_last_room_leaves_its_key_due),
        IN_WORLD(a_due_head_that_is_not_to_be_merged_comes_alone),
        IN_WORLD(a_debounce_sets_the_keys_time),
        IN_WORLD(what_cannot_be_merged_is_refused),
        IN_WORLD(nothing_is_merged_before_the_feature_is_on),
};
GROUP(merge);
