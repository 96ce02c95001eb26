/* What a task's history says about the death of its runner: why, the last words, where. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "host/pool/blame_text.h"

static const char *say_since(enum blame_why why, uint32_t seat, uint64_t since_ms, const struct death *death)
{
        static char text[BLAME_TEXT_MAX];
        memset(text, 'x', sizeof(text));
        return blame_text(text, sizeof(text), why, seat, since_ms, death);
}

static const char *say(enum blame_why why, uint32_t seat, const struct death *death)
{
        return say_since(why, seat, 0, death);
}

static void set_text(struct ring_fault_view *f, const char *cause, const char *trace)
{
        (void)snprintf(f->text, sizeof(f->text), "%s%s", cause, trace);
        f->cause_size = strlen(cause);
}

static void the_text_of_a_crash_names_signal_address_and_place(void **state)
{
        (void)state;
        struct ring_fault_view faults[2] = {
                { .kind = FAULT_SIGNAL, .signal = SIGSEGV, .code = SEGV_MAPERR, .address = 0xdeadbeef },
                { .kind = FAULT_EXIT }
        };
        struct death death = { .signal = SIGSEGV, .seats = 2, .faults = faults };
        set_text(&faults[0], "", "handle+0x12 (mine.so)\n");
        assert_string_equal(
                say(BLAME_CRASH, 0, &death), "crashed: SIGSEGV at address 0xdeadbeef\nhandle+0x12 (mine.so)");
        faults[0].address = 0x18;
        assert_string_equal(say(BLAME_CRASH, 0, &death),
                "crashed: SIGSEGV at address 0x18 (a null pointer)\nhandle+0x12 (mine.so)");
        faults[0] = (struct ring_fault_view){ .kind = FAULT_SIGNAL, .signal = SIGABRT, .code = SI_TKILL };
        assert_string_equal(say(BLAME_CRASH, 0, &death), "crashed: SIGABRT");
        set_text(&faults[0], "free(): invalid pointer\n", "");
        assert_string_equal(say(BLAME_CRASH, 0, &death), "crashed: SIGABRT: free(): invalid pointer");
        death = (struct death){ .exit_status = 3, .seats = 2, .faults = faults };
        set_text(&faults[1], "exit() was called\n", "handle+0x7 (mine.so)\n");
        assert_string_equal(
                say(BLAME_CRASH, 1, &death), "crashed: exit() was called, exit status 3\nhandle+0x7 (mine.so)");
}

static void a_thread_of_the_plugins_is_named_with_its_backtrace(void **state)
{
        (void)state;
        struct ring_fault_view faults[2] = { { 0 } };
        struct ring_fault_view thread = {
                .kind = FAULT_SIGNAL, .signal = SIGSEGV, .code = SEGV_MAPERR, .address = 9999
        };
        struct death death = { .signal = SIGSEGV, .seats = 2, .faults = faults, .thread_fault = &thread };
        set_text(&thread, "", "helper+0x1 (mine.so)\n");
        assert_string_equal(say(BLAME_CRASH, 1, &death),
                "crashed: SIGSEGV at address 0x270f in a thread that the plugin started\nhelper+0x1 (mine.so)");
        assert_string_equal(say(BLAME_UNSURE, 1, &death),
                "interrupted: the process died: SIGSEGV at address 0x270f in a thread that the plugin started; which "
                "of "
                "its tasks caused it is unknown: this one runs alone next\nhelper+0x1 (mine.so)");
        /* Its own record says more than that of a thread which crashed at the same time. */
        faults[0] = (struct ring_fault_view){ .kind = FAULT_SIGNAL, .signal = SIGABRT, .code = SI_TKILL };
        assert_string_equal(say(BLAME_CRASH, 0, &death), "crashed: SIGABRT");
        thread = (struct ring_fault_view){ .kind = FAULT_EXIT };
        set_text(&thread, "exit() was called\n", "");
        death.exit_status = 3;
        assert_string_equal(say(BLAME_CRASH, 1, &death),
                "crashed: exit() was called in a thread that the plugin started, exit status 3");
}

