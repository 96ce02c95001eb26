/* Order, lanes, seq, paging, payloads, limits, what a foreign producer may get wrong. */
#include "call.h"
#include "harness.h"

static void tasks_come_in_the_order_of_submit(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 5; i++)
                (void)submit(w, i % 2 ? "a" : "b", F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 3);
        expect_tasks(w, a, "0 1 2");
        assert_true(store_has_more(&a));
        assert_true(a.tasks[0].seq < a.tasks[1].seq && a.tasks[1].seq < a.tasks[2].seq);
        struct store_advance b = claim(w, &o, 10);
        expect_tasks(w, b, "3 4");
        assert_false(store_has_more(&b));
        assert_true(a.tasks[2].seq < b.tasks[0].seq);
}

static void higher_lanes_are_claimed_first(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit_lane(w, "a", "low1", LANE_LOW);
        (void)submit_lane(w, "a", "normal1", LANE_NORMAL);
        (void)submit_lane(w, "b", "high1", LANE_HIGH);
        (void)submit_lane(w, "b", "low2", LANE_LOW);
        (void)submit_lane(w, "a", "normal2", LANE_NORMAL);
        (void)submit_lane(w, "a", "high2", LANE_HIGH);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "high1 high2 normal1 normal2 low1 low2");
        assert_int_equal(a.tasks[0].envelope.lane, LANE_HIGH);
        assert_int_equal(STORE_SEQ_LANE(a.tasks[5].seq), LANE_LOW);
        for (unsigned i = 1; i < 6; i++)
                assert_true(a.tasks[i - 1].seq < a.tasks[i].seq);
        assert_int_equal(counts(w, 0).in_flight, 6);
        struct store_outcome all[6];
        for (unsigned i = 0; i < 6; i++)
                all[i] = done(&a.tasks[i]);
        (void)advance(w, &o, all, 6, 0);
        assert_int_equal(counts(w, 0).in_flight, 0);
        assert_int_equal(counts(w, 0).done, 6);
}

static void an_empty_shard_gives_nothing_and_says_so(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 10);
        assert_int_equal(a.tasks_count, 0);
        assert_false(store_has_more(&a));
        assert_true(a.next_due_ms == STORE_NEVER);
        assert_false(o.granted.has_work);
}

static void a_batch_keeps_its_order(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        static struct store_submission items[STORE_SUBMIT_TASKS];
        for (unsigned i = 0; i < STORE_SUBMIT_TASKS; i++)
                items[i] = (struct store_submission){ .envelope = { .key = F(w, "k%u", i % 7),
                                                              .handler = T("h"),
                                                              .payload = F(w, "%u", i),
                                                              .lane = LANE_NORMAL } };
        assert_int_equal(submit_items(w, items, STORE_SUBMIT_TASKS), 0);
        unsigned next = 0;
        while (next < STORE_SUBMIT_TASKS) {
                struct store_advance a = claim(w, &o, 1000);
                assert_true(a.tasks_count > 0 && a.tasks_count <= STORE_CALL_TASKS);
                for (unsigned i = 0; i < a.tasks_count; i++, next++)
                        assert_true(span_is(a.tasks[i].envelope.payload, F(w, "%u", next)));
        }
        assert_int_equal(counts(w, 0).in_flight, STORE_SUBMIT_TASKS);
}

