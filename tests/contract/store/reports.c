/* What workers say about tasks that they run, on its way to the owner. */
#include "store/reports.h"

#include "base/memory.h"
#include "call.h"

#define START  "worker/1.7/"
#define HOLDER START "alice"

static struct store_report report_of(const struct store_task *task, const char *start, const char *data)
{
        return (struct store_report){
                .verb = CONTROL_OUTCOME, .id = task->envelope.id, .seq = task->seq, .start = T(start), .data = T(data)
        };
}

static int report(struct world *w, struct store_report *r)
{
        return CALL(w, store_report, r, NULL);
}

/* The first task of shard 0, started at a worker for 5 s. */
static struct store_task started(struct world *w, struct owner *o)
{
        (void)submit(w, "k", "1");
        struct store_task task = claim(w, o, 1).tasks[0];
        (void)settle(w, o,
                (struct store_outcome){
                        .kind = STORE_START, .task = ref(&task), .holder = T(HOLDER), .until_ms = 5000 });
        return task;
}

static void what_a_worker_says_reaches_the_owner_once(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_task task = started(w, &o);
        struct store_report r = report_of(&task, START, "done\n\x01");
        assert_int_equal(report(w, &r), 0);
        assert_true(r.is_put);
        assert_int_equal(r.left_ms, 5000);
        assert_true(renew(w, &o).has_work);
        struct store_advance a = claim(w, &o, 0);
        assert_int_equal(a.controls_count, 1);
        assert_int_equal(a.controls[0].verb, CONTROL_OUTCOME);
        assert_int_equal(a.controls[0].seq, task.seq);
        assert_true(span_is(a.controls[0].id, task.envelope.id));
        assert_true(span_is(a.controls[0].start, T(START)));
        assert_true(span_is(a.controls[0].data, T("done\n\x01")));
        assert_int_equal(a.controls[0].key.size, 0);
        /* The answer was lost: it comes again.  Then it does not. */
        assert_int_equal(advance_call(w, &o, o.call, NULL, 0, 0).controls_count, 1);
        assert_int_equal(claim(w, &o, 0).controls_count, 0);
}

static void only_the_worker_of_the_current_start_is_listened_to(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_task task = started(w, &o);
        static const char *const others[] = { "worker/1.8/", "worker/1.7", "worker/1.", "worker/1.7/alic",
                "worker/1.7/alice2", "worker/2.7/" };
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
                struct store_report r = report_of(&task, others[i], "x");
                assert_int_equal(report(w, &r), -ESTALE);
                assert_false(r.is_put);
        }
        struct store_report whole = report_of(&task, HOLDER, "x");
        assert_int_equal(report(w, &whole), 0);
        struct store_report other_task = report_of(&task, START, "x");
        other_task.seq++;
        assert_int_equal(report(w, &other_task), -ESTALE);
        struct store_report other_id = report_of(&task, START, "x");
        other_id.id = T("another-0");
        assert_int_equal(report(w, &other_id), -ESTALE);
        assert_int_equal(claim(w, &o, 0).controls_count, 1);
        /* Interrupted, and started again by another worker. */
        (void)settle(w, &o,
                (struct store_outcome){ .kind = STORE_INTERRUPTED, .task = ref(&task), .cost = COST_INTERRUPTION });
        struct store_report late = report_of(&task, START, "x");
        assert_int_equal(report(w, &late), -ESTALE);
        (void)settle(w, &o,
                (struct store_outcome){
                        .kind = STORE_START, .task = ref(&task), .holder = T("worker/1.8/bob"), .until_ms = 5000 });
        assert_int_equal(report(w, &late), -ESTALE);
        struct store_report current = report_of(&task, "worker/1.8/", "x");
        assert_int_equal(report(w, &current), 0);
        (void)settle(w, &o, done(&task));
        assert_int_equal(report(w, &current), -ESTALE);
        expect_sound(w);
}

/* The owner died with what was on its list; or nobody owned the shard. */
static void the_next_owner_finds_what_a_worker_said(void **state)
{
        struct world *w = *state;
        struct owner a = own(w, 0, 1, 1);
        struct store_task task = started(w, &a);
        assert_int_equal(release(w, &a), STORE_OK);
        struct store_report r = report_of(&task, START, "from a worker");
        assert_int_equal(report(w, &r), 0);
        struct owner b = own(w, 0, 2, 2);
        assert_true(b.granted.has_work);
        assert_true(span_is(b.granted.page.tasks[0].note.holder, T(HOLDER)));
        assert_int_equal(claim(w, &b, 0).controls_count, 1);
        world_step(w, TTL_MS);
        struct owner c = own(w, 0, 3, 3);
        struct store_advance again = claim(w, &c, 0);
        assert_int_equal(again.controls_count, 1);
        assert_true(span_is(again.controls[0].data, T("from a worker")));
        (void)settle(w, &c, done(&task));
        expect_sound(w);
}

