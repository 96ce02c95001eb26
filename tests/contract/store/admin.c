/* Looking: counts, ages, lists, find, keys, desired state, status documents. */
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
        assert_int_equal(store_counts_parked(&c), 2);
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

/* A retry that becomes due must not slip through between the look at the parked and the one in flight. */
static void a_small_shard_is_searched_at_one_moment(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned i = 0; i < 40; i++)
                (void)submit(w, F(w, "k%u", i).data, "x");
        struct store_advance a = claim(w, &o, 20);
        struct store_outcome outcomes[] = { dead(&a.tasks[0], "rejected"), retry(&a.tasks[1], 100) };
        (void)advance(w, &o, outcomes, 2, 0);
        (void)submit_delayed(w, "later", "x", 100);
        struct store_find f = { .id = T("nobody-0") };
        assert_int_equal(call_find(w, &f), 0);
        assert_true(f.is_end);
}

static void a_task_that_goes_back_in_flight_between_two_slices_is_found(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "z", "x");
        (void)submit(w, "a", "x");
        struct store_advance a = claim(w, &o, 2);
        struct store_outcome held = hold(&a.tasks[1]), retried = retry(&a.tasks[0], 100);
        (void)advance(w, &o, &held, 1, 0);
        for (unsigned i = 0; i < STORE_FIND_SLICE; i++)
                (void)submit(w, "a", "x");
        while (counts(w, 0).queued[LANE_NORMAL])
                (void)claim(w, &o, STORE_CALL_TASKS);
        (void)advance(w, &o, &retried, 1, 0); /* the last of the parked keys, in the order of either store */
        struct store_find f = { .id = id };
        assert_int_equal(call_find(w, &f), 0);
        assert_false(f.is_end); /* it has seen the key "a", and that nothing is in flight */
        world_step(w, 100);
        assert_int_equal(claim(w, &o, 1).tasks_count, 1);
        while (!f.is_end)
                assert_int_equal(call_find(w, &f), 0);
        assert_non_null(f.task);
        assert_int_equal(f.task->state, STATE_IN_FLIGHT);
}

/* --- desired state, status documents ----------------------------------------------------------------------------- */

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

const struct CMUnitTest admin_tests[] = {
        IN_WORLD(counts_add_up_in_every_state),
        IN_WORLD(the_oldest_task_is_known_whoever_holds_it),
        IN_WORLD(nothing_is_older_than_its_app),
        IN_WORLD(lists_page_through_everything_once),
        IN_WORLD(keys_are_listed_with_their_reasons),
        IN_WORLD(find_knows_every_state),
        IN_WORLD(find_reads_a_long_log_in_slices),
        IN_WORLD(a_small_shard_is_searched_at_one_moment),
        IN_WORLD(a_task_that_goes_back_in_flight_between_two_slices_is_found),
        IN_WORLD(the_desired_state_has_a_version_and_survives),
        IN_WORLD(status_documents_show_their_age_and_go),
        IN_WORLD(counters_only_grow_whoever_comes_and_goes),
        IN_WORLD(what_runs_is_a_document_of_its_own),
        IN_WORLD(what_was_done_is_a_document_too_and_can_be_read_alone),
        IN_WORLD(an_hour_is_a_document_with_a_limit_of_its_own),
};
GROUP(admin);
