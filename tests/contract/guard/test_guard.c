/* A guard gives back what its dead host had, and not before the runners are gone.  The real guard, on a real store; the
 * host is this test, which dies by closing the socket. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/stray_mark.h"
#include "guard/guard.h"
#include "harness.h"
#include "ring/leases.h"
#include "servers.h"

const struct contract_driver *driver = &sqlite_contract;

#define NOBODY 65534

struct scene {
        struct world *w;
        struct owner host;
        struct leases leases;
        int orders;
        pid_t guard;
        pid_t runner;
};

static void give(struct scene *s, struct buffer *order, int fd)
{
        _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
        struct iovec part = { order->data, order->size };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        if (fd >= 0) {
                message.msg_control = control;
                message.msg_controllen = sizeof(control);
                struct cmsghdr *header = CMSG_FIRSTHDR(&message);
                header->cmsg_level = SOL_SOCKET;
                header->cmsg_type = SCM_RIGHTS;
                header->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(header), &fd, sizeof(int));
        }
        assert_true(sendmsg(s->orders, &message, 0) > 0);
        buffer_free(order);
        *order = (struct buffer){ 0 };
}

/* `is_weak`: as a user who may not kill what we start. */
static void start_guard(struct scene *s, bool is_weak)
{
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        s->guard = fork();
        assert_true(s->guard >= 0);
        if (s->guard == 0) {
                char *words[] = { "guard", "0", "-", "-", NULL };
                int leases = fcntl(s->leases.fd, F_DUPFD, 100);
                (void)close(ends[0]);
                (void)dup2(ends[1], GUARD_FD_ORDERS);
                (void)dup2(leases, GUARD_FD_LEASES);
                if (is_weak && setresuid(NOBODY, NOBODY, NOBODY) < 0)
                        _exit(9);
                _exit(cmd_guard(4, words));
        }
        (void)close(ends[1]);
        s->orders = ends[0];
        struct store_options options = { 0 };
        driver->options(s->w->place, &options);
        struct guard_start start = { .ttl_ms = 60000,
                .leases = 1,
                .app = "test",
                .store_url = options.url,
                .store_tls = options.tls,
                .coord_url = strncmp(options.url, "redis", 5) ? "" : "redis" };
        memcpy(start.nonce, s->host.lease.nonce, sizeof(start.nonce));
        struct buffer order = { 0 };
        order_put_start(&order, &start);
        give(s, &order, -1);
        int pidfd = pidfd_open(s->runner, 0);
        order_put_runners(&order, &s->runner, 1);
        give(s, &order, pidfd);
        (void)close(pidfd);
}

static void open_scene(struct scene *s, void **state, bool is_weak)
{
        *s = (struct scene){ .w = *state, .orders = -1 };
        s->host = own(s->w, 0, 5, 1);
        assert_int_equal(leases_create(&s->leases, 1), 0);
        leases_set(&s->leases, 0, 5, clock_boot_ns() + 60 * NS_PER_S);
        s->runner = fork();
        if (s->runner == 0) {
                (void)setpgid(0, 0);
                for (;;)
                        (void)pause();
        }
        start_guard(s, is_weak);
}

/* Another host asks. */
static enum store_grant ask(struct scene *s)
{
        struct owner other = owner_of(0, 9, 9);
        assert_int_equal(acquire(s->w, &other), 0);
        s->host.granted = other.granted;
        return other.granted.grant;
}

static void close_scene(struct scene *s)
{
        (void)waitpid(s->guard, NULL, 0);
        leases_free(&s->leases);
}

static void a_dead_hosts_leases_are_given_back(void **state)
{
        struct scene s;
        int status;
        open_scene(&s, state, false);
        assert_int_equal(ask(&s), STORE_BUSY);
        (void)close(s.orders);
        assert_int_equal(waitpid(s.guard, &status, 0), s.guard);
        assert_int_equal(waitpid(s.runner, &status, 0), s.runner);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(ask(&s), STORE_GRANTED);
        /* The next owner knows that it recovers. */
        assert_true(s.host.granted.is_recovery);
        leases_free(&s.leases);
}

/* It was killed between asking and hearing the answer. */
static void a_lease_that_may_have_been_granted_is_given_back(void **state)
{
        struct scene s;
        open_scene(&s, state, false);
        leases_set(&s.leases, 0, 5, LEASES_ASKED);
        assert_false(leases_allow(&s.leases, 0, 5, clock_boot_ns()));
        assert_int_equal(ask(&s), STORE_BUSY);
        (void)close(s.orders);
        close_scene(&s);
        (void)waitpid(s.runner, NULL, 0);
        assert_int_equal(ask(&s), STORE_GRANTED);
}

static void a_dismissed_guard_gives_nothing_back(void **state)
{
        struct scene s;
        struct buffer order = { 0 };
        open_scene(&s, state, false);
        order_put_bye(&order);
        give(&s, &order, -1);
        (void)close(s.orders);
        close_scene(&s);
        assert_int_equal(ask(&s), STORE_BUSY);
        assert_int_equal(kill(s.runner, SIGKILL), 0);
        (void)waitpid(s.runner, NULL, 0);
}

static void a_reaped_runner_is_nobodys_business(void **state)
{
        struct scene s;
        struct buffer order = { 0 };
        open_scene(&s, state, false);
        order_put_reaped(&order, s.runner);
        give(&s, &order, -1);
        (void)close(s.orders);
        close_scene(&s);
        assert_int_equal(ask(&s), STORE_GRANTED);
        /* It was not killed: it is our own, as far as the guard knows. */
        assert_int_equal(kill(s.runner, SIGKILL), 0);
        int status;
        (void)waitpid(s.runner, &status, 0);
        assert_true(WIFSIGNALED(status));
}

