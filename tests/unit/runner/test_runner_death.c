/* What a runner can still say when a handler takes it down. */
#include "runner_fixture.h"

/* --- last words -------------------------------------------------------------------------------------------------- */

/* Runs one task that takes the runner down by `signal`; the fault record of its seat. */
static struct ring_fault_view run_to_death(const char *payload, int signal)
{
        spawn_ready(1);
        uint64_t ticket = submit(payload);
        int status = wait_for_end();
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signal);
        struct ring_seat_view view;
        ring_host_seat(&host.ring, 0, &view);
        assert_int_equal(view.ticket, ticket); /* the seat names the task */
        return fault(0);
}

static void a_crash_leaves_signal_address_and_named_frames(void **state)
{
        (void)state;
        struct ring_fault_view f = run_to_death("segv", SIGSEGV);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        assert_int_equal(f.signal, SIGSEGV);
        assert_int_equal(f.code, SEGV_MAPERR);
        assert_int_equal(f.address, 0x18);
        assert_ptr_equal(strstr(f.text, "hidden_crash+0x"), f.text);
        expect_words(f.text, "my_handle+0x");
        expect_words(f.text, " (trial.so)\n");
        assert_int_not_equal(f.places[0], 0); /* in the plugin's own file */
        assert_int_equal(f.cause_size, 0);
        assert_null(strstr(f.text, "seat_serve")); /* what is the same in every trace is left out */
}

static void a_stack_overflow_is_told_too(void **state)
{
        (void)state;
        struct ring_fault_view f = run_to_death("overflow", SIGSEGV);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        expect_words(f.text, "depth+0x");
}

static void an_abort_of_its_own_is_a_crash(void **state)
{
        (void)state;
        struct ring_fault_view f = run_to_death("abort", SIGABRT);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        assert_int_equal(f.signal, SIGABRT);
        assert_int_equal(f.code, SI_TKILL);
        expect_words(f.text, "my_handle+0x");
}

static void a_call_to_nowhere_names_the_caller(void **state)
{
        (void)state;
        struct ring_fault_view f = run_to_death("nowhere", SIGSEGV);
        assert_int_equal(f.address, 0);
        assert_ptr_equal(strstr(f.text, "0x0\njump_to_nowhere+0x"), f.text);
}

static void an_exit_is_noted_and_hangs_nobody(void **state)
{
        (void)state;
        spawn_ready(1);
        (void)submit("exit");
        int status = wait_for_end();
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
        struct ring_fault_view f = fault(0);
        assert_int_equal(f.kind, FAULT_EXIT);
        assert_int_equal(f.code, 7);
        expect_words(f.text, "my_handle+0x");
}

static void a_thread_that_ends_itself_ends_the_runner(void **state)
{
        (void)state;
        spawn_ready(1);
        (void)submit("pthread_exit");
        assert_true(WIFEXITED(wait_for_end()));
        assert_int_equal(fault(0).kind, FAULT_EXIT);
        expect_words(fault(0).text, "pthread_exit");
}

static void a_crash_on_another_thread_blames_no_seat(void **state)
{
        (void)state;
        struct ring_fault_view f = run_to_death("thread", SIGSEGV);
        assert_int_equal(f.kind, FAULT_NONE);
        f = fault(RING_NO_SEAT);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        assert_int_equal(f.signal, SIGSEGV);
        assert_ptr_equal(strstr(f.text, "hidden_crash+0x"), f.text);
        assert_int_not_equal(f.places[0], 0);
}

static void an_exit_on_another_thread_is_told(void **state)
{
        (void)state;
        spawn_ready(1);
        (void)submit("exit thread");
        assert_int_equal(WEXITSTATUS(wait_for_end()), 8);
        assert_int_equal(fault(0).kind, FAULT_NONE);
        assert_int_equal(fault(RING_NO_SEAT).kind, FAULT_EXIT);
#ifndef __SANITIZE_ADDRESS__ /* Its exit() stands between, and is not walked through. */
        expect_words(fault(RING_NO_SEAT).text, "exit_elsewhere+0x");
#endif
}

static void a_crash_while_loading_is_told(void **state)
{
        (void)state;
        spawn("crash_early", 2);
        int status = wait_for_end();
        assert_true(WIFSIGNALED(status));
        assert_int_equal(fault(0).kind, FAULT_SIGNAL);
        expect_words(fault(0).text, "hidden_crash+0x");
}

static void an_exit_while_loading_is_told(void **state)
{
        (void)state;
        spawn("exit_early", 1);
        assert_int_equal(WEXITSTATUS(wait_for_end()), 9);
        assert_int_equal(fault(0).kind, FAULT_EXIT);
}