static void without_a_record_the_text_says_how_the_process_ended(void **state)
{
        (void)state;
        struct ring_fault_view faults[1] = { { 0 } };
        struct death death = { .signal = SIGKILL, .seats = 1, .faults = faults };
        assert_non_null(strstr(say(BLAME_CRASH, 0, &death), "crashed: killed by SIGKILL; the host did not do it: "));
        death.oom = OOM_GROUP;
        assert_non_null(strstr(say(BLAME_CRASH, 0, &death), "of this control group for lack of memory (OOM killer)"));
        death.oom = OOM_MACHINE;
        assert_non_null(strstr(say(BLAME_CRASH, 0, &death), "of this machine for lack of memory (OOM killer)"));
        death.oom = OOM_NOT;
        assert_non_null(strstr(say(BLAME_CRASH, 0, &death), "; neither the host nor the OOM killer did it: "));
        death = (struct death){ .signal = SIGSEGV, .seats = 1, .faults = faults };
        assert_non_null(strstr(say(BLAME_CRASH, 0, &death), "killed by SIGSEGV, and no record: a thread that "));
        death = (struct death){ .exit_status = 7, .seats = 1, .faults = faults };
        assert_non_null(
                strstr(say(BLAME_CRASH, 0, &death), "crashed: the process ended with exit status 7, not by exit()"));
        /* A seat number that shared memory made up. */
        assert_non_null(strstr(say(BLAME_CRASH, 4000, &death), "crashed: the process ended with exit status 7"));
        /* A real-time signal has no short name. */
        death = (struct death){ .signal = 40, .seats = 1, .faults = faults };
        assert_string_equal(say(BLAME_CRASH, 0, &death), "crashed: killed by signal 40");
}

static void the_text_of_a_timeout_says_where_the_seat_stood(void **state)
{
        (void)state;
        struct ring_fault_view faults[1] = { { .kind = FAULT_SIGNAL, .signal = SIGABRT, .code = SI_USER } };
        struct death death = { .signal = SIGABRT, .seats = 1, .faults = faults };
        set_text(&faults[0], "", "spin+0x4 (mine.so)\n");
        assert_non_null(strstr(say(BLAME_TIMEOUT, 0, &death), "timed out: "));
        assert_non_null(strstr(say(BLAME_TIMEOUT, 0, &death), "\nspin+0x4 (mine.so)"));
        assert_non_null(strstr(say(BLAME_STALL, 0, &death), "no progress"));
        assert_non_null(strstr(say(BLAME_STALL, 0, &death), "\nspin+0x4 (mine.so)"));
        /* In a batch it is unknown which task hung. */
        assert_non_null(strstr(say(BLAME_UNSURE, 0, &death), "the process died: it did not stop when told; which of"));
}

static void of_the_frames_of_libraries_the_nearest_are_shown(void **state)
{
        (void)state;
        struct ring_fault_view faults[1] = { { .kind = FAULT_SIGNAL, .signal = SIGABRT, .code = SI_TKILL } };
        struct death death = { .signal = SIGABRT, .seats = 1, .faults = faults, .label = "mine.so" };
        set_text(&faults[0], "",
                "0x1 (libc.so.6)\ngsignal+0x1 (libc.so.6)\nabort+0x1 (libc.so.6)\n0x2 (libc.so.6)\nfree+0x1 "
                "(libc.so.6)\n"
                "tidy+0x1 (mine.so)\nqsort+0x2 (libc.so.6)\nhandle+0x1 (mine.so)\n0x3 (libc.so.6)\n0x4 (libc.so.6)\n");
        assert_string_equal(say(BLAME_CRASH, 0, &death),
                "crashed: SIGABRT\n(2 frames of libraries)\nabort+0x1 (libc.so.6)\n0x2 (libc.so.6)\nfree+0x1 "
                "(libc.so.6)\n"
                "tidy+0x1 (mine.so)\nqsort+0x2 (libc.so.6)\nhandle+0x1 (mine.so)\n(2 frames of libraries)");
        /* None of them is the plugin's: all may matter. */
        set_text(&faults[0], "", "a (x)\nb (x)\nc (x)\nd (x)\ne (x)\n");
        assert_string_equal(say(BLAME_CRASH, 0, &death), "crashed: SIGABRT\na (x)\nb (x)\nc (x)\nd (x)\ne (x)");
        set_text(&faults[0], "", "deeper+0x1 (mine.so)\nand again, 23 times or more\n");
        assert_string_equal(
                say(BLAME_CRASH, 0, &death), "crashed: SIGABRT\ndeeper+0x1 (mine.so)\nand again, 23 times or more");
}

