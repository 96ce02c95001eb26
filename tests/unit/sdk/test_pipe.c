/* pipe: frames taken apart and put together, and what a worker is told that `quiver try` cannot show. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <quiver/mock.h>

#include "../plugins/pipe/frame.h"

/* --- frames ------------------------------------------------------------------------------------------------------- */

static int parse(struct frame *f, struct bytes *in, const void *data, size_t size)
{
        const char *why;
        in->size = 0;
        bytes_put(in, data, size);
        return frame_parse(f, in, 1000, &why);
}

static void a_frame_is_taken_apart(void **state)
{
        (void)state;
        static const char text[] = "\0\0\0\034submit\nkey=a=b\nempty=\n\nx\0\n\ny rest of the next";
        struct bytes in = { 0 };
        struct frame f;
        assert_int_equal(parse(&f, &in, text, sizeof(text) - 1), 1);
        assert_string_equal(f.kind, "submit");
        assert_string_equal(frame_get(&f, "key"), "a=b");
        assert_string_equal(frame_get(&f, "empty"), "");
        assert_null(frame_get(&f, "ke"));
        assert_null(frame_get(&f, "x"));
        assert_int_equal(f.size, 32);
        assert_int_equal(f.body_size, 5);
        assert_memory_equal(f.body, "x\0\n\ny", 5);
        bytes_free(&in);
}

static void a_frame_that_is_not_all_there_is_waited_for(void **state)
{
        (void)state;
        static const char text[] = "\0\0\0\012done\nid=1\n\n";
        struct bytes in = { 0 };
        struct frame f;
        for (size_t size = 0; size < 4 + 10; size++)
                assert_int_equal(parse(&f, &in, text, size), 0);
        assert_int_equal(parse(&f, &in, "\0\0\0\006done\n\n", 10), 1);
        assert_string_equal(f.kind, "done");
        assert_null(frame_get(&f, "id"));
        assert_int_equal(f.body_size, 0);
        bytes_free(&in);
}

static void what_is_no_frame_is_refused(void **state)
{
        (void)state;
        static const struct {
                const char *data;
                size_t size;
        } bad[] = {
                { "\0\0\0\0", 4 },
                { "\0\0\0\1x", 5 },
                { "\0\0\3\351", 4 },
                { "\377\377\377\377", 4 },
                { "\0\0\0\005done\n", 9 },
                { "\0\0\0\010a\nname\n\n", 12 },
                { "\0\0\0\007a\n=1\n\nx", 11 },
                { "\0\0\0\006a\0b=\n\n", 10 },
        };
        struct bytes in = { 0 };
        struct frame f;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_int_equal(parse(&f, &in, bad[i].data, bad[i].size), -EBADMSG);
        bytes_free(&in);
}

static void random_bytes_never_get_past_the_parser(void **state)
{
        (void)state;
        static const char letters[] = "\n\n\n=ab\0";
        struct bytes in = { 0 };
        struct frame f;
        struct frame_headers headers;
        uint32_t random = 1;
        for (int round = 0; round < 20000; round++) {
                char text[64] = { 0, 0, 0, 0 };
                for (size_t i = 4; i < sizeof(text); i++) {
                        random = random * 1103515245 + 12345;
                        text[i] = letters[(random >> 16) % (sizeof(letters) - 1)];
                }
                size_t size = (random >> 8) % 61;
                text[3] = (char)size;
                if (parse(&f, &in, text, size + 4) != 1)
                        continue;
                assert_int_equal(f.size, size + 4);
                assert_ptr_equal(f.body + f.body_size, in.data + f.size);
                (void)frame_get(&f, "a");
                (void)frame_get_headers(&f, &headers);
        }
        bytes_free(&in);
}

/* --- a worker ------------------------------------------------------------------------------------------------------
 */