/* A million in the long run, enough to be many in the short one. */
static void a_long_backlog_comes_in_order(void **state)
{
        struct world *w = *state;
        enum { KEYS = 1000 };
        unsigned total = getenv("QUIVER_TEST_ALL") ? 1000000 : 20000;
        static struct store_submission items[STORE_SUBMIT_TASKS];
        static unsigned last[KEYS];
        for (unsigned sent = 0; sent < total; sent += STORE_SUBMIT_TASKS) {
                for (unsigned i = 0; i < STORE_SUBMIT_TASKS; i++)
                        items[i] = (struct store_submission){ .envelope = { .key = F(w, "%u", (sent + i) % KEYS),
                                                                      .handler = T("h"),
                                                                      .payload = F(w, "%u", sent + i + 1),
                                                                      .lane = LANE_NORMAL } };
                assert_int_equal(submit_items(w, items, STORE_SUBMIT_TASKS), 0);
                arena_free(w->memory);
                w->memory = NULL;
        }
        assert_int_equal(counts(w, 0).queued[LANE_NORMAL], total);
        memset(last, 0, sizeof(last));
        struct owner o = own(w, 0, 1, 1);
        static struct store_outcome outcomes[STORE_CALL_TASKS];
        for (unsigned came = 0; came < total;) {
                struct store_advance a = claim(w, &o, STORE_CALL_TASKS);
                assert_true(a.tasks_count > 0);
                for (unsigned i = 0; i < a.tasks_count; i++, came++) {
                        unsigned number = (unsigned)strtoul(a.tasks[i].envelope.payload.data, NULL, 10);
                        assert_true(number > last[(number - 1) % KEYS]);
                        last[(number - 1) % KEYS] = number;
                        outcomes[i] = done(&a.tasks[i]);
                }
                assert_int_equal(advance(w, &o, outcomes, a.tasks_count, 0).verdict, STORE_OK);
                arena_free(w->memory);
                w->memory = NULL;
        }
        assert_int_equal(counts(w, 0).done, total);
}

static void too_many_in_one_submit_are_refused(void **state)
{
        struct world *w = *state;
        static struct store_submission items[STORE_SUBMIT_TASKS + 1];
        assert_int_equal(submit_items(w, items, STORE_SUBMIT_TASKS + 1), -EINVAL);
}

static void payloads_may_hold_anything(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span payload = { "\0\n\n\xff\xfe qv1\nkey:", 14 };
        struct store_submission item = { .envelope = { .key = T("Zürich 東京"),
                                                 .handler = T("h"),
                                                 .payload = payload,
                                                 .headers = T("header.traceparent:00-a-b-01\n"),
                                                 .attempts = 3,
                                                 .timeout_ms = 99,
                                                 .lane = LANE_NORMAL } };
        assert_int_equal(submit_items(w, &item, 1), 0);
        assert_int_equal(item.status, 0);
        struct store_advance a = claim(w, &o, 1);
        assert_int_equal(a.tasks_count, 1);
        const struct envelope *e = &a.tasks[0].envelope;
        assert_true(span_is(e->payload, payload));
        assert_true(span_is(e->key, T("Zürich 東京")));
        assert_true(span_is(e->headers, T("header.traceparent:00-a-b-01\n")));
        assert_true(span_is(e->id, T(item.id)));
        assert_int_equal(e->attempts, 3);
        assert_int_equal(e->timeout_ms, 99);
        assert_true(e->submitted_ms > 0);
}

static void bad_tasks_are_refused_one_by_one(void **state)
{
        struct world *w = *state;
        char *large = calloc(1, 2 * 1024 * 1024);
        assert_non_null(large);
        struct store_submission items[] = {
                { .envelope = { .key = T("ok"), .handler = T("h"), .payload = T("1"), .lane = LANE_NORMAL } },
                { .envelope = { .key = T("a\nb"), .handler = T("h"), .lane = LANE_NORMAL } },
                { .envelope = { .key = T("k"), .handler = T(""), .lane = LANE_NORMAL } },
                { .envelope = { .key = T("k"), .handler = T("h"), .id = T("x-3"), .lane = LANE_NORMAL } },
                { .envelope = { .key = T("k"), .handler = T("h"), .payload = { large, 1024 * 1024 + 1 } } },
                { .envelope = { .handler = T("h"), .unique_ms = 5, .lane = LANE_NORMAL } },
                { .envelope = { .key = T("ok"), .handler = T("h"), .payload = T("2"), .lane = LANE_NORMAL } },
        };
        const int expected[] = { 0, -EINVAL, -EINVAL, -EINVAL, -EMSGSIZE, -EINVAL, 0 };
        assert_int_equal(submit_items(w, items, 7), 0);
        for (unsigned i = 0; i < 7; i++)
                assert_int_equal(items[i].status, expected[i]);
        free(large);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "1 2");
}