/* One that the guard can not kill stands for one that the kernel does not let go of. */
static void nothing_is_given_back_while_a_runner_lives(void **state)
{
        struct scene s;
        struct store_options options = { 0 };
        if (getuid() != 0) {
                skip();
                return;
        }
        struct world *w = *state;
        driver->options(w->place, &options);
        char folder[256];
        (void)snprintf(folder, sizeof(folder), "%s", strchr(options.url, ':') + 1);
        *strrchr(folder, '/') = 0;
        char command[600];
        (void)snprintf(command, sizeof(command), "chmod -R a+rwX '%s'", folder);
        assert_int_equal(system(command), 0);
        open_scene(&s, state, true);
        int guard = pidfd_open(s.guard, 0);
        (void)close(s.orders);
        /* Long enough for a guard that does not wait: giving back takes it milliseconds. */
        struct pollfd ended = { .fd = guard, .events = POLLIN };
        assert_int_equal(poll(&ended, 1, 500), 0);
        assert_int_equal(ask(&s), STORE_BUSY);
        assert_int_equal(kill(s.runner, SIGKILL), 0);
        (void)waitpid(s.runner, NULL, 0);
        close_scene(&s);
        (void)close(guard);
        assert_int_equal(ask(&s), STORE_GRANTED);
}

/* A process that nothing connects with its runner but the variable that it has inherited. */
static pid_t leave_behind(const struct scene *s)
{
        char run[STRAY_RUN_MAX], mark[STRAY_MARK_MAX];
        int ends[2];
        stray_run(run, s->host.lease.nonce, sizeof(s->host.lease.nonce));
        stray_mark_put(mark, run, 1);
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
                char *words[] = { "sleep", "1000", NULL };
                char *variables[] = { mark, NULL };
                (void)setsid();
                (void)execve("/bin/sleep", words, variables);
                _exit(1);
        }
        (void)close(ends[1]);
        char byte;
        assert_int_equal(read(ends[0], &byte, 1), 0); /* it is another program now */
        (void)close(ends[0]);
        return pid;
}

static void what_a_runner_left_behind_is_gone_before_the_leases_are(void **state)
{
        struct scene s;
        int status;
        open_scene(&s, state, false);
        pid_t left = leave_behind(&s);
        (void)close(s.orders);
        close_scene(&s);
        (void)waitpid(s.runner, NULL, 0);
        /* Killed before the guard ended, so it is there to be reaped. */
        assert_int_equal(waitpid(left, &status, WNOHANG), left);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(ask(&s), STORE_GRANTED);
}

static void what_is_no_order_is_ignored(void **state)
{
        struct scene s;
        struct buffer order = { 0 };
        open_scene(&s, state, false);
        buffer_put_u32(&order, 77);
        give(&s, &order, -1);
        buffer_put_u32(&order, GUARD_RUNNERS);
        buffer_put_u32(&order, 3); /* and none attached */
        give(&s, &order, -1);
        buffer_put_u32(&order, GUARD_START);
        give(&s, &order, -1);
        (void)close(s.orders);
        close_scene(&s);
        (void)waitpid(s.runner, NULL, 0);
        assert_int_equal(ask(&s), STORE_GRANTED);
}

/* How many connections the server has ever taken, besides those of the test's own commands. */
static unsigned connections(void)
{
        static unsigned own;
        char text[32];
        server_info(redis_tls_server(), "total_connections_received", text, sizeof(text));
        return (unsigned)atoi(text) - ++own;
}

static bool is_connected(void *self)
{
        return connections() >= *(unsigned *)self;
}

/* Of handshakes, one for the store and one for the coordination, none is left to be made when the host dies. */
static void over_tls_a_guard_is_connected_before_its_host_dies(void **state)
{
        struct scene s;
        struct buffer order = { 0 };
        unsigned wanted = connections() + 2;
        open_scene(&s, state, false);
        order_put_session(&order, "1-0123456789abcdef0123456789abcdef");
        give(&s, &order, -1);
        assert_true(wait_until(is_connected, &wanted));
        (void)close(s.orders);
        close_scene(&s);
        (void)waitpid(s.runner, NULL, 0);
        assert_int_equal(connections(), wanted);
        assert_int_equal(ask(&s), STORE_GRANTED);
}

/* The server comes up only after that: the guard has gone on trying. */
static void over_tls_a_guard_waits_for_its_server(void **state)
{
        struct scene s;
        struct redis_server *server = (struct redis_server *)redis_tls_server();
        unsigned wanted = connections() + 2;
        open_scene(&s, state, false);
        assert_true(wait_until(is_connected, &wanted));
        (void)kill(server->pid, SIGSTOP);
        (void)close(s.orders);
        (void)waitpid(s.runner, NULL, 0);
        (void)kill(server->pid, SIGCONT);
        close_scene(&s);
        assert_int_equal(ask(&s), STORE_GRANTED);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_dead_hosts_leases_are_given_back),
                TEST(a_lease_that_may_have_been_granted_is_given_back),
                TEST(a_dismissed_guard_gives_nothing_back),
                TEST(a_reaped_runner_is_nobodys_business),
                TEST(nothing_is_given_back_while_a_runner_lives),
                TEST(what_a_runner_left_behind_is_gone_before_the_leases_are),
                TEST(what_is_no_order_is_ignored),
        };
        const struct CMUnitTest tls_tests[] = {
                TEST(a_dead_hosts_leases_are_given_back),
                TEST(a_dismissed_guard_gives_nothing_back),
                TEST(over_tls_a_guard_is_connected_before_its_host_dies),
                TEST(over_tls_a_guard_waits_for_its_server),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        driver = redis_tls_contract();
        return failed + cmocka_run_group_tests(tls_tests, NULL, NULL);
}
