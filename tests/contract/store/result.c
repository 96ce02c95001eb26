/* Results, their consumers, and replies. */
#include "harness.h"

/* Runs tasks whose results are "r0", "r1", … */
static void make_results(struct world *w, struct owner *o, unsigned count)
{
        for (unsigned i = 0; i < count; i++) {
                (void)submit(w, "k", "x");
                struct store_advance a = claim(w, o, 1);
                struct store_outcome outcome = done(&a.tasks[0]);
                outcome.has_result = true;
                outcome.result = F(w, "r%u", i);
                (void)settle(w, o, outcome);
        }
}

static void two_consumers_share_without_overlap(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        make_results(w, &o, 7);
        struct store_consume a = consume(w, 1, 3, 1000);
        struct store_consume b = consume(w, 2, 3, 1000);
        assert_int_equal(a.results_count, 3);
        assert_int_equal(b.results_count, 3);
        for (unsigned i = 0; i < 3; i++) {
                assert_true(span_is(a.results[i].data, F(w, "r%u", i)));
                assert_true(span_is(b.results[i].data, F(w, "r%u", i + 3)));
                assert_true(span_is(a.results[i].key, T("k")));
                assert_true(span_is(a.results[i].handler, T("h")));
        }
        for (unsigned i = 0; i < 3; i++) {
                assert_true(commit_one(w, 1, a.results[i].number));
                assert_true(commit_one(w, 2, b.results[i].number));
        }
        assert_false(commit_one(w, 1, a.results[0].number)); /* a second commit is harmless */
        assert_int_equal(counts(w, 0).results, 1);
        assert_int_equal(consume(w, 1, 3, 1000).results_count, 1);
        assert_int_equal(consume(w, 2, 3, 1000).results_count, 0);
}

static void a_dead_consumers_results_come_back_in_order(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        make_results(w, &o, 4);
        struct store_consume a = consume(w, 1, 2, 1000);
        world_step(w, 999);
        assert_int_equal(consume(w, 2, 1, 1000).results_count, 1); /* r2 */
        world_step(w, 1);
        struct store_consume b = consume(w, 3, 10, 1000);
        assert_int_equal(b.results_count, 3);
        assert_true(span_is(b.results[0].data, T("r0")));
        assert_true(span_is(b.results[1].data, T("r1")));
        assert_true(span_is(b.results[2].data, T("r3")));
        assert_false(commit_one(w, 1, a.results[0].number)); /* no longer its own */
        assert_true(commit_one(w, 3, b.results[0].number));
}

static void an_expired_consumer_may_commit_what_nobody_took(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        make_results(w, &o, 1);
        struct store_consume a = consume(w, 1, 1, 1000);
        world_step(w, 5000);
        assert_true(commit_one(w, 1, a.results[0].number));
}

static void over_the_cap_the_oldest_go_and_are_counted(void **state)
{
        struct world *w = *state;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .results_max = 3 }, NULL), 0);
        struct owner o = own(w, 0, 1, 1);
        make_results(w, &o, 5);
        assert_int_equal(counts(w, 0).results, 3);
        assert_int_equal(counts(w, 0).results_dropped, 2);
        assert_true(span_is(consume(w, 1, 1, 1000).results[0].data, T("r2")));
}

static void old_results_go_and_are_counted(void **state)
{
        struct world *w = *state;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .results_age_ms = 1000 }, NULL), 0);
        struct owner o = own(w, 0, 1, 1);
        make_results(w, &o, 2);
        world_step(w, 500);
        make_results(w, &o, 1);
        world_step(w, 500);
        assert_int_equal(consume(w, 1, 10, 1000).results_count, 1);
        assert_int_equal(counts(w, 0).results_dropped, 2);
}

static void a_reply_is_kept_apart_from_results(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit_reply(w, "k", "x");
        assert_int_equal(reply(w, id, 0).state, REPLY_PENDING);
        struct store_advance a = claim(w, &o, 1);
        struct store_outcome outcome = done(&a.tasks[0]);
        outcome.has_result = true;
        outcome.result = (struct span){ "a\0b", 3 };
        (void)settle(w, &o, outcome);
        struct store_reply r = reply(w, id, 0);
        assert_int_equal(r.state, REPLY_DONE);
        assert_true(r.has_data);
        assert_true(span_is(r.data, outcome.result));
        assert_int_equal(counts(w, 0).results, 0);
        world_step(w, 60000); /* its time is over */
        assert_int_equal(reply(w, id, 0).state, REPLY_PENDING);
}

