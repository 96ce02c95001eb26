/* The lease and the fence: who may act, repeated and late calls, wants, clocks, recovery. */
#include "call.h"
#include "harness.h"

static enum store_grant ask(struct world *w, struct owner *o)
{
        assert_int_equal(acquire(w, o), 0);
        return o->granted.grant;
}

static void a_shard_has_one_owner_and_epochs_only_grow(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 5, 1);
        struct owner lower = owner_of(0, 4, 2);
        struct owner equal = owner_of(0, 5, 2);
        struct owner higher = owner_of(0, 6, 2);
        assert_int_equal(ask(w, &lower), STORE_STALE);
        assert_int_equal(lower.granted.stored_epoch, 5);
        assert_int_equal(ask(w, &equal), STORE_STALE);
        assert_int_equal(ask(w, &higher), STORE_BUSY);
        assert_int_equal(higher.granted.busy_ms, TTL_MS);
        assert_memory_equal(higher.granted.holder, a.lease.nonce, STORE_NONCE_SIZE);
        assert_int_equal(counts(w, 0).epoch, 5);
        assert_int_equal(release(w, &a), STORE_OK);
        assert_int_equal(ask(w, &lower), STORE_STALE);
        assert_int_equal(ask(w, &higher), STORE_GRANTED);
        assert_false(higher.granted.is_recovery);
        assert_int_equal(counts(w, 0).epoch, 6);
}

static void an_expired_lease_can_be_taken_and_then_fences(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        struct owner a = own(w, 0, 1, 1);
        struct store_advance first = claim(w, &a, 1);
        world_step(w, TTL_MS);
        struct owner b = own(w, 0, 2, 2);
        assert_true(b.granted.is_recovery);
        assert_int_equal(b.granted.page.tasks_count, 1);
        struct store_outcome outcome = done(&first.tasks[0]);
        assert_int_equal(advance(w, &a, &outcome, 1, 1).verdict, STORE_FENCED);
        assert_int_equal(renew(w, &a).verdict, STORE_FENCED);
        assert_int_equal(release(w, &a), STORE_FENCED);
        assert_int_equal(counts(w, 0).in_flight, 1);
        assert_int_equal(counts(w, 0).done, 0);
        assert_int_equal(settle(w, &b, done(&b.granted.page.tasks[0])).gone, 0);
}

static void an_expired_lease_that_nobody_took_still_commits(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        struct owner a = own(w, 0, 1, 1);
        struct store_advance first = claim(w, &a, 1);
        world_step(w, 100 * TTL_MS);
        struct store_advance second = settle(w, &a, done(&first.tasks[0]));
        assert_int_equal(second.left_ms, TTL_MS);
        assert_int_equal(counts(w, 0).done, 1);
}

static void fenced_leaves_no_trace(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct owner a = own(w, 0, 1, 1);
        struct store_advance first = claim(w, &a, 1);
        struct owner wrong[] = { a, a, a };
        wrong[0].lease.epoch = 2;
        wrong[1].lease.nonce[0] ^= 1;
        wrong[2].call += 1; /* skips one */
        struct store_follow_up follow_up = { .envelope = { .key = T("k"), .handler = T("h"), .lane = LANE_NORMAL } };
        struct store_outcome outcome = done(&first.tasks[0]);
        outcome.has_result = true;
        outcome.result = T("r");
        outcome.follow_ups = &follow_up;
        outcome.follow_ups_count = 1;
        struct store_counts before = counts(w, 0);
        for (unsigned i = 0; i < 3; i++) {
                struct store_advance r = advance_call(w, &wrong[i], wrong[i].call + 1, &outcome, 1, 10);
                assert_int_equal(r.verdict, STORE_FENCED);
                assert_int_equal(r.tasks_count, 0);
                struct store_counts after = counts(w, 0);
                assert_memory_equal(&before, &after, sizeof(before));
        }
}