static void a_full_backlog_refuses_and_drains(void **state)
{
        struct world *w = *state;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .backlog_max = 3 }, NULL), 0);
        (void)submit(w, "a", "1");
        (void)submit_delayed(w, "a", "later", 1000);
        struct store_submission items[3];
        for (unsigned i = 0; i < 3; i++)
                items[i] = (struct store_submission){
                        .envelope = { .key = T("b"), .handler = T("h"), .payload = T("2"), .lane = LANE_NORMAL }
                };
        assert_int_equal(submit_items(w, items, 3), 0);
        assert_int_equal(items[0].status, 0);
        assert_int_equal(items[1].status, -EDQUOT);
        assert_int_equal(items[2].status, -EDQUOT);
        struct owner o = own(w, 0, 1, 1);
        (void)claim(w, &o, 1);
        (void)submit(w, "b", "3");
}

static void keep_count(struct world *w, struct store_request *request)
{
        (void)w;
        (void)request;
}

/* Tasks of a lane, each of a key of its own: h0, h1, … */
static void submit_many(struct world *w, enum lane lane, unsigned count)
{
        for (unsigned i = 0; i < count; i++) {
                const char *name = F(w, "%c%u", "hnl"[lane], i).data;
                (void)submit_lane(w, name, name, lane);
        }
}

static void a_full_lane_leaves_room_for_the_others(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, LANE_HIGH, 3);
        submit_many(w, LANE_NORMAL, 3);
        submit_many(w, LANE_LOW, 3);
        struct store_advance a = claim_each(w, &o, 0, 2, 1);
        expect_tasks(w, a, "n0 n1 l0");
        assert_true(a.has_more[LANE_HIGH]);
        assert_true(a.has_more[LANE_NORMAL]);
        assert_true(a.has_more[LANE_LOW]);
        a = claim_each(w, &o, 10, 0, 2);
        expect_tasks(w, a, "h0 h1 h2 l1 l2");
        assert_false(a.has_more[LANE_HIGH]);
        assert_true(a.has_more[LANE_NORMAL]);
        assert_false(a.has_more[LANE_LOW]);
}

static void all_lanes_together_bring_no_more_than_a_call(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, LANE_HIGH, 100);
        submit_many(w, LANE_NORMAL, 100);
        submit_many(w, LANE_LOW, 100);
        struct store_advance a = claim_each(w, &o, 300, 300, 300);
        assert_int_equal(a.tasks_count, STORE_CALL_TASKS);
        assert_false(a.has_more[LANE_NORMAL]);
        assert_true(a.has_more[LANE_LOW]);
        assert_int_equal(claim_each(w, &o, 300, 300, 300).tasks_count, 300 - STORE_CALL_TASKS);
}

/* The heads of keys that are due count as their lane's, too. */
static void a_due_key_waits_for_room_in_its_lane(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, LANE_HIGH, 1);
        submit_many(w, LANE_LOW, 100);
        struct store_advance a = claim_each(w, &o, 200, 200, 200);
        assert_int_equal(a.tasks_count, 101);
        struct store_outcome outcomes[101];
        /* The one of the high lane is due last, behind many that have no room. */
        for (uint32_t i = 0; i < a.tasks_count; i++)
                outcomes[i] = retry(&a.tasks[i], i ? 10 : 15);
        outcomes[40].delay_ms = 1000;
        (void)advance(w, &o, outcomes, 41, 0);
        world_step(w, 20);
        a = claim_each(w, &o, 16, 16, 0);
        expect_tasks(w, a, "h0");
        assert_true(a.has_more[LANE_LOW]);
        assert_false(a.has_more[LANE_HIGH]);
        assert_false(a.has_more[LANE_NORMAL]);
        assert_int_equal(a.next_due_ms, 980);
        assert_true(a.has_due_waiting);
        a = claim_each(w, &o, 0, 16, 1);
        expect_tasks(w, a, "l0");
        a = claim_each(w, &o, 0, 0, 100);
        assert_int_equal(a.tasks_count, 38);
        assert_false(store_has_more(&a));
        assert_false(a.has_due_waiting);
}