static void a_reply_tells_of_a_death(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit_reply(w, "k", "x");
        struct store_advance a = claim(w, &o, 1);
        (void)settle(w, &o, dead(&a.tasks[0], "rejected"));
        struct store_reply r = reply(w, id, 0);
        assert_int_equal(r.state, REPLY_DEAD);
        assert_true(span_is(r.reason, T("rejected")));
        assert_int_equal(r.note.attempts, 1);
}

/* Fails once and crashes once, saves a checkpoint, is a suspect for a while; then it is done, with a result. */
static void settle_after_trouble(struct world *w, struct owner *o)
{
        struct store_advance a = claim(w, o, 1);
        struct store_outcome failed = retry(&a.tasks[0], 0);
        failed.error = T("no connection");
        (void)settle(w, o, failed);
        a = claim(w, o, 1);
        struct store_outcome crashed = retry(&a.tasks[0], 0);
        crashed.cost = COST_CRASH;
        crashed.error = T("SIGSEGV");
        (void)settle(w, o, crashed);
        a = claim(w, o, 1);
        (void)settle(w, o,
                (struct store_outcome){ .kind = STORE_CHECKPOINT, .task = ref(&a.tasks[0]), .checkpoint = T("half") });
        (void)settle(w, o, (struct store_outcome){ .kind = STORE_START, .task = ref(&a.tasks[0]), .holder = T("aa") });
        struct store_outcome outcome = done(&a.tasks[0]);
        outcome.has_result = true;
        outcome.result = T("r");
        (void)settle(w, o, outcome);
}

static void expect_trouble(struct task_note note)
{
        struct note_event event;
        assert_int_equal(note.attempts, 1);
        assert_int_equal(note.crashes, 1);
        assert_int_equal(note.interruptions, 0);
        assert_int_equal(note.started_epoch, 0);
        assert_int_equal(note.checkpoint.size, 0);
        assert_true(note_event_next(&note.events, &event));
        assert_true(span_is(event.kind, T("attempt")) && span_is(event.text, T("no connection")));
        assert_true(note_event_next(&note.events, &event));
        assert_true(span_is(event.kind, T("crash")) && span_is(event.text, T("SIGSEGV")));
        assert_false(note_event_next(&note.events, &event));
}

static void a_result_tells_what_it_took(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "x");
        settle_after_trouble(w, &o);
        make_results(w, &o, 1);
        struct store_consume c = consume(w, 1, 2, 1000);
        assert_int_equal(c.results_count, 2);
        expect_trouble(c.results[0].note);
        assert_true(note_is_empty(&c.results[1].note));
}

static void a_reply_tells_what_it_took(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit_reply(w, "k", "x");
        settle_after_trouble(w, &o);
        struct store_reply r = reply(w, id, 0);
        assert_int_equal(r.state, REPLY_DONE);
        expect_trouble(r.note);
}

static void cancelling_answers_who_waits(void **state)
{
        struct world *w = *state;
        struct span id = submit_reply(w, "k", "x");
        assert_int_equal(cancel(w, id, NULL), 0);
        assert_int_equal(reply(w, id, 0).state, REPLY_DEAD);
}

static void waiting_for_a_reply_ends_in_time(void **state)
{
        struct world *w = *state;
        struct span id = submit_reply(w, "k", "x");
        assert_int_equal(reply(w, id, 50).state, REPLY_PENDING);
}

const struct CMUnitTest result_tests[] = {
        IN_WORLD(two_consumers_share_without_overlap),
        IN_WORLD(a_dead_consumers_results_come_back_in_order),
        IN_WORLD(an_expired_consumer_may_commit_what_nobody_took),
        IN_WORLD(over_the_cap_the_oldest_go_and_are_counted),
        IN_WORLD(old_results_go_and_are_counted),
        IN_WORLD(a_reply_is_kept_apart_from_results),
        IN_WORLD(a_reply_tells_of_a_death),
        IN_WORLD(a_result_tells_what_it_took),
        IN_WORLD(a_reply_tells_what_it_took),
        IN_WORLD(cancelling_answers_who_waits),
        IN_WORLD(waiting_for_a_reply_ends_in_time),
};
GROUP(result);