static void a_lost_answer_is_repeated_and_changes_nothing(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < 6; i++)
                (void)submit_lane(w, "k", F(w, "%u", i).data, i % 2 ? LANE_HIGH : LANE_NORMAL);
        struct owner a = own(w, 0, 1, 1);
        struct store_advance first = claim_each(w, &a, 2, 0, 0);
        expect_tasks(w, first, "1 3");
        struct store_outcome outcome = done(&first.tasks[0]);
        outcome.has_result = true;
        outcome.result = T("r");
        w->lose_next = true;
        struct store_advance lost = advance(w, &a, &outcome, 1, 2);
        assert_int_equal(lost.request.status, -ETIMEDOUT);
        struct store_counts before = counts(w, 0);
        struct store_advance again = advance(w, &a, &outcome, 1, 2);
        assert_int_equal(again.verdict, STORE_OK);
        expect_tasks(w, again, "5 0 2");
        struct store_counts after = counts(w, 0);
        assert_memory_equal(&before, &after, sizeof(before));
        assert_int_equal(after.done, 1);
        assert_int_equal(after.results, 1);
        expect_tasks(w, claim(w, &a, 3), "4");
}

/* The most common call of all: a task is done, with nothing to say about it, and the next ones are claimed. */
static void a_plain_call_too_is_repeated_and_changes_nothing(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < 6; i++)
                (void)submit(w, F(w, "k%u", i).data, F(w, "%u", i).data);
        struct owner a = own(w, 0, 1, 1);
        struct store_advance first = claim(w, &a, 2);
        expect_tasks(w, first, "0 1");
        struct store_outcome outcome = done(&first.tasks[0]);
        w->lose_next = true;
        struct store_advance lost = advance(w, &a, &outcome, 1, 2);
        assert_int_equal(lost.request.status, -ETIMEDOUT);
        struct store_counts before = counts(w, 0);
        for (unsigned i = 0; i < 2; i++) {
                w->lose_next = i == 0;
                struct store_advance again = advance(w, &a, &outcome, 1, 2);
                if (i == 0)
                        continue;
                assert_int_equal(again.verdict, STORE_OK);
                expect_tasks(w, again, "2 3");
        }
        struct store_counts after = counts(w, 0);
        assert_memory_equal(&before, &after, sizeof(before));
        assert_int_equal(after.done, 1);
        expect_tasks(w, claim(w, &a, 3), "4 5");
}

static void a_late_call_after_reacquire_is_fenced(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct owner a = own(w, 0, 1, 1);
        struct store_advance first = claim(w, &a, 1);
        uint64_t travelling = a.call + 1;
        uint64_t answered = a.call;
        struct owner again = own(w, 0, 1, 1);
        assert_false(again.granted.is_recovery);
        assert_int_equal(again.granted.page.tasks_count, 1);
        struct store_outcome outcome = done(&first.tasks[0]);
        assert_int_equal(advance_call(w, &a, travelling, &outcome, 1, 1).verdict, STORE_FENCED);
        assert_int_equal(advance_call(w, &a, answered, &outcome, 1, 1).verdict, STORE_FENCED);
        struct owner late = a;
        late.call = travelling - 1;
        assert_int_equal(release(w, &late), STORE_FENCED);
        assert_int_equal(counts(w, 0).done, 0);
        assert_int_equal(settle(w, &again, outcome).verdict, STORE_OK);
}

static void the_holder_upgrades_in_place(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        struct owner a = own(w, 0, 1, 1);
        struct store_advance first = claim(w, &a, 1);
        struct owner b = owner_of(0, 9, 2);
        assert_int_equal(ask(w, &b), STORE_BUSY);
        struct owner up = own(w, 0, 12, 1);
        assert_false(up.granted.is_recovery);
        assert_int_equal(up.granted.page.tasks_count, 1);
        assert_int_equal(renew(w, &up).wanted, STORE_NOT_WANTED); /* the want was for less */
        struct store_outcome outcome = done(&first.tasks[0]);
        assert_int_equal(advance(w, &a, &outcome, 1, 0).verdict, STORE_FENCED);
        assert_int_equal(settle(w, &up, outcome).gone, 0);
}