static void a_heartbeat_goes_to_the_owner_only_when_it_is_needed(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_task task = started(w, &o);
        struct store_report beat = report_of(&task, START, "{}");
        beat.verb = CONTROL_HEARTBEAT;
        beat.enough_ms = 3333;
        world_step(w, 1000);
        assert_int_equal(report(w, &beat), 0);
        assert_false(beat.is_put);
        assert_int_equal(beat.left_ms, 4000);
        world_step(w, 1000);
        assert_int_equal(report(w, &beat), 0);
        assert_true(beat.is_put);
        struct store_advance a = claim(w, &o, 0);
        assert_int_equal(a.controls_count, 1);
        assert_int_equal(a.controls[0].verb, CONTROL_HEARTBEAT);
        world_step(w, 9000);
        assert_int_equal(report(w, &beat), 0); /* its time is over, but nobody has said so: it is still the start */
        assert_int_equal(beat.left_ms, 0);
}

/* Beside what people ask for: neither keeps the other from being applied. */
static void reports_and_controls_share_a_list(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_task task = started(w, &o);
        struct store_report r = report_of(&task, START, "x");
        assert_int_equal(report(w, &r), 0);
        assert_int_equal(key_act(w, CONTROL_HOLD, "other"), 0);
        struct store_advance a = claim(w, &o, 0);
        assert_int_equal(a.controls_count, 2);
        assert_int_equal(a.controls[0].verb, CONTROL_OUTCOME);
        assert_int_equal(a.controls[1].verb, CONTROL_HOLD);
        assert_int_equal(key(w, "other").state, KEY_HELD);
        assert_int_equal(key(w, START).state, KEY_FREE);
        expect_sound(w);
}

static void reports_are_bounded_in_bytes_and_in_number(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_task task = started(w, &o);
        char *large = memory_zero(1, STORE_REPORT_MAX + 1);
        struct store_report r = report_of(&task, START, "x");
        r.data = (struct span){ large, STORE_REPORT_MAX + 1 };
        assert_int_equal(report(w, &r), -EMSGSIZE);
        /* A call brings a MiB of them, but always one; the others come with the next. */
        static const size_t sizes[] = { STORE_REPORT_MAX, STORE_REPORT_MAX / 2, STORE_REPORT_MAX / 4, 1 };
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                r.data.size = sizes[i];
                assert_int_equal(report(w, &r), 0);
        }
        assert_int_equal(claim(w, &o, 0).controls_count, 1);
        assert_int_equal(claim(w, &o, 0).controls_count, 3);
        assert_int_equal(claim(w, &o, 0).controls_count, 0);
        free(large);
        r.data = T("x");
        for (uint32_t i = 0; i < STORE_REPORTS_MAX; i++)
                assert_int_equal(report(w, &r), 0);
        assert_int_equal(report(w, &r), -EDQUOT);
        assert_int_equal(claim(w, &o, 0).controls_count, STORE_CALL_CONTROLS);
        assert_int_equal(report(w, &r), 0);
}

static void a_report_is_checked(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_task task = started(w, &o);
        struct store_report r = report_of(&task, START, "x");
        r.verb = CONTROL_HOLD;
        assert_int_equal(report(w, &r), -EINVAL);
        r = report_of(&task, "", "x");
        assert_int_equal(report(w, &r), -EINVAL);
        r = report_of(&task, "two words", "x");
        assert_int_equal(report(w, &r), -EINVAL);
        r = report_of(&task, START, "x");
        r.id = T("no id");
        assert_int_equal(report(w, &r), -EINVAL);
        r = report_of(&task, START, "x");
        r.seq = STORE_SEQ_MAX + 1;
        assert_int_equal(report(w, &r), -EINVAL);
}

const struct CMUnitTest report_tests[] = {
        IN_WORLD(what_a_worker_says_reaches_the_owner_once),
        IN_WORLD(only_the_worker_of_the_current_start_is_listened_to),
        IN_WORLD(the_next_owner_finds_what_a_worker_said),
        IN_WORLD(a_heartbeat_goes_to_the_owner_only_when_it_is_needed),
        IN_WORLD(reports_and_controls_share_a_list),
        IN_WORLD(reports_are_bounded_in_bytes_and_in_number),
        IN_WORLD(a_report_is_checked),
};
GROUP(report);
