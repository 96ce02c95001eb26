/* The contract of coord.h between processes that are killed, stopped, and many. */
#include <signal.h>
#include <sys/wait.h>

#include "child.h"

/* For those who must not lose their session however busy this machine is. */
#define PATIENT_MS 10000

static const char *members(struct client *c)
{
        return children(c, "members", true);
}

static void a_killed_process_is_missed(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        /* Where death is noticed at once, the session's timeout has no part in it: it is longer than this test. */
        pid_t pid = child_start(w, "member", "a", w->driver->notices_death ? 300000 : 0);
        WAIT_FOR(w, !strcmp(members(c), "a"));
        child_kill(pid, SIGKILL);
        WAIT_FOR(w, !strcmp(members(c), ""));
        (void)child_reap(pid);
        assert_int_equal(c->states_count, 1);
}

static void a_process_killed_while_nobody_looks_is_missed_later(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        pid_t pid = child_start(w, "member", "a", w->driver->notices_death ? 300000 : 0);
        WAIT_FOR(w, !strcmp(members(c), "a"));
        client_close(c);
        child_kill(pid, SIGKILL);
        (void)child_reap(pid);
        c = join(w);
        WAIT_FOR(w, !strcmp(members(c), ""));
}

static void a_stopped_process_loses_its_session_and_comes_back(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        struct coord_stat before, after;
        pid_t pid = child_start(w, "member", "a", 0);
        WAIT_FOR(w, !strcmp(members(c), "a"));
        assert_int_equal(get(c, "members/a", false, NULL, &before), 0);
        child_kill(pid, SIGSTOP);
        WAIT_FOR(w, !strcmp(members(c), ""));
        /* It harms nobody meanwhile. */
        assert_int_equal(create(c, "n", "", 0, NULL, NULL), 0);
        child_kill(pid, SIGCONT);
        WAIT_FOR(w, !strcmp(members(c), "a"));
        assert_int_equal(get(c, "members/a", false, NULL, &after), 0);
        assert_true(after.owner != before.owner && after.created > before.created);
        child_kill(pid, SIGKILL);
        (void)child_reap(pid);
}

static void nothing_is_counted_twice_or_lost_among_processes(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        pid_t pids[4];
        const char *data;
        assert_int_equal(create(c, "counter", "0", 0, NULL, NULL), 0);
        for (unsigned i = 0; i < 4; i++)
                pids[i] = child_start(w, "count", "100", PATIENT_MS);
        for (unsigned i = 0; i < 4; i++) {
                int status = -1;
                WAIT_FOR(w, waitpid(pids[i], &status, WNOHANG) == pids[i]);
                assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        assert_int_equal(get(c, "counter", false, &data, NULL), 0);
        assert_int_equal(strtoul(data, NULL, 10), 400);
}

/* Killed at any moment: what it had begun to write spoils nothing for the others. */
static void writers_that_are_killed_spoil_nothing(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        const char *data;
        struct coord_stat stat;
        assert_int_equal(create(c, "counter", "0", 0, NULL, NULL), 0);
        for (unsigned i = 0; i < 10; i++) {
                uint64_t from = 0;
                pid_t pid = child_start(w, "count", "100000", PATIENT_MS);
                assert_int_equal(get(c, "counter", false, NULL, &stat), 0);
                from = stat.version;
                WAIT_FOR(w, !get(c, "counter", false, NULL, &stat) && stat.version > from + 3 * i);
                child_kill(pid, SIGKILL);
                (void)child_reap(pid);
        }
        assert_int_equal(get(c, "counter", false, &data, &stat), 0);
        assert_int_equal(strtoul(data, NULL, 10), stat.version);
        assert_int_equal(create(c, "n", "", 0, NULL, NULL), 0);
}

int main(int argc, char **argv)
{
        child_main(argc, argv);
        const struct CMUnitTest tests[] = {
                IN_WORLD(a_killed_process_is_missed),
                IN_WORLD(a_process_killed_while_nobody_looks_is_missed_later),
                IN_WORLD(a_stopped_process_loses_its_session_and_comes_back),
                IN_WORLD(nothing_is_counted_twice_or_lost_among_processes),
                IN_WORLD(writers_that_are_killed_spoil_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