/* Answers with what it was told.  In Perl, which every Debian has: the fourth language. */
static const char worker[] =
        "use strict; binmode STDIN; binmode STDOUT; $| = 1;\n"
        "sub put { my $f = join('', @_); print pack('N', length $f), $f }\n"
        "sub get { read(STDIN, my $n, 4) == 4 or exit; read(STDIN, my $f, unpack('N', $n)); $f }\n"
        "my $hello = get(); put(\"ready\\nprotocol=1\\n\\n\");\n"
        "while (1) {\n"
        "  my $task = get(); my ($id) = $task =~ /^id=(.*)$/m;\n"
        "  if ($task =~ /\\n\\nsave$/) { put(\"checkpoint\\nid=$id\\n\\nhalf\\0way\"); "
        "put(\"retry\\nid=$id\\n\\nlater\") }\n"
        "  elsif ($task =~ /\\n\\npid$/) { put(\"result\\nid=$id\\n\\n$$\"); put(\"done\\nid=$id\\n\\n\") }\n"
        "  elsif ($task =~ /\\n\\nleave$/) { put(\"result\\nid=$id\\n\\n$$\"); put(\"done\\nid=$id\\n\\n\"); exit }\n"
        "  elsif ($task =~ /\\n\\ndeaf$/) { put(\"result\\nid=$id\\n\\n$$\"); put(\"done\\nid=$id\\n\\n\");\n"
        "    vec(my $in, 0, 1) = 1; select($in, undef, undef, undef); exit }\n"
        "  elsif ($task =~ /\\n\\ntwice$/) { put(\"result\\nid=$id\\n\\n$$\"); put(\"done\\nid=$id\\n\\n\") for 1..2 "
        "}\n"
        "  elsif ($task =~ /\\n\\nask (\\S+)(.*)$/) { my ($kind, $fields) = ($1, $2); $fields =~ s/ /\\n/g;\n"
        "    put(\"$kind\\nid=$id$fields\\n\\nbody\"); my $answer = get(); $answer =~ s/$id/ID/;\n"
        "    put(\"result\\nid=$id\\n\\n$answer\"); put(\"done\\nid=$id\\n\\n\") }\n"
        "  else { put(\"result\\nid=$id\\n\\n$hello$task\"); put(\"done\\nid=$id\\n\\n\") }\n"
        "}\n";

static struct qv_mock *mock;

static int setup(void **state)
{
        (void)state;
        mock = qv_mock_new(&quiver_plugin);
        qv_mock_config(mock, "command.0", "perl");
        qv_mock_config(mock, "command.1", "-e");
        qv_mock_config(mock, "command.2", worker);
        assert_int_equal(qv_mock_init(mock), 0);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        qv_mock_free(mock);
        return 0;
}

static struct qv_mock_task *run(const char *payload)
{
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", payload);
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        return task;
}

static void a_worker_is_told_all_about_its_task(void **state)
{
        (void)state;
        struct qv_mock_task *task = qv_mock_new_task_bytes(mock, "key=1", "a\0b\n\nc", 6);
        qv_mock_header(mock, task, "trace", "t=1 2");
        qv_mock_header(mock, task, "bad=name", "left out");
        qv_mock_header(mock, task, "bad", "value\nhandler=other");
        task->attempts_max = 9;
        task->submitted_ms = 1234;
        task->crashes = 2;
        task->lane = -1;
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        char expected[512];
        int size = snprintf(expected, sizeof(expected),
                "hello\nprotocol=1\nhandler=pipe\nseat=0\n\n"
                "task\nid=%s\nkey=key=1\nhandler=pipe\nattempt=1\nfence_epoch=1\nfence_start=1\n"
                "attempts_max=9\nsubmitted_ms=1234\ncrashes=2\nlane=low\nheader.trace=t=1 "
                "2\nheader64.bad=dmFsdWUKaGFuZGxlcj1vdGhlcg==\n\n",
                task->id);
        assert_int_equal(task->result_size, size + 6);
        assert_memory_equal(task->result, expected, size);
        assert_memory_equal(task->result + size, "a\0b\n\nc", 6);
}

static void a_checkpoint_is_handed_to_the_next_attempt(void **state)
{
        (void)state;
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "save");
        assert_int_equal(qv_mock_handle(mock, task), QV_RETRY);
        assert_string_equal(task->error, "later");
        assert_int_equal(task->checkpoint_size, 8);
        assert_memory_equal(task->checkpoint, "half\0way", 8);
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_non_null(strstr(task->result, "\nattempt=2\n"));
        assert_non_null(strstr(task->result, "\ncheckpoint_size=8\n"));
        assert_memory_equal(task->result + task->result_size - 12, "savehalf\0way", 12);
}

static void wait_for_end(pid_t pid)
{
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void kill_worker(pid_t pid)
{
        assert_int_equal(kill(pid, SIGKILL), 0);
        wait_for_end(pid);
}

static void a_worker_that_left_between_tasks_costs_nothing(void **state)
{
        (void)state;
        struct qv_mock_task *first = run("leave");
        wait_for_end(atoi(first->result));
        struct qv_mock_task *second = run("pid");
        assert_string_not_equal(first->result, second->result);
        assert_non_null(qv_mock_logged(mock, QV_LOG_INFO, "between tasks the worker ended: exit status 0; starting"));
        assert_string_equal(run("pid")->result, second->result);
}

static void a_worker_that_leaves_without_reading_its_task_costs_nothing(void **state)
{
        (void)state;
        struct qv_mock_task *first = run("deaf");
        assert_string_not_equal(run("pid")->result, first->result);
        assert_non_null(qv_mock_logged(mock, QV_LOG_INFO, "between tasks the worker ended: exit status 0; starting"));
}

static void a_second_answer_never_ends_the_next_task(void **state)
{
        (void)state;
        struct qv_mock_task *first = run("twice");
        struct qv_mock_task *second = qv_mock_new_task(mock, "k", "x");
        int32_t outcome = qv_mock_handle(mock, second);
        /* Seen before the task was sent it costs nothing, seen after it a retry; never DONE without having run. */
        if (outcome == QV_DONE)
                assert_non_null(strstr(second->result, second->id));
        else
                assert_string_equal(second->error, "the worker sent a frame for another task");
        assert_string_not_equal(run("pid")->result, first->result);
}

static void a_follow_up_that_is_refused_rejects_the_task(void **state)
{
        (void)state;
        qv_mock_fail(mock, "result", -ENOTSUP);
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "x");
        assert_int_equal(qv_mock_handle(mock, task), QV_REJECT);
        assert_non_null(strstr(task->error, "refused: Operation not supported"));
}

