/* Each row of the table: who pays when a runner dies. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "host/pool/blame.h"

#define SEATS 4

struct row {
        const char *what;
        enum blame_why killed;
        bool is_solo;
        int fault_seat; /* -1: no record */
        struct blamed in[3];
        size_t count;
        struct {
                enum outcome outcome;
                enum blame_why why;
                bool is_suspect;
        } expected[3];
};

#define ON(s)                                                                                                          \
        {                                                                                                              \
                .seat = (s)                                                                                            \
        }
#define STOPPED(s, for)                                                                                                \
        { .seat = (s), .stopped = (for)                                                                                \
        }

static const struct row rows[] = {
        { "one task, no record", BLAME_NOTHING, false, -1, { ON(2) }, 1, { { OUTCOME_CRASHED, BLAME_CRASH, false } } },
        { "one task, its record", BLAME_NOTHING, false, 2, { ON(2) }, 1, { { OUTCOME_CRASHED, BLAME_CRASH, false } } },
        { "a suspect alone", BLAME_NOTHING, true, -1, { ON(0) }, 1, { { OUTCOME_CRASHED, BLAME_CRASH, false } } },
        { "three, one guilty", BLAME_NOTHING, false, 1, { ON(0), ON(1), ON(2) }, 3,
                { { OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false }, { OUTCOME_CRASHED, BLAME_CRASH, false },
                        { OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false } } },
        { "two, no record", BLAME_NOTHING, false, -1, { ON(0), ON(1) }, 2,
                { { OUTCOME_INTERRUPTED, BLAME_UNSURE, true }, { OUTCOME_INTERRUPTED, BLAME_UNSURE, true } } },
        { "two, a record of a seat that ran nothing", BLAME_NOTHING, false, 3, { ON(0), ON(1) }, 2,
                { { OUTCOME_INTERRUPTED, BLAME_UNSURE, true }, { OUTCOME_INTERRUPTED, BLAME_UNSURE, true } } },
        { "a batch crashed, beside another seat", BLAME_NOTHING, false, 0, { ON(0), ON(0), ON(1) }, 3,
                { { OUTCOME_INTERRUPTED, BLAME_UNSURE, true }, { OUTCOME_INTERRUPTED, BLAME_UNSURE, true },
                        { OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false } } },
        { "timed out, with a neighbour", BLAME_TIMEOUT, false, -1, { STOPPED(0, BLAME_TIMEOUT), ON(1) }, 2,
                { { OUTCOME_TIMED_OUT, BLAME_TIMEOUT, false }, { OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false } } },
        { "stalled, and one that was cancelled", BLAME_STALL, false, -1,
                { STOPPED(0, BLAME_STALL), STOPPED(1, BLAME_CANCEL) }, 2,
                { { OUTCOME_TIMED_OUT, BLAME_STALL, false }, { OUTCOME_INTERRUPTED, BLAME_CANCEL, false } } },
        { "a batch timed out, with a neighbour", BLAME_TIMEOUT, false, -1,
                { STOPPED(0, BLAME_TIMEOUT), STOPPED(0, BLAME_TIMEOUT), ON(1) }, 3,
                { { OUTCOME_INTERRUPTED, BLAME_UNSURE, true }, { OUTCOME_INTERRUPTED, BLAME_UNSURE, true },
                        { OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false } } },
        { "cancelled, with a neighbour", BLAME_CANCEL, false, -1, { STOPPED(0, BLAME_CANCEL), ON(1) }, 2,
                { { OUTCOME_INTERRUPTED, BLAME_CANCEL, false }, { OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false } } },
        { "scribbled, alone", BLAME_SCRIBBLE, false, -1, { ON(0) }, 1, { { OUTCOME_CRASHED, BLAME_SCRIBBLE, false } } },
        { "scribbled, one of two", BLAME_SCRIBBLE, false, -1, { ON(0), ON(1) }, 2,
                { { OUTCOME_INTERRUPTED, BLAME_UNSURE, true }, { OUTCOME_INTERRUPTED, BLAME_UNSURE, true } } },
        { "we ended it", BLAME_SHUTDOWN, false, 0, { ON(0), ON(1) }, 2,
                { { OUTCOME_INTERRUPTED, BLAME_SHUTDOWN, false }, { OUTCOME_INTERRUPTED, BLAME_SHUTDOWN, false } } },
};

static void every_row_of_the_table(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const struct row *row = &rows[i];
                struct ring_fault_view faults[SEATS] = { { 0 } };
                struct blamed running[3];
                if (row->fault_seat >= 0)
                        faults[row->fault_seat] =
                                (struct ring_fault_view){ .kind = FAULT_SIGNAL, .signal = SIGSEGV, .code = 1 };
                struct death death = { .signal = SIGSEGV, .seats = SEATS, .faults = faults };
                memcpy(running, row->in, sizeof(running));
                blame(running, row->count, &death, row->killed, row->is_solo);
                for (size_t k = 0; k < row->count; k++)
                        if (running[k].outcome != row->expected[k].outcome || running[k].why != row->expected[k].why ||
                                running[k].is_suspect != row->expected[k].is_suspect)
                                fail_msg("%s: task %zu: %s, why %d, suspect %d", row->what, k,
                                        outcome_name(running[k].outcome), running[k].why, running[k].is_suspect);
        }
}

/* Who sent it, nobody can tell: the first is free, one that comes while it runs alone is its own. */
static void a_sigkill_of_unknown_origin_makes_a_suspect(void **state)
{
        (void)state;
        struct ring_fault_view faults[2] = { { 0 } };
        struct death death = { .signal = SIGKILL, .seats = 2, .faults = faults };
        struct blamed running[1] = { ON(1) };
        blame(running, 1, &death, BLAME_NOTHING, false);
        assert_int_equal(running[0].outcome, OUTCOME_INTERRUPTED);
        assert_true(running[0].is_suspect);
        blame(running, 1, &death, BLAME_NOTHING, true);
        assert_int_equal(running[0].outcome, OUTCOME_CRASHED);
        /* It had said something before: dying of a signal, it was slow to go. */
        faults[1] = (struct ring_fault_view){ .kind = FAULT_SIGNAL, .signal = SIGSEGV, .code = 1 };
        blame(running, 1, &death, BLAME_NOTHING, false);
        assert_int_equal(running[0].outcome, OUTCOME_CRASHED);
        faults[1] = (struct ring_fault_view){ 0 };
        blame(running, 1, &death, BLAME_SCRIBBLE, false);
        assert_int_equal(running[0].outcome, OUTCOME_CRASHED);
}

static void nobody_ran_and_nobody_is_blamed(void **state)
{
        (void)state;
        struct death death = { .signal = SIGKILL };
        blame(NULL, 0, &death, BLAME_NOTHING, false);
}

/* The seat that was asked where it stands says so; that is no confession. */
static void a_seat_that_was_told_to_abort_is_not_guilty(void **state)
{
        (void)state;
        struct ring_fault_view faults[2] = { { .kind = FAULT_SIGNAL, .signal = SIGABRT, .code = SI_USER } };
        struct death death = { .signal = SIGABRT, .seats = 2, .faults = faults };
        struct blamed running[2] = { ON(0), ON(1) };
        blame(running, 2, &death, BLAME_NOTHING, false);
        assert_true(running[0].is_suspect);
        assert_true(running[1].is_suspect);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_row_of_the_table),
                cmocka_unit_test(a_sigkill_of_unknown_origin_makes_a_suspect),
                cmocka_unit_test(nobody_ran_and_nobody_is_blamed),
                cmocka_unit_test(a_seat_that_was_told_to_abort_is_not_guilty),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