static void a_patient_want_is_told_and_never_forces(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 1, 1);
        struct owner b = owner_of(0, 2, 2);
        assert_int_equal(renew(w, &a).wanted, STORE_NOT_WANTED);
        for (unsigned i = 0; i < 20; i++) {
                assert_int_equal(ask(w, &b), STORE_BUSY);
                struct store_renewal r = renew(w, &a);
                assert_int_equal(r.wanted, STORE_WANTED_PATIENT);
                assert_false(r.is_refused);
                assert_int_equal(claim(w, &a, 0).wanted, STORE_WANTED_PATIENT);
                world_step(w, TTL_MS / 2);
        }
        world_step(w, TTL_MS); /* nobody repeats it: it is forgotten */
        assert_int_equal(renew(w, &a).wanted, STORE_NOT_WANTED);
}

static void a_firm_want_refuses_renewal_after_the_drain_time(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        (void)submit(w, "k", "2");
        struct owner a = own(w, 0, 1, 1);
        struct store_advance first = claim(w, &a, 1);
        struct owner b = owner_of(0, 2, 2);
        assert_int_equal(acquire_full(w, &b, true, 3 * TTL_MS), 0);
        for (unsigned i = 0; i < 6; i++) {
                assert_int_equal(b.granted.grant, STORE_BUSY);
                struct store_renewal r = renew(w, &a);
                assert_int_equal(r.verdict, STORE_OK);
                assert_int_equal(r.wanted, STORE_WANTED_FIRM);
                assert_false(r.is_refused);
                world_step(w, TTL_MS / 2);
                assert_int_equal(acquire_full(w, &b, true, 3 * TTL_MS), 0);
        }
        assert_true(renew(w, &a).is_refused);
        struct store_outcome outcome = done(&first.tasks[0]);
        struct store_advance last = advance(w, &a, &outcome, 1, 10);
        assert_int_equal(last.verdict, STORE_OK); /* what was done still counts */
        assert_true(last.is_refused);
        assert_int_equal(last.tasks_count, 0);
        assert_true(last.left_ms < TTL_MS);
        world_step(w, TTL_MS);
        assert_int_equal(ask(w, &b), STORE_GRANTED);
        expect_tasks(w, claim(w, &b, 10), "2");
}

static void only_a_higher_epoch_may_want(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 5, 1);
        struct owner lower = owner_of(0, 3, 2);
        assert_int_equal(acquire_full(w, &lower, true, 0), 0);
        assert_int_equal(renew(w, &a).wanted, STORE_NOT_WANTED);
}

static void a_released_shard_is_free_and_release_is_repeatable(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        struct owner a = own(w, 0, 1, 1);
        (void)claim(w, &a, 1);
        w->lose_next = true;
        (void)release(w, &a);
        assert_int_equal(release(w, &a), STORE_OK); /* the same call again */
        assert_false(counts(w, 0).is_held);
        struct owner b = own(w, 0, 2, 2);
        assert_false(b.granted.is_recovery);
        assert_int_equal(b.granted.page.tasks_count, 1);
        assert_int_equal(release(w, &a), STORE_FENCED);
}

static void a_guard_releases_with_the_hosts_nonce_and_epoch(void **state)
{
        struct world *w = *state;
        (void)own(w, 0, 7, 1);
        struct owner guard = own(w, 0, 7, 1);
        struct store_release r = { .lease = guard.lease, .call = guard.call + 1, .is_death = true };
        assert_int_equal(CALL(w, store_release, &r, NULL), 0);
        assert_int_equal(r.verdict, STORE_OK);
        /* At once, and the next owner knows that there is something to recover. */
        struct owner next = own(w, 0, 8, 2);
        assert_true(next.granted.is_recovery);
}

static void whoever_has_released_is_no_owner_any_more(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        struct owner a = own(w, 0, 1, 1);
        struct store_advance claimed = claim(w, &a, 1);
        assert_int_equal(claimed.tasks_count, 1);
        struct store_outcome outcome = done(&claimed.tasks[0]);
        assert_int_equal(release(w, &a), STORE_OK);
        /* The right number, epoch and nonce, but nothing to act on. */
        assert_int_equal(advance_call(w, &a, a.call + 1, &outcome, 1, 0).verdict, STORE_FENCED);
        assert_int_equal(renew(w, &a).verdict, STORE_FENCED);
        assert_int_equal(counts(w, 0).in_flight, 1);
}

