/* The control socket: what a host answers, whatever is said to it. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "check.h"
#include "cli/control_call.h"
#include "host/control.h"
#include "host/control_socket.h"

#define PATIENCE_MS 60000

/* A loop with a control socket in a thread of its own. */
struct place {
        char folder[64];
        uv_loop_t loop;
        uv_async_t stop;
        struct control *control;
        struct control_call *kept[256];
        unsigned kept_count;
        pthread_t thread;
        int folder_fd;
};

static void answer_echo(void *owner, struct control_call *call, const json_t *request)
{
        (void)owner;
        control_reply(call, json_pack("{s:O}", "said", json_object_get(request, "say")));
}

static void on_later(uv_timer_t *timer)
{
        control_reply(timer->data, json_pack("{s:s}", "said", "later"));
        uv_close((uv_handle_t *)timer, (uv_close_cb)free);
}

static void answer_later(void *owner, struct control_call *call, const json_t *request)
{
        struct place *place = owner;
        uv_timer_t *timer = malloc(sizeof(*timer));
        (void)request;
        assert_non_null(timer);
        assert_int_equal(uv_timer_init(&place->loop, timer), 0);
        timer->data = call;
        assert_int_equal(uv_timer_start(timer, on_later, 30, 0), 0);
}

/* Answered at the end. */
static void answer_keep(void *owner, struct control_call *call, const json_t *request)
{
        struct place *place = owner;
        (void)request;
        assert_true(place->kept_count < COUNT(place->kept));
        place->kept[place->kept_count++] = call;
}

static const struct control_verb verbs[] = { { "echo", answer_echo }, { "later", answer_later },
        { "keep", answer_keep } };

static void on_stop(uv_async_t *stop)
{
        struct place *place = stop->data;
        control_close(place->control);
        while (place->kept_count)
                control_refuse(place->kept[--place->kept_count], "too late");
        uv_close((uv_handle_t *)stop, NULL);
}

static void *run_loop(void *self)
{
        struct place *place = self;
        (void)uv_run(&place->loop, UV_RUN_DEFAULT);
        return NULL;
}