static void a_call_stops_at_the_bytes_that_were_wanted(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 20; i++)
                (void)submit(w, "k", F(w, "%0400u", i).data);
        struct store_advance a = { .lease = o.lease, .call = o.call + 1, .want = { 20, 20, 20 }, .want_bytes = 1000 };
        assert_int_equal(CALL(w, store_advance, &a, keep_count), 0);
        assert_in_range(a.tasks_count, 1, 4);
        assert_true(store_has_more(&a));
        assert_int_equal(counts(w, 0).queued[LANE_NORMAL], 20 - a.tasks_count);
}

static void a_call_returns_no_more_than_its_bytes(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        char *payload = malloc(400000);
        assert_non_null(payload);
        memset(payload, 'x', 400000);
        for (unsigned i = 0; i < 6; i++) {
                struct store_submission item = { .envelope = { .key = T("k"),
                                                         .handler = T("h"),
                                                         .payload = { payload, 400000 },
                                                         .lane = LANE_NORMAL } };
                assert_int_equal(submit_items(w, &item, 1), 0);
        }
        free(payload);
        struct store_advance a = claim(w, &o, 6);
        assert_int_equal(a.tasks_count, 3);
        assert_true(store_has_more(&a));
        a = advance_call(w, &o, o.call + 1, NULL, 0, 6);
        assert_int_equal(a.tasks_count, 3);
        assert_false(store_has_more(&a));
}

static void tasks_without_a_key_run_on_any_shard(void **state)
{
        struct world *w = *state;
        unsigned seen[4] = { 0 };
        for (unsigned i = 0; i < 64; i++) {
                struct store_submission item = { .envelope = { .handler = T("h"), .lane = LANE_NORMAL } };
                assert_int_equal(submit_items(w, &item, 1), 0);
                seen[item.shard]++;
                uint32_t shard;
                assert_int_equal(task_id_check(T(item.id), &shard, NULL), 0);
                assert_int_equal(shard, item.shard);
        }
        for (uint32_t i = 0; i < 4; i++) {
                struct owner o = own(w, i, 1, 1);
                struct store_advance a = claim(w, &o, 64);
                assert_int_equal(a.tasks_count, seen[i]);
                assert_true(seen[i] > 0);
                for (uint32_t t = 0; t < a.tasks_count; t++)
                        assert_true(span_is(a.tasks[t].key, a.tasks[t].envelope.id));
        }
}

static void keys_go_to_their_shards(void **state)
{
        struct world *w = *state;
        for (uint32_t i = 0; i < 4; i++)
                (void)submit(w, key_of(w, i, i).data, F(w, "%u", i).data);
        for (uint32_t i = 0; i < 4; i++) {
                struct owner o = own(w, i, 1, 1);
                struct store_advance a = claim(w, &o, 10);
                expect_tasks(w, a, F(w, "%u", i).data);
        }
}

/* --- a foreign producer ------------------------------------------------------------------------------------------ */

static void a_foreign_push_is_claimed_in_order(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "1");
        driver->push(w->place, 0, LANE_NORMAL, T("qv1\nkey:k\nhandler:h\n\n2"));
        driver->push(w->place, 0, LANE_HIGH, T("qv1\nkey:k\nhandler:h\nlane:low\n\n0"));
        (void)submit(w, "k", "3");
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "0 1 2 3");
        assert_int_equal(a.tasks[0].envelope.lane, LANE_HIGH);
        /* It had no id: the store gives one by which it can be found. */
        assert_true(a.tasks[2].envelope.id.size > 0);
        assert_non_null(find(w, a.tasks[2].envelope.id));
}