static void a_clock_step_cannot_lock_a_shard(void **state)
{
        struct world *w = *state;
        world_step(w, 3600 * 1000);
        struct owner a = own(w, 0, 1, 1);
        world_step(w, -3600 * 1000);
        struct owner b = owner_of(0, 2, 2);
        assert_int_equal(ask(w, &b), STORE_BUSY);
        assert_true(b.granted.busy_ms <= TTL_MS);
        world_step(w, TTL_MS / 2);
        assert_int_equal(ask(w, &b), STORE_BUSY); /* the cut lasts: it does not begin anew */
        assert_true(b.granted.busy_ms <= TTL_MS / 2);
        world_step(w, TTL_MS / 2);
        assert_int_equal(ask(w, &b), STORE_GRANTED);
        assert_int_equal(advance(w, &a, NULL, 0, 1).verdict, STORE_FENCED);
}

static void a_clock_step_forward_never_fences(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "1");
        struct owner a = own(w, 0, 1, 1);
        world_step(w, 86400 * 1000);
        expect_tasks(w, claim(w, &a, 1), "1");
}

static void another_boots_lease_is_over_and_time_goes_on(void **state)
{
        struct world *w = *state;
        if (!driver->reboot)
                skip();
        (void)submit_delayed(w, "k", "later", 5000);
        struct owner a = own(w, 0, 1, 1);
        world_close(w);
        driver->reboot(w->place);
        assert_int_equal(world_open(w, (struct store_options){ .shards = 0 }, NULL), 0);
        struct owner b = own(w, 0, 2, 2);
        assert_int_equal(advance(w, &a, NULL, 0, 1).verdict, STORE_FENCED);
        assert_int_equal(b.granted.next_due_ms, 5000);
        world_step(w, 5000);
        expect_tasks(w, claim(w, &b, 1), "later");
}

static void recovery_returns_the_in_flight_table_in_order_and_paged(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < 30; i++)
                (void)submit_lane(w, F(w, "k%u", i % 5).data, F(w, "%u", i).data, (enum lane)(i % 3));
        struct owner a = own(w, 0, 1, 1);
        (void)claim_each(w, &a, 10, 0, 0);
        struct store_advance second = claim_each(w, &a, 0, 10, 10);
        struct store_outcome outcome = done(&second.tasks[3]);
        (void)settle(w, &a, outcome);
        world_reopen(w); /* the host dies */
        world_step(w, TTL_MS);
        struct owner b = owner_of(0, 2, 2);
        b.granted = (struct store_acquire){ 0 };
        assert_int_equal(acquire(w, &b), 0);
        assert_int_equal(b.granted.grant, STORE_GRANTED);
        assert_int_equal(b.granted.page.tasks_count, 29);
        assert_false(b.granted.page.has_more);
        for (unsigned i = 1; i < 29; i++)
                assert_true(b.granted.page.tasks[i - 1].seq < b.granted.page.tasks[i].seq);
}

static void pages(struct world *w, const struct owner *o, uint32_t size, uint32_t expected)
{
        uint64_t after = 0;
        uint32_t total = 0;
        bool has_more = true;
        while (has_more) {
                struct store_page page = in_flight_page(w, o, after, size);
                assert_true(page.tasks_count <= size);
                for (uint32_t i = 0; i < page.tasks_count; i++) {
                        assert_true(page.tasks[i].seq > after);
                        after = page.tasks[i].seq;
                        total++;
                }
                has_more = page.has_more;
        }
        assert_int_equal(total, expected);
}

static void in_flight_pages_miss_nothing(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < 30; i++)
                (void)submit_lane(w, "k", F(w, "%u", i).data, (enum lane)(i % 3));
        struct owner a = own(w, 0, 1, 1);
        (void)claim_each(w, &a, 10, 10, 5);
        pages(w, &a, 1, 25);
        pages(w, &a, 7, 25);
        pages(w, &a, 25, 25);
        pages(w, &a, 100, 25);
}

