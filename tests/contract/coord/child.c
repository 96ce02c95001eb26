#include "child.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the child's side -------------------------------------------------------------------------------------------- */

/* Plain code that ends the process when something goes wrong: nobody catches an assert here. */
static struct {
        uv_loop_t loop;
        struct coord *coord;
        const char *argument;
        bool is_counter;
        unsigned left;
        struct coord_open open;
        struct coord_create create;
        struct coord_get get;
        struct coord_set set;
        char path[128];
        char text[8192];
} self;

static void must(int status, const char *what)
{
        if (!status)
                return;
        (void)fprintf(stderr, "child: %s: %s\n", what, strerror(-status));
        _exit(1);
}

static void make_member(void);

static void on_member_made(struct coord_request *request)
{
        /* The session went meanwhile: look() will come. */
        if (request->status == -EOWNERDEAD || request->status == -EEXIST)
                return;
        /* Nobody knows: there may be one now. */
        if (request->status == -ETIMEDOUT || request->status == -ECONNRESET)
                make_member();
        else
                must(request->status, "create");
}

static void make_member(void)
{
        (void)snprintf(self.path, sizeof(self.path), "members/%s", self.argument);
        self.create =
                (struct coord_create){ .request.done = on_member_made, .path = self.path, .flags = COORD_EPHEMERAL };
        coord_create(self.coord, &self.create);
}

static void count_next(void);

static void on_counted(struct coord_request *request)
{
        if (!request->status)
                self.left--;
        else if (request->status != -ESTALE)
                must(request->status, "set");
        count_next();
}

/* The number, and something behind it that makes the log grow. */
static void on_counter_read(struct coord_request *request)
{
        must(request->status, "get");
        int at = snprintf(self.text, sizeof(self.text), "%u ", (unsigned)strtoul(self.get.data.data, NULL, 10) + 1);
        memset(self.text + at, '.', sizeof(self.text) - (size_t)at);
        self.set = (struct coord_set){ .request.done = on_counted,
                .path = "counter",
                .data = { self.text, sizeof(self.text) },
                .version = self.get.stat.version };
        coord_set(self.coord, &self.set);
}

static void count_next(void)
{
        if (!self.left)
                _exit(0);
        self.get = (struct coord_get){ .request.done = on_counter_read, .path = "counter" };
        coord_get(self.coord, &self.get);
}

static void on_look(void *nobody)
{
        (void)nobody;
        if (self.is_counter)
                count_next();
        else
                make_member();
}

static const struct coord_events events = { .look = on_look };

static void on_opened(struct coord_request *request)
{
        must(request->status, request->error.text);
        self.coord = self.open.coord;
}

void child_main(int argc, char **argv)
{
        if (argc != 6 || strcmp(argv[1], "--child") != 0)
                return;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        self.is_counter = !strcmp(argv[2], "count");
        self.argument = argv[3];
        self.left = self.is_counter ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
        self.open = (struct coord_open){ .request.done = on_opened,
                .options = {
                        .url = argv[4], .app = "test", .session_ms = strtoull(argv[5], NULL, 10), .events = &events } };
        (void)uv_loop_init(&self.loop);
        coord_open(&self.loop, &self.open);
        (void)uv_run(&self.loop, UV_RUN_DEFAULT);
        _exit(1);
}

/* --- the test's side --------------------------------------------------------------------------------------------- */

pid_t child_start(struct world *w, const char *what, const char *argument, uint64_t session_ms)
{
        struct coord_options options = { 0 };
        char number[24];
        w->driver->options(w->place, &options);
        (void)snprintf(number, sizeof(number), "%" PRIu64, session_ms ? session_ms : w->driver->session_ms);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid)
                return pid;
        (void)execl("/proc/self/exe", "child", "--child", what, argument, options.url, number, (char *)NULL);
        _exit(127);
}

void child_kill(pid_t pid, int signal)
{
        assert_int_equal(kill(pid, signal), 0);
}

int child_reap(pid_t pid)
{
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}