static void what_no_host_can_run_is_set_aside_with_its_bytes(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 1, 1, 1);
        struct span elsewhere = F(w, "qv1\nkey:%s\nhandler:h\n\nx", key_of(w, 2, 0).data);
        struct span good = F(w, "qv1\nkey:%s\nhandler:h\n\ngood", key_of(w, 1, 0).data);
        driver->push(w->place, 1, LANE_NORMAL, T("garbage\0\n"));
        driver->push(w->place, 1, LANE_NORMAL, elsewhere);
        driver->push(w->place, 1, LANE_NORMAL, good);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "good");
        assert_int_equal(a.set_aside, 2);
        struct store_list l = list(w, 1, STATE_DEAD);
        assert_int_equal(l.tasks_count, 2);
        assert_true(span_is(l.tasks[0].reason, T("malformed")));
        assert_true(span_is(l.tasks[0].envelope.payload, T("garbage")));
        assert_true(span_is(l.tasks[1].reason, T("misplaced")));
        struct note_event event;
        assert_true(note_event_next(&l.tasks[1].note.events, &event));
        assert_non_null(strstr(F(w, "%.*s", (int)event.text.size, event.text.data).data, "shard 2"));
}

/* Whatever its size: some are short of being too long for a script to touch. */
static void what_is_too_long_is_dead_until_it_is_dropped(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        const size_t sizes[] = { 1024 * 1024 + 1, 2 * 1024 * 1024, 5 * 1024 * 1024 };
        char *bytes = malloc(6 * 1024 * 1024);
        assert_non_null(bytes);
        for (unsigned i = 0; i < 3; i++) {
                int head = sprintf(bytes, "qv1\nkey:k\nhandler:h\n\n");
                memset(bytes + head, 'x', sizes[i]);
                driver->push(w->place, 0, LANE_NORMAL, F(w, "qv1\nkey:k\nhandler:h\n\n%u", i));
                driver->push(w->place, 0, LANE_NORMAL, (struct span){ bytes, (size_t)head + sizes[i] });
        }
        free(bytes);
        driver->push(w->place, 0, LANE_NORMAL, T("qv1\nkey:k\nhandler:h\n\n3"));
        const char *claimed = "";
        unsigned set_aside = 0;
        struct store_advance a = { .has_more = { true } };
        for (unsigned call = 0; store_has_more(&a) && call < 20; call++) {
                a = claim(w, &o, 10);
                claimed = F(w, "%s%s", claimed, payloads(w, a.tasks, a.tasks_count)).data;
                set_aside += a.set_aside;
        }
        for (unsigned i = 0; i < 4; i++)
                assert_non_null(strchr(claimed, (int)('0' + i)));
        assert_int_equal(set_aside, 3);
        struct store_list l = list(w, 0, STATE_DEAD);
        unsigned seen = 0;
        uint64_t numbers[3] = { 0 };
        for (;; list_next(w, &l)) {
                for (unsigned i = 0; i < l.tasks_count && seen < 3; i++) {
                        numbers[seen++] = l.tasks[i].number;
                        assert_true(span_is(l.tasks[i].reason, T("too long")));
                        assert_int_equal(dead_act(w, DEAD_REQUEUE, l.tasks[i].id).refused, 1);
                }
                if (l.is_end)
                        break;
        }
        assert_int_equal(seen, 3);
        for (unsigned i = 0; i < 3; i++) {
                struct store_dead again = dead_act_on(w, DEAD_REQUEUE, &numbers[i], 1);
                assert_int_equal(again.acted, 0);
                assert_int_equal(again.refused, 1);
        }
        assert_int_equal(counts(w, 0).dead, 3);
        expect_sound(w);
        unsigned dropped = 0;
        for (unsigned i = 0; i < 3; i++)
                dropped += dead_act_on(w, DEAD_DROP, &numbers[i], 1).acted;
        assert_int_equal(dropped, 3);
        assert_int_equal(counts(w, 0).dead, 0);
        expect_sound(w);
}

static void a_foreign_not_before_waits(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        driver->push(w->place, 0, LANE_NORMAL, T("qv1\nkey:k\nhandler:h\nnot_before:1763256001000\n\nlater"));
        struct store_advance a = claim(w, &o, 10);
        assert_int_equal(a.tasks_count, 0);
        assert_int_equal(counts(w, 0).delayed, 1);
        assert_true(a.next_due_ms == 1000);
        world_step(w, 1000);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "later");
}

/* --- delayed and unique ------------------------------------------------------------------------------------------ */