static void a_crash_between_claims_loses_and_doubles_nothing(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < 5; i++)
                (void)submit(w, "k", F(w, "%u", i).data);
        struct owner a = own(w, 0, 1, 1);
        w->lose_next = true; /* claimed, but the host never heard of it */
        (void)advance(w, &a, NULL, 0, 2);
        world_reopen(w);
        world_step(w, TTL_MS);
        struct owner b = own(w, 0, 2, 2);
        assert_string_equal(payloads(w, b.granted.page.tasks, b.granted.page.tasks_count), "0 1");
        expect_tasks(w, claim(w, &b, 10), "2 3 4");
}

static int acquire_as(struct world *w, struct owner *o, const char *host)
{
        o->granted = (struct store_acquire){ .lease = o->lease, .page_tasks = 1, .host = T(host) };
        int r = call_acquire(w, &o->granted);
        o->call = o->granted.call;
        return r;
}

static void a_lease_names_its_host(void **state)
{
        struct world *w = *state;
        struct owner a = owner_of(0, 5, 1);
        assert_string_equal(counts(w, 0).host, "");
        assert_int_equal(acquire_as(w, &a, "host-a"), 0);
        assert_string_equal(counts(w, 0).host, "host-a");
        expect_tasks(w, claim(w, &a, 1), "");
        assert_string_equal(counts(w, 0).host, "host-a");
        /* Somebody who acts for it and does not say so, a guard. */
        assert_int_equal(acquire_as(w, &a, ""), 0);
        assert_string_equal(counts(w, 0).host, "host-a");
        /* One that only wants it is not its holder. */
        struct owner b = owner_of(0, 6, 2);
        assert_int_equal(acquire_as(w, &b, "host-b"), 0);
        assert_int_equal(b.granted.grant, STORE_BUSY);
        assert_string_equal(counts(w, 0).host, "host-a");
        assert_int_equal(release(w, &a), STORE_OK);
        assert_string_equal(counts(w, 0).host, ""); /* nobody holds it */
        assert_int_equal(acquire_as(w, &b, "host-b"), 0);
        assert_string_equal(counts(w, 0).host, "host-b");
        /* A name is never left beside another's nonce. */
        world_step(w, TTL_MS);
        struct owner c = owner_of(0, 7, 3);
        assert_int_equal(acquire_as(w, &c, ""), 0);
        assert_int_equal(c.granted.grant, STORE_GRANTED);
        assert_string_equal(counts(w, 0).host, "");
        assert_int_equal(acquire_as(w, &c, "two words"), -EINVAL);
        assert_int_equal(
                acquire_as(w, &c, "0123456789012345678901234567890123456789012345678901234567890123x"), -EINVAL);
}

const struct CMUnitTest fence_tests[] = {
        IN_WORLD(a_lease_names_its_host),
        IN_WORLD(a_shard_has_one_owner_and_epochs_only_grow),
        IN_WORLD(an_expired_lease_can_be_taken_and_then_fences),
        IN_WORLD(an_expired_lease_that_nobody_took_still_commits),
        IN_WORLD(fenced_leaves_no_trace),
        IN_WORLD(a_lost_answer_is_repeated_and_changes_nothing),
        IN_WORLD(a_plain_call_too_is_repeated_and_changes_nothing),
        IN_WORLD(a_late_call_after_reacquire_is_fenced),
        IN_WORLD(the_holder_upgrades_in_place),
        IN_WORLD(a_patient_want_is_told_and_never_forces),
        IN_WORLD(a_firm_want_refuses_renewal_after_the_drain_time),
        IN_WORLD(only_a_higher_epoch_may_want),
        IN_WORLD(a_released_shard_is_free_and_release_is_repeatable),
        IN_WORLD(a_guard_releases_with_the_hosts_nonce_and_epoch),
        IN_WORLD(whoever_has_released_is_no_owner_any_more),
        IN_WORLD(a_clock_step_cannot_lock_a_shard),
        IN_WORLD(a_clock_step_forward_never_fences),
        IN_WORLD(another_boots_lease_is_over_and_time_goes_on),
        IN_WORLD(recovery_returns_the_in_flight_table_in_order_and_paged),
        IN_WORLD(in_flight_pages_miss_nothing),
        IN_WORLD(a_crash_between_claims_loses_and_doubles_nothing),
};
GROUP(fence);