static void answers(const char *question, const char *expected)
{
        struct qv_mock_task *task = run(question);
        char text[256];
        (void)snprintf(text, sizeof(text), "%.*s", (int)task->result_size, task->result);
        assert_string_equal(text, expected);
}

static void a_worker_gets_the_answer_of_a_service(void **state)
{
        (void)state;
        answers("ask trylock name=a ttl_ms=1000", "answer\nid=ID\nto=trylock\nvalue=1\n\n");
        answers("ask unlock name=a token=9", "answer\nid=ID\nto=unlock\nerror=ENOENT\n\nNo such file or directory");
        assert_non_null(strstr(run("ask next_id")->result, "answer\nid=ID\nto=next_id\nvalue="));
        answers("ask room_append room=news", "answer\nid=ID\nto=room_append\nvalue=1\n\n");
        answers("ask trylock name=a/b ttl_ms=1000", "answer\nid=ID\nto=trylock\nerror=EINVAL\n\nInvalid argument");
        qv_mock_fail(mock, "trylock", -EBUSY);
        answers("ask trylock name=a ttl_ms=1000", "answer\nid=ID\nto=trylock\nerror=EBUSY\n\nDevice or resource busy");
        qv_mock_fail(mock, "next_id", -ENOSYS); /* not one of those that plugin.h names */
        answers("ask next_id", "answer\nid=ID\nto=next_id\nerror=EIO\n\nFunction not implemented");
}

static void a_question_that_lacks_a_field_costs_the_task_an_attempt(void **state)
{
        (void)state;
        static const char *const bad[][2] = {
                { "ask trylock ttl_ms=1", "a trylock frame without a name" },
                { "ask trylock name=a ttl_ms=x", "ttl_ms is no number" },
                { "ask unlock token=1", "an unlock frame without a name" },
                { "ask unlock name=a", "token is no number" },
                { "ask unlock name=a token=-1", "token is no number" },
                { "ask room_append", "without a room" },
        };
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                (void)run("pid"); /* so that failures are not in a row */
                struct qv_mock_task *task = qv_mock_new_task(mock, "k", bad[i][0]);
                assert_int_equal(qv_mock_handle(mock, task), QV_RETRY);
                assert_non_null(strstr(task->error, bad[i][1]));
        }
}

static void a_killed_worker_is_replaced_and_nothing_stays_open(void **state)
{
        (void)state;
        qv_mock_close(mock);
        size_t counts[2] = { 0, 0 };
        for (int i = 0; i < 2; i++) {
                assert_int_equal(qv_mock_init(mock), 0);
                for (int j = 0; j < 3; j++)
                        kill_worker(atoi(run("pid")->result));
                qv_mock_close(mock);
                DIR *fds = opendir("/proc/self/fd");
                assert_non_null(fds);
                while (readdir(fds))
                        counts[i]++;
                (void)closedir(fds);
        }
        assert_int_equal(counts[0], counts[1]);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_frame_is_taken_apart),
                cmocka_unit_test(a_frame_that_is_not_all_there_is_waited_for),
                cmocka_unit_test(what_is_no_frame_is_refused),
                cmocka_unit_test(random_bytes_never_get_past_the_parser),
                TEST(a_worker_is_told_all_about_its_task),
                TEST(a_checkpoint_is_handed_to_the_next_attempt),
                TEST(a_worker_that_left_between_tasks_costs_nothing),
                TEST(a_worker_that_leaves_without_reading_its_task_costs_nothing),
                TEST(a_second_answer_never_ends_the_next_task),
                TEST(a_follow_up_that_is_refused_rejects_the_task),
                TEST(a_worker_gets_the_answer_of_a_service),
                TEST(a_question_that_lacks_a_field_costs_the_task_an_attempt),
                TEST(a_killed_worker_is_replaced_and_nothing_stays_open),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