static void delayed_tasks_join_when_due_in_order_of_due(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit_delayed(w, "k", "300", 300);
        (void)submit_delayed(w, "k", "100a", 100);
        (void)submit_delayed(w, "k", "200", 200);
        (void)submit_delayed(w, "k", "100b", 100);
        (void)submit(w, "k", "now");
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "now");
        assert_int_equal(a.next_due_ms, 100);
        assert_int_equal(counts(w, 0).delayed, 4);
        world_step(w, 99);
        assert_int_equal(claim(w, &o, 10).tasks_count, 0);
        world_step(w, 1);
        assert_true(renew(w, &o).has_work);
        world_step(w, 100);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "100a 100b 200");
        assert_int_equal(a.next_due_ms, 100);
        world_step(w, 100);
        a = claim(w, &o, 10);
        expect_tasks(w, a, "300");
        assert_true(a.next_due_ms == STORE_NEVER);
}

static void delayed_tasks_keep_their_lane(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_submission item = {
                .envelope = { .key = T("k"), .handler = T("h"), .payload = T("high"), .lane = LANE_HIGH },
                .delay_ms = 10
        };
        assert_int_equal(submit_items(w, &item, 1), 0);
        (void)submit(w, "k", "normal");
        world_step(w, 10);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "high normal");
}

static void unique_takes_one_within_its_window(void **state)
{
        struct world *w = *state;
        struct store_submission item = { .envelope = { .key = T("k"),
                                                 .handler = T("h"),
                                                 .payload = T("1"),
                                                 .unique_ms = 500,
                                                 .lane = LANE_NORMAL } };
        struct store_submission again = item;
        struct store_submission other = item;
        struct store_submission later = item;
        other.envelope.handler = T("other");
        w->lose_next = true; /* the producer does not know, and repeats */
        assert_int_equal(submit_items(w, &item, 1), -ETIMEDOUT);
        assert_int_equal(submit_items(w, &again, 1), 0);
        assert_int_equal(again.status, -EEXIST);
        assert_string_equal(again.id, item.id);
        assert_int_equal(submit_items(w, &other, 1), 0);
        assert_int_equal(other.status, 0);
        world_step(w, 500);
        assert_int_equal(submit_items(w, &later, 1), 0);
        assert_int_equal(later.status, 0);
        assert_int_equal(counts(w, 0).queued[LANE_NORMAL], 3);
}

const struct CMUnitTest order_tests[] = {
        IN_WORLD(tasks_come_in_the_order_of_submit),
        IN_WORLD(higher_lanes_are_claimed_first),
        IN_WORLD(an_empty_shard_gives_nothing_and_says_so),
        IN_WORLD(a_batch_keeps_its_order),
        IN_WORLD(a_long_backlog_comes_in_order),
        IN_WORLD(too_many_in_one_submit_are_refused),
        IN_WORLD(payloads_may_hold_anything),
        IN_WORLD(bad_tasks_are_refused_one_by_one),
        IN_WORLD(a_full_backlog_refuses_and_drains),
        IN_WORLD(a_full_lane_leaves_room_for_the_others),
        IN_WORLD(all_lanes_together_bring_no_more_than_a_call),
        IN_WORLD(a_due_key_waits_for_room_in_its_lane),
        IN_WORLD(a_call_stops_at_the_bytes_that_were_wanted),
        IN_WORLD(a_call_returns_no_more_than_its_bytes),
        IN_WORLD_4(tasks_without_a_key_run_on_any_shard),
        IN_WORLD_4(keys_go_to_their_shards),
        IN_WORLD(a_foreign_push_is_claimed_in_order),
        IN_WORLD_4(what_no_host_can_run_is_set_aside_with_its_bytes),
        IN_WORLD(what_is_too_long_is_dead_until_it_is_dropped),
        IN_WORLD(a_foreign_not_before_waits),
        IN_WORLD(delayed_tasks_join_when_due_in_order_of_due),
        IN_WORLD(delayed_tasks_keep_their_lane),
        IN_WORLD(unique_takes_one_within_its_window),
};
GROUP(order);