static void a_readable_backtrace_takes_the_place_of_the_raw_one(void **state)
{
        (void)state;
        struct ring_fault_view faults[2] = { { .kind = FAULT_SIGNAL, .signal = SIGFPE, .code = SI_TKILL }, { 0 } };
        const char *traces[2] = { "handle(int)+0x1 (mine.so) at mine.cc:7\n", NULL };
        struct death death = { .signal = SIGFPE,
                .seats = 1,
                .faults = faults,
                .thread_fault = &faults[1],
                .traces = traces,
                .trace_note = "" };
        set_text(&faults[0], "", "_Z6handlei+0x1 (mine.so)\n");
        assert_string_equal(say(BLAME_CRASH, 0, &death), "crashed: SIGFPE\nhandle(int)+0x1 (mine.so) at mine.cc:7");
        traces[0] = NULL;
        death.trace_note = "it is missing";
        assert_string_equal(say(BLAME_CRASH, 0, &death), "crashed: SIGFPE\n_Z6handlei+0x1 (mine.so)\n(it is missing)");
}

static void what_it_wrote_to_stderr_since_its_start_is_told(void **state)
{
        (void)state;
        struct stderr_tail tail = { 0 };
        struct ring_fault_view faults[1] = { { .kind = FAULT_SIGNAL, .signal = SIGABRT, .code = SI_TKILL } };
        struct death death = { .signal = SIGABRT, .seats = 1, .faults = faults, .tail = &tail };
        stderr_tail_add(&tail, "of an earlier task", 100);
        stderr_tail_add(&tail, "row 7 is \x1b[31mbad", 200);
        assert_string_equal(say_since(BLAME_CRASH, 0, 150, &death), "crashed: SIGABRT\nstderr: row 7 is  [31mbad");
        stderr_tail_add(&tail, "terminate called after throwing an instance of 'std::runtime_error'", 201);
        stderr_tail_add(&tail, "  what():  no such row", 202);
        assert_string_equal(say_since(BLAME_CRASH, 0, 150, &death),
                "crashed: SIGABRT: terminate called after throwing an instance of 'std::runtime_error', what():  no "
                "such "
                "row\nstderr: row 7 is  [31mbad");
        assert_string_equal(say_since(BLAME_CRASH, 0, 300, &death), "crashed: SIGABRT");
        /* What the record says already is not said twice. */
        set_text(&faults[0], "free(): invalid pointer\n", "");
        stderr_tail_add(&tail, "free(): invalid pointer", 400);
        assert_string_equal(say_since(BLAME_CRASH, 0, 300, &death), "crashed: SIGABRT: free(): invalid pointer");
}

