/* How a runner starts, and how it ends. */
#include "runner_fixture.h"

/* --- start and end ----------------------------------------------------------------------------------------------- */

static void it_says_what_it_has_loaded_and_ends_when_retired(void **state)
{
        (void)state;
        struct runner_ready ready;
        host.settings[0] = (struct setting){ "known", "1" };
        host.settings[1] = (struct setting){ "knwon", "1" };
        host.settings_count = 2;
        spawn_ready(2);
        assert_int_equal(message_get_ready(&host.reader, &ready), 0);
        assert_string_equal(ready.name, "many-ways");
        assert_string_equal(ready.version, "2.1");
        assert_int_equal(ready.flags, QV_THREADS);
        assert_false(ready.has_many);
        assert_string_equal(ready.unread, "knwon");
        (void)submit("nothing");
        assert_int_equal(answer().outcome, OUTCOME_DONE);
        ring_host_retire(&host.ring);
        int status = wait_for_end();
        assert_true(WIFEXITED(status)); /* although the plugin has an exit handler that hangs */
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(hear(), 0);
}

static void an_init_that_fails_is_a_refusal(void **state)
{
        (void)state;
        const char *text;
        host.settings[0] = (struct setting){ "broken", "1" };
        host.settings_count = 1;
        spawn("good", 4);
        assert_int_equal(hear(), MESSAGE_REFUSED);
        assert_int_equal(message_get_refused(&host.reader, &text), 0);
        assert_string_equal(text, "plugin trial.so: init: no luck");
        assert_int_equal(WEXITSTATUS(wait_for_end()), 1);
}

static void a_missing_plugin_is_a_refusal(void **state)
{
        (void)state;
        const char *text;
        spawn("no_such", 1);
        assert_int_equal(hear(), MESSAGE_REFUSED);
        assert_int_equal(message_get_refused(&host.reader, &text), 0);
        expect_words(text, "plugin trial.so: cannot open");
        assert_int_equal(WEXITSTATUS(wait_for_end()), 1);
}

static void it_ends_when_the_host_is_gone(void **state)
{
        (void)state;
        spawn_ready(1);
        uint64_t ticket = submit("spin"); /* whatever the handler is doing */
        (void)wait_until_busy(ticket);
        (void)shutdown(host.control_fd, SHUT_RDWR);
        int status = wait_for_end();
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void it_does_not_start_for_a_parent_that_has_died(void **state)
{
        (void)state;
        int control[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
        host.pid = fork();
        if (!host.pid) {
                char *argv[] = { (char *)"runner", (char *)"999999", NULL };
                place_descriptors(control[1], STDERR_FILENO);
                _exit(cmd_runner(2, argv));
        }
        assert_int_equal(WEXITSTATUS(wait_for_end()), 1);
        (void)close(control[0]);
        (void)close(control[1]);
}

static void run_by_hand_it_says_who_starts_it(void **state)
{
        (void)state;
        int out[2];
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        host.pid = fork();
        if (!host.pid) {
                char *argv[] = { (char *)"runner", (char *)"1", NULL };
                (void)dup2(out[1], STDERR_FILENO);
                (void)close(RUNNER_FD_CONTROL);
                _exit(cmd_runner(2, argv));
        }
        (void)close(out[1]);
        assert_int_equal(WEXITSTATUS(wait_for_end()), 2);
        char text[256] = "";
        assert_true(read(out[0], text, sizeof(text) - 1) > 0);
        (void)close(out[0]);
        expect_words(text, "a host starts this");
}

static void half_a_line_of_output_is_not_lost(void **state)
{
        (void)state;
        char text[64] = "";
        spawn_ready(1);
        (void)submit("print");
        (void)answer();
        ring_host_retire(&host.ring);
        (void)wait_for_end();
        assert_true(read(host.out_fd, text, sizeof(text) - 1) > 0);
        if (!strstr(text, "half"))
                assert_true(read(host.out_fd, text + strlen(text), sizeof(text) - 1 - strlen(text)) > 0);
        assert_string_equal(text, "a line\nhalf");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                PROCESS_TEST(it_says_what_it_has_loaded_and_ends_when_retired),
                PROCESS_TEST(an_init_that_fails_is_a_refusal),
                PROCESS_TEST(a_missing_plugin_is_a_refusal),
                PROCESS_TEST(it_ends_when_the_host_is_gone),
                PROCESS_TEST(it_does_not_start_for_a_parent_that_has_died),
                PROCESS_TEST(run_by_hand_it_says_who_starts_it),
                PROCESS_TEST(half_a_line_of_output_is_not_lost),
        };
        (void)signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, compile_plugins, remove_plugins);
}
