/* When a host says that it wants seats: once when that begins, once when it ends, and never in between but for who
 * asked in vain. */
#include "check.h"

#include "host/lend/lender.h"

struct world {
        struct lender lender;
        uint64_t now_ms, paced_ms;
        uint32_t writes, tasks;
};

/* A turn of the loop in which so many wait beyond the seats. */
static void turn(struct world *w, bool is_short, uint32_t waiting)
{
        uint32_t tasks;
        if (lender_look(&w->lender, is_short, w->now_ms))
                lender_counted(&w->lender, waiting, w->now_ms);
        if (!lender_wants_to_tell(&w->lender, w->paced_ms, w->now_ms, &tasks))
                return;
        lender_telling(&w->lender, tasks, w->now_ms);
        w->paced_ms = w->now_ms + LENDER_PACE_MS;
        w->writes++;
        w->tasks = tasks;
        lender_told(&w->lender, true);
}

static void go_on(struct world *w, bool is_short, uint32_t waiting, uint64_t ms)
{
        for (uint64_t end_ms = w->now_ms + ms; w->now_ms < end_ms; w->now_ms++)
                turn(w, is_short, waiting);
}

static void a_moment_is_not_worth_a_word(void **state)
{
        (void)state;
        struct world w = { .now_ms = 1000 };
        for (int i = 0; i < 50; i++) {
                go_on(&w, true, 3, LENDER_AFTER_MS - 1);
                go_on(&w, false, 0, 1);
        }
        assert_int_equal(w.writes, 0);
}

static void it_is_said_once_when_it_begins_and_once_when_it_ends(void **state)
{
        (void)state;
        struct world w = { .now_ms = 1000 };
        go_on(&w, true, 3, 20000);
        assert_int_equal(w.writes, 1);
        assert_int_equal(w.tasks, 3);
        go_on(&w, false, 0, 20000);
        assert_int_equal(w.writes, 2);
        assert_int_equal(w.tasks, 0);
        assert_int_equal(lender_due_ms(&w.lender, w.paced_ms), UINT64_MAX);
}

static void what_cannot_be_lent_is_not_wanted_for(void **state)
{
        (void)state;
        struct world w = { .now_ms = 1000 };
        go_on(&w, true, 0, 5000);
        assert_int_equal(w.writes, 0);
}

static void it_is_said_again_before_it_is_forgotten(void **state)
{
        (void)state;
        struct world w = { .now_ms = 1000 };
        go_on(&w, true, 1, 5 * LENDER_KEEP_MS);
        assert_in_range(w.writes, 10, 11);
}

static void who_asked_in_vain_is_rung_when_there_is_something(void **state)
{
        (void)state;
        struct world w = { .now_ms = 1000 };
        go_on(&w, true, 1, 1000);
        lender_asked_in_vain(&w.lender);
        go_on(&w, true, 1, 1000);
        assert_int_equal(w.writes, 2);
        assert_int_equal(w.tasks, 1);
        go_on(&w, true, 1, 1000);
        assert_int_equal(w.writes, 2);
        /* What is there no more is not said again for that. */
        lender_asked_in_vain(&w.lender);
        go_on(&w, false, 0, 1000);
        assert_int_equal(w.writes, 3);
        assert_int_equal(w.tasks, 0);
}

/* It changes its mind with every turn of the loop: five writes a second. */
static void it_is_never_said_too_often(void **state)
{
        (void)state;
        struct world w = { .now_ms = 1000 };
        for (int i = 0; i < 10000; i++) {
                w.lender.count = (uint32_t)i % 2;
                turn(&w, true, w.lender.count);
                lender_asked_in_vain(&w.lender);
                w.now_ms++;
        }
        assert_in_range(w.writes, 1, 10000 / LENDER_PACE_MS + 1);
}

static void a_write_that_failed_is_made_again(void **state)
{
        (void)state;
        uint32_t tasks;
        struct lender l = { 0 };
        lender_counted(&l, 2, 1000);
        assert_true(lender_wants_to_tell(&l, 0, 1000, &tasks));
        lender_telling(&l, tasks, 1000);
        assert_false(lender_wants_to_tell(&l, 0, 1000, &tasks));
        assert_int_equal(lender_due_ms(&l, 0), UINT64_MAX);
        lender_told(&l, false);
        assert_true(lender_wants_to_tell(&l, 0, 1000, &tasks));
        lender_telling(&l, tasks, 1000);
        lender_told(&l, true);
        assert_false(lender_wants_to_tell(&l, 0, 1000, &tasks));
        /* And the word that it wants no more. */
        lender_look(&l, false, 2000);
        assert_true(lender_wants_to_tell(&l, 0, 2000, &tasks));
        lender_telling(&l, tasks, 2000);
        lender_told(&l, false);
        assert_true(lender_wants_to_tell(&l, 0, 2000, &tasks));
        assert_int_equal(tasks, 0);
}

static void it_wakes_when_it_is_time(void **state)
{
        (void)state;
        struct lender l = { 0 };
        assert_int_equal(lender_due_ms(&l, 0), UINT64_MAX);
        assert_false(lender_look(&l, true, 1000));
        assert_int_equal(lender_due_ms(&l, 0), 1000 + LENDER_AFTER_MS);
        assert_true(lender_look(&l, true, 1000 + LENDER_AFTER_MS));
        lender_counted(&l, 1, 1100);
        assert_int_equal(lender_due_ms(&l, 1150), 1150);
}

/* A host whose tasks nobody takes rests; one whose offer was less than it seemed looks at once. */
static void what_is_said_is_not_counted_over_and_over(void **state)
{
        (void)state;
        struct lender l = { 0 };
        assert_false(lender_look(&l, true, 1000));
        assert_true(lender_look(&l, true, 1000 + LENDER_AFTER_MS));
        lender_counted(&l, 1, 1100);
        assert_int_equal(l.look_ms, 1100 + LENDER_LOOK_MS);
        lender_telling(&l, 1, 1100);
        lender_told(&l, true);
        lender_counted(&l, 1, 1200);
        assert_int_equal(lender_due_ms(&l, 0), 1200 + LENDER_REST_MS);
        assert_false(lender_look(&l, true, 1200 + LENDER_REST_MS - 1));
        lender_asked_in_vain(&l);
        assert_true(lender_look(&l, true, 1300));
        lender_counted(&l, 0, 1300);
        assert_int_equal(l.look_ms, 1300 + LENDER_LOOK_MS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_moment_is_not_worth_a_word),
                cmocka_unit_test(it_is_said_once_when_it_begins_and_once_when_it_ends),
                cmocka_unit_test(what_cannot_be_lent_is_not_wanted_for),
                cmocka_unit_test(it_is_said_again_before_it_is_forgotten),
                cmocka_unit_test(who_asked_in_vain_is_rung_when_there_is_something),
                cmocka_unit_test(it_is_never_said_too_often),
                cmocka_unit_test(a_write_that_failed_is_made_again),
                cmocka_unit_test(it_wakes_when_it_is_time),
                cmocka_unit_test(what_is_said_is_not_counted_over_and_over),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