static void of_many_lines_the_last_and_the_one_with_the_cause_are_kept(void **state)
{
        (void)state;
        struct stderr_tail tail = { 0 };
        struct ring_fault_view faults[1] = { { 0 } };
        struct death death = { .exit_status = 1, .seats = 1, .faults = faults, .tail = &tail };
        char line[4096];
        stderr_tail_add(&tail, "SUMMARY: AddressSanitizer: heap-use-after-free mine.c:7 in handle", 5);
        for (int i = 0; i < 30; i++) {
                (void)snprintf(line, sizeof(line), "shadow %d", i);
                stderr_tail_add(&tail, line, 6);
        }
        const char *text = say(BLAME_CRASH, 0, &death);
        assert_ptr_equal(
                strstr(text, "crashed: the process ended with exit status 1: SUMMARY: AddressSanitizer: heap-"), text);
        assert_null(strstr(text, "shadow 21"));
        assert_non_null(strstr(text, "shadow 22"));
        assert_non_null(strstr(text, "shadow 29"));
        memset(line, 'y', sizeof(line) - 1);
        line[sizeof(line) - 1] = 0;
        for (int i = 0; i < 30; i++)
                stderr_tail_add(&tail, line, 7);
        assert_true(strlen(say(BLAME_CRASH, 0, &death)) < BLAME_TEXT_MAX);
}

static void every_reason_has_a_text_that_fits(void **state)
{
        (void)state;
        struct ring_fault_view faults[1] = { { 0 } };
        struct death death = { .signal = SIGKILL, .seats = 1, .faults = faults };
        for (int why = BLAME_CRASH; why <= BLAME_INIT; why++) {
                assert_true(strlen(say((enum blame_why)why, 0, &death)) > 10);
                char small[16];
                (void)blame_text(small, sizeof(small), (enum blame_why)why, 0, 0, &death);
                assert_true(strlen(small) < sizeof(small));
        }
        assert_string_equal(say(BLAME_NOTHING, 0, &death), "");
        /* Settled without a runner's death: cancelled while it waited. */
        assert_string_equal(say(BLAME_CANCEL, 0, NULL), "interrupted: cancelled");
}

static void the_oom_killer_is_told_from_others_by_its_counters(void **state)
{
        (void)state;
        assert_int_equal(oom_parse("low 0\noom 2\noom_kill 3\noom_group_kill 9\n", "oom_kill"), 3);
        assert_int_equal(oom_parse("oom_kill 4", "oom_kill"), 4);
        assert_int_equal(oom_parse("xoom_kill 4\noom_kill -1\n", "oom_kill"), UINT64_MAX);
        assert_int_equal(oom_parse("", "oom_kill"), UINT64_MAX);
        const struct oom_count before = { 1, 5 };
        assert_int_equal(oom_compare(before, (struct oom_count){ 2, 6 }), OOM_GROUP);
        assert_int_equal(oom_compare(before, (struct oom_count){ 1, 6 }), OOM_MACHINE);
        assert_int_equal(oom_compare(before, (struct oom_count){ 1, 5 }), OOM_NOT);
        assert_int_equal(oom_compare(before, (struct oom_count){ UINT64_MAX, UINT64_MAX }), OOM_UNKNOWN);
        assert_int_equal(oom_compare((struct oom_count){ UINT64_MAX, 5 }, (struct oom_count){ 3, 6 }), OOM_MACHINE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_text_of_a_crash_names_signal_address_and_place),
                cmocka_unit_test(a_thread_of_the_plugins_is_named_with_its_backtrace),
                cmocka_unit_test(without_a_record_the_text_says_how_the_process_ended),
                cmocka_unit_test(the_text_of_a_timeout_says_where_the_seat_stood),
                cmocka_unit_test(of_the_frames_of_libraries_the_nearest_are_shown),
                cmocka_unit_test(a_readable_backtrace_takes_the_place_of_the_raw_one),
                cmocka_unit_test(what_it_wrote_to_stderr_since_its_start_is_told),
                cmocka_unit_test(of_many_lines_the_last_and_the_one_with_the_cause_are_kept),
                cmocka_unit_test(every_reason_has_a_text_that_fits),
                cmocka_unit_test(the_oom_killer_is_told_from_others_by_its_counters),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