static void told_to_abort_the_stuck_seat_says_where_it_stands(void **state)
{
        (void)state;
        spawn_ready(4);
        uint64_t waiting = submit("wait");
        uint64_t stuck = submit("spin");
        uint32_t waiting_seat = wait_until_busy(waiting);
        uint32_t stuck_seat = wait_until_busy(stuck);
        ring_host_stop(&host.ring, stuck_seat, stuck);
        assert_int_equal(kill(host.pid, SIGABRT), 0);
        int status = wait_for_end();
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        struct ring_fault_view f = fault(stuck_seat);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        assert_int_equal(f.signal, SIGABRT);
        assert_int_equal(f.code, SI_USER); /* not its own doing */
        expect_words(f.text, "spin_for_ever+0x");
        assert_int_equal(fault(waiting_seat).kind, FAULT_NONE);
}

static void killed_from_outside_it_blames_nobody(void **state)
{
        (void)state;
        spawn_ready(2);
        (void)wait_until_busy(submit("spin"));
        assert_int_equal(kill(host.pid, SIGSEGV), 0);
        assert_int_equal(WTERMSIG(wait_for_end()), SIGSEGV);
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(fault(i).kind, FAULT_NONE);
}

/* --- handlers that do odd things --------------------------------------------------------------------------------- */

static void what_a_forked_child_does_is_no_fault_of_the_runner(void **state)
{
        (void)state;
        static const char *const ways[] = { "fork and crash", "fork and exit" };
        spawn_ready(1);
        for (size_t i = 0; i < 2; i++) {
                (void)submit(ways[i]);
                assert_int_equal(answer().outcome, OUTCOME_DONE);
                assert_int_equal(fault(0).kind, FAULT_NONE);
        }
        ring_host_retire(&host.ring);
        assert_int_equal(wait_for_end(), 0);
}

static void a_forked_child_that_comes_back_does_not_answer(void **state)
{
        (void)state;
        spawn_ready(1);
        for (int i = 0; i < 20; i++) {
                uint64_t ticket = submit("fork");
                assert_int_equal(answer().ticket, ticket);
        }
        /* And it serves nothing either: all that follow are the parent's. */
        char pid[16];
        (void)snprintf(pid, sizeof(pid), "%d", (int)host.pid);
        for (int i = 0; i < 20; i++) {
                (void)submit("pid");
                struct ring_reply reply = answer();
                assert_int_equal(reply.result_size, strlen(pid));
                assert_memory_equal(reply.result, pid, strlen(pid));
        }
        ring_host_retire(&host.ring);
        assert_int_equal(wait_for_end(), 0);
}

static void a_handler_that_closes_everything_still_answers_and_the_runner_ends(void **state)
{
        (void)state;
        spawn_ready(1);
        assert_true(ring_host_sleep(&host.ring)); /* so that the bell has to be rung, and cannot be */
        uint64_t ticket = submit("close");
        assert_true(WIFEXITED(wait_for_end()));
        assert_int_equal(answer().ticket, ticket);
        assert_int_equal(fault(0).kind, FAULT_EXIT);
        expect_words(fault(0).text, "closed the runner's own descriptors");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                PROCESS_TEST(a_crash_leaves_signal_address_and_named_frames),
                PROCESS_TEST(a_stack_overflow_is_told_too),
                PROCESS_TEST(an_abort_of_its_own_is_a_crash),
                PROCESS_TEST(a_call_to_nowhere_names_the_caller),
                PROCESS_TEST(an_exit_is_noted_and_hangs_nobody),
                PROCESS_TEST(a_thread_that_ends_itself_ends_the_runner),
                PROCESS_TEST(a_crash_on_another_thread_blames_no_seat),
                PROCESS_TEST(an_exit_on_another_thread_is_told),
                PROCESS_TEST(a_crash_while_loading_is_told),
                PROCESS_TEST(an_exit_while_loading_is_told),
                PROCESS_TEST(told_to_abort_the_stuck_seat_says_where_it_stands),
                PROCESS_TEST(killed_from_outside_it_blames_nobody),
                PROCESS_TEST(what_a_forked_child_does_is_no_fault_of_the_runner),
                PROCESS_TEST(a_forked_child_that_comes_back_does_not_answer),
                PROCESS_TEST(a_handler_that_closes_everything_still_answers_and_the_runner_ends),
        };
        (void)signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, compile_plugins, remove_plugins);
}