static void open_as(struct place *place, const char *name, const char *second)
{
        struct error error = { "" };
        struct control_options options = { .folder = place->folder,
                .name = name,
                .second = second,
                .verbs = verbs,
                .verbs_count = COUNT(verbs),
                .owner = place };
        assert_int_equal(uv_loop_init(&place->loop), 0);
        assert_int_equal(uv_async_init(&place->loop, &place->stop, on_stop), 0);
        place->stop.data = place;
        assert_int_equal(control_open(&place->loop, &options, &place->control, &error), 0);
        assert_int_equal(pthread_create(&place->thread, NULL, run_loop, place), 0);
        place->folder_fd = open(place->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void close_place(struct place *place)
{
        assert_int_equal(uv_async_send(&place->stop), 0);
        assert_int_equal(pthread_join(place->thread, NULL), 0);
        assert_int_equal(uv_loop_close(&place->loop), 0);
        assert_int_equal(close(place->folder_fd), 0);
}

static int set_up(void **state)
{
        static struct place place;
        place = (struct place){ .folder = "/tmp/quiver-control-XXXXXX" };
        assert_non_null(mkdtemp(place.folder));
        open_as(&place, "a", "a-2");
        *state = &place;
        return 0;
}

static int tear_down(void **state)
{
        struct place *place = *state;
        close_place(place);
        /* It left nothing behind. */
        return rmdir(place->folder);
}

/* Sends the bytes and returns all that comes back; caller frees. */
static char *say(const struct place *place, const void *bytes, size_t size, bool ends)
{
        int fd = control_socket_connect(place->folder_fd, "a.sock");
        assert_true(fd >= 0);
        assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
        const char *at = bytes;
        for (size_t left = size; left;) {
                ssize_t n = send(fd, at, left, MSG_NOSIGNAL);
                if (n < 0)
                        break; /* it has heard enough */
                at += n;
                left -= (size_t)n;
        }
        if (ends)
                (void)shutdown(fd, SHUT_WR);
        char *reply = calloc(1, 70000);
        assert_non_null(reply);
        for (size_t got = 0;;) {
                ssize_t n = recv(fd, reply + got, 69999 - got, 0);
                if (n <= 0)
                        break;
                got += (size_t)n;
        }
        assert_int_equal(close(fd), 0);
        return reply;
}

static void expect(const struct place *place, const char *line, const char *part)
{
        char *reply = say(place, line, strlen(line), true);
        assert_contains(reply, part);
        free(reply);
}

static json_t *ask(const struct place *place, const char *name, const char *verb, int expected, struct error *error)
{
        json_t *reply = NULL;
        int r = control_ask(
                place->folder, name, json_pack("{s:s, s:s}", "verb", verb, "say", "x"), PATIENCE_MS, &reply, error);
        assert_int_equal(r, expected);
        return reply;
}

static void a_question_is_answered(void **state)
{
        struct place *place = *state;
        struct error error = { "" };
        json_t *reply = ask(place, "a", "echo", 0, &error);
        assert_string_equal(json_string_value(json_object_get(reply, "said")), "x");
        json_decref(reply);
}

/* A process that the host has started, as a runner is. */
static void who_was_started_by_the_host_is_refused(void **state)
{
        const struct place *place = *state;
        int status = -1;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                char reply[256] = "";
                int fd = control_socket_connect(place->folder_fd, "a.sock");
                /* It asks nothing: what is not read when the host hangs up would take the answer with it. */
                bool is_open = fd >= 0 && fcntl(fd, F_SETFL, 0) == 0;
                ssize_t n = recv(fd, reply, sizeof(reply) - 1, 0);
                _exit(!is_open || n <= 0 || !strstr(reply, "runners, and what they start, may not use this socket"));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

static void an_answer_may_come_later(void **state)
{
        struct error error = { "" };
        json_t *reply = ask(*state, "a", "later", 0, &error);
        assert_string_equal(json_string_value(json_object_get(reply, "said")), "later");
        json_decref(reply);
}

static void what_is_no_question_gets_an_error(void **state)
{
        struct place *place = *state;
        expect(place, "hello\n", "not a JSON object");
        expect(place, "\n", "not a JSON object");
        expect(place, "[1, 2]\n", "\\\"verb\\\"");
        expect(place, "{\"verb\": 7}\n", "\\\"verb\\\"");
        expect(place, "{\"verb\": \"dance\"}\n", "does not know the verb dance");
        expect(place, "{\"verb\": \"echo\", \"verb\": \"echo\"}\n", "duplicate");
        expect(place, "{\"verb\": \"\xff\xfe\"}\n", "\"ok\":false");
        expect(place, "{\"verb\"", "\"ok\":false");
        char *reply = say(place, "\0\0\0\n", 4, true);
        assert_contains(reply, "\"ok\":false");
        free(reply);
}

static void only_the_first_line_counts(void **state)
{
        char *reply = say(*state, "{\"verb\":\"echo\",\"say\":1}\n{\"verb\":\"echo\",\"say\":2}\n", 49, false);
        assert_contains(reply, "\"said\":1");
        assert_null(strstr(reply, "\"said\":2"));
        free(reply);
}

static void a_line_may_come_in_pieces_or_without_an_end(void **state)
{
        struct place *place = *state;
        const char *line = "{\"verb\":\"echo\",\"say\":\"bit by bit\"}\n";
        int fd = control_socket_connect(place->folder_fd, "a.sock");
        assert_true(fd >= 0);
        for (const char *c = line; *c; c++)
                assert_int_equal(send(fd, c, 1, MSG_NOSIGNAL), 1);
        char reply[256] = "";
        struct pollfd look = { .fd = fd, .events = POLLIN };
        assert_int_equal(poll(&look, 1, PATIENCE_MS), 1);
        assert_true(recv(fd, reply, sizeof(reply) - 1, 0) > 0);
        assert_contains(reply, "bit by bit");
        assert_int_equal(close(fd), 0);
        expect(place, "{\"verb\":\"echo\",\"say\":\"no end\"}", "no end");
}

static void a_question_has_a_limit(void **state)
{
        struct place *place = *state;
        size_t size = 4 * CONTROL_REQUEST_MAX;
        char *long_line = malloc(size);
        assert_non_null(long_line);
        memset(long_line, '[', size);
        char *reply = say(place, long_line, size, false);
        assert_contains(reply, "at most 65536 bytes");
        free(reply);
        /* As long as may be, and nested deeper than anyone reads. */
        long_line[CONTROL_REQUEST_MAX - 1] = '\n';
        reply = say(place, long_line, CONTROL_REQUEST_MAX, true);
        assert_contains(reply, "not a JSON object");
        free(reply);
        free(long_line);
        expect(place, "{\"verb\":\"echo\",\"say\":3}\n", "\"said\":3");
}

/* Sixteen that say nothing; the seventeenth is told; when they go, there is room again. */
static void there_is_a_limit_to_connections(void **state)
{
        struct place *place = *state;
        int idle[CONTROL_CONNECTIONS_MAX];
        for (unsigned i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
                idle[i] = control_socket_connect(place->folder_fd, "a.sock");
                assert_true(idle[i] >= 0);
        }
        expect(place, "", "too many requests at once");
        for (unsigned i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
                assert_int_equal(close(idle[i]), 0);
        expect(place, "{\"verb\":\"echo\",\"say\":1}\n", "\"ok\"");
}

/* Their questions are not answered, and nobody waits for it. */
static void those_who_left_keep_no_place(void **state)
{
        struct place *place = *state;
        const char *line = "{\"verb\":\"keep\"}\n";
        for (unsigned i = 0; i < 5 * CONTROL_CONNECTIONS_MAX; i++) {
                int fd;
                while ((fd = control_socket_connect(place->folder_fd, "a.sock")) == -EAGAIN)
                        (void)poll(NULL, 0, 1);
                assert_true(fd >= 0);
                (void)send(fd, line, strlen(line), MSG_NOSIGNAL);
                assert_int_equal(close(fd), 0);
        }
        struct error error = { "" };
        json_t *reply = NULL;
        for (int tries = PATIENCE_MS; !reply && tries; tries--) {
                (void)control_ask(place->folder, "a", json_pack("{s:s, s:s}", "verb", "echo", "say", "x"), PATIENCE_MS,
                        &reply, &error);
                (void)poll(NULL, 0, 1);
        }
        assert_non_null(reply);
        json_decref(reply);
}

static void random_bytes_do_no_harm(void **state)
{
        struct place *place = *state;
        unsigned seed = (unsigned)time(NULL);
        print_message("seed %u\n", seed);
        for (int i = 0; i < 300; i++) {
                static const char *const pieces[] = { "{\"verb\":", "\"echo\"", "}", "\n", "\\u0000", "[[",
                        "\"say\":", "1e999", "\xed\xa0\x80", ":", "," };
                char line[512] = "";
                size_t size = 0;
                for (int n = rand_r(&seed) % 12; n > 0; n--) {
                        const char *piece = pieces[(size_t)rand_r(&seed) % COUNT(pieces)];
                        memcpy(line + size, piece, strlen(piece));
                        size += strlen(piece);
                        line[size++] = (char)rand_r(&seed);
                }
                free(say(place, line, size, true));
        }
        expect(place, "{\"verb\":\"echo\",\"say\":1}\n", "\"said\":1");
}

static void the_file_is_the_owners_alone(void **state)
{
        const struct place *place = *state;
        struct stat found;
        assert_int_equal(fstatat(place->folder_fd, "a.sock", &found, 0), 0);
        assert_int_equal(found.st_mode & 0777, 0600);
}

static void a_living_hosts_name_is_not_taken(void **state)
{
        struct place *place = *state;
        struct error error = { "" };
        struct place second = { .kept_count = 0 };
        memcpy(second.folder, place->folder, sizeof(second.folder));
        open_as(&second, "a", "a-2");
        assert_string_equal(control_file(second.control), "a-2.sock");
        json_decref(ask(place, "a", "echo", 0, &error));
        json_decref(ask(place, "a-2", "echo", 0, &error));
        close_place(&second);
        (void)ask(place, "a-2", "echo", -ENOENT, &error);
        json_decref(ask(place, "a", "echo", 0, &error));
}

static void leave_a_dead_socket(int folder_fd, const char *file)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", folder_fd, file);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(close(fd), 0);
}

static void what_dead_hosts_left_is_swept(void **state)
{
        struct place *place = *state;
        struct error error = { "" };
        leave_a_dead_socket(place->folder_fd, "b.sock");
        leave_a_dead_socket(place->folder_fd, "b-1234.sock");
        (void)ask(place, "b", "echo", -ENOENT, &error);
        assert_contains(error.text, "nobody listens");
        struct place second = { .kept_count = 0 };
        memcpy(second.folder, place->folder, sizeof(second.folder));
        open_as(&second, "b", "b-2");
        assert_string_equal(control_file(second.control), "b.sock");
        assert_int_equal(faccessat(place->folder_fd, "b-1234.sock", F_OK, 0), -1);
        json_decref(ask(place, "b", "echo", 0, &error));
        close_place(&second);
}

/* A plain file of that name is somebody's. */
static void what_is_no_socket_is_left_alone(void **state)
{
        struct place *place = *state;
        int fd = openat(place->folder_fd, "c.sock", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_int_equal(close(fd), 0);
        struct place second = { .kept_count = 0 };
        memcpy(second.folder, place->folder, sizeof(second.folder));
        open_as(&second, "c", "c-2");
        assert_string_equal(control_file(second.control), "c-2.sock");
        close_place(&second);
        assert_int_equal(unlinkat(place->folder_fd, "c.sock", 0), 0);
}

static void who_is_not_there_is_named(void **state)
{
        struct place *place = *state;
        struct error error = { "" };
        json_t *reply = NULL;
        (void)ask(place, "nobody", "echo", -ENOENT, &error);
        assert_contains(error.text, "nobody");
        assert_int_equal(control_ask("/nowhere", "a", json_object(), 1000, &reply, &error), -ENOENT);
        assert_contains(error.text, "/nowhere");
        assert_int_equal(control_ask("/proc/self/fdinfo", "a", json_object(), 1000, &reply, &error), -ENOENT);
        assert_contains(error.text, "no host runs under a.sock: nobody listens");
}

static void patience_ends(void **state)
{
        struct place *place = *state;
        struct error error = { "" };
        json_t *reply = NULL;
        int r = control_ask(place->folder, "a", json_pack("{s:s}", "verb", "keep"), 20, &reply, &error);
        assert_int_equal(r, -ETIMEDOUT);
        assert_contains(error.text, "no answer within 20 ms");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(a_question_is_answered),
                TEST(who_was_started_by_the_host_is_refused),
                TEST(an_answer_may_come_later),
                TEST(what_is_no_question_gets_an_error),
                TEST(only_the_first_line_counts),
                TEST(a_line_may_come_in_pieces_or_without_an_end),
                TEST(a_question_has_a_limit),
                TEST(there_is_a_limit_to_connections),
                TEST(those_who_left_keep_no_place),
                TEST(random_bytes_do_no_harm),
                TEST(the_file_is_the_owners_alone),
                TEST(a_living_hosts_name_is_not_taken),
                TEST(what_dead_hosts_left_is_swept),
                TEST(what_is_no_socket_is_left_alone),
                TEST(who_is_not_there_is_named),
                TEST(patience_ends),
        };
        (void)signal(SIGPIPE, SIG_IGN); /* as main() does */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
