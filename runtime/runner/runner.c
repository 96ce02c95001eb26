/* runner.c: `quiver runner`: one handler's plugin in a process of its own.  Read this from the bottom up.
 *
 * A host starts it through /proc/self/exe as `quiver runner PARENT-PID` with the descriptors of ring/message.h.  There
 * are three kinds of threads: the main thread goes through the sequence in run(); one thread reads the control socket
 * and ends the runner when the host is gone, whatever the plugin is doing; and one thread per seat runs plugin code.
 *
 * The process always ends with _exit().  No plugin code runs after its last close(): destructors and exit handlers can
 * hang or crash, and the host waits for the end of the process. */
#include "runner/runner.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "runner/constructors.h"
#include "runner/fault.h"
#include "runner/init_repeat.h"
#include "runner/load.h"
#include "runner/output.h"
#include "runner/sandbox.h"
#include "runner/seat.h"
#include "runner/symbol.h"

#define SEAT_STACK_SIZE  ((size_t)1 << 20) /* counts towards the memory limit, so not the usual 8 MiB */
#define WATCH_STACK_SIZE ((size_t)64 << 10)
#define ARENAS_MAX       4 /* malloc arenas; one per seat would cost a small runner more memory than it gains */

static struct runner runner;
static int control_fd = RUNNER_FD_CONTROL;
static struct buffer start_bytes;  /* runner.start points into it */
static struct buffer notes;        /* for MESSAGE_READY */
static struct rehearsal rehearsal; /* for MESSAGE_READY */

/* How many seats are open and how many are closed again; `lock` protects all of it. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        uint32_t opened, closed;
        bool has_failed;
        struct error error;
} seats = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* --- messages ---------------------------------------------------------------------------------------------------- */

static _Noreturn void leave(int status)
{
        output_flush();
        _exit(status);
}

/* Ends the process if the message cannot be sent, because then the host is gone. */
static void send_message(const struct buffer *message)
{
        ssize_t n;
        do
                n = send(control_fd, message->data, message->size, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                leave(EXIT_FAILURE);
}

static _Noreturn void refuse(const struct error *error)
{
        struct buffer message = { 0 };
        message_put_refused(&message, error->text);
        send_message(&message);
        leave(EXIT_FAILURE);
}

static void say_ready(void)
{
        struct buffer unread = { 0 };
        struct buffer message = { 0 };
        settings_put_unread(&runner.settings, &unread);
        struct runner_ready ready = {
                .name = runner.plugin.name,
                .version = runner.plugin.version,
                .flags = runner.plugin.flags,
                .has_many = runner.plugin.handle_many != NULL,
                .unread = buffer_text(&unread),
                .notes = buffer_text(&notes),
                .rehearsal = rehearsal,
        };
        message_put_ready(&message, &ready);
        send_message(&message);
        buffer_free(&unread);
        buffer_free(&message);
}

/* --- seats ------------------------------------------------------------------------------------------------------- */

static void report(uint32_t *count, const struct error *failure)
{
        (void)pthread_mutex_lock(&seats.lock);
        if (failure && !seats.has_failed) {
                seats.has_failed = true;
                seats.error = *failure;
        }
        (*count)++;
        (void)pthread_cond_signal(&seats.changed);
        (void)pthread_mutex_unlock(&seats.lock);
}

/* Waits until `count` has reached the number of seats, or a seat has failed. */
static void wait_for(const uint32_t *count)
{
        (void)pthread_mutex_lock(&seats.lock);
        while (*count < runner.start.seats && !seats.has_failed)
                (void)pthread_cond_wait(&seats.changed, &seats.lock);
        (void)pthread_mutex_unlock(&seats.lock);
}

static void on_thread_ended(void *unused)
{
        (void)unused;
        fault_give_up("the handler ended its seat's thread (pthread_exit)");
}

static void *seat_thread(void *argument)
{
        uint32_t number = (uint32_t)(uintptr_t)argument;
        struct seat *seat = memory_zero(1, sizeof(*seat));
        struct error error;
        char name[16]; /* the kernel's limit on thread names */
        (void)snprintf(name, sizeof(name), "%.10s/%u", runner.start.handler, number);
        (void)prctl(PR_SET_NAME, name);

        pthread_cleanup_push(on_thread_ended, NULL);
        int r = number == 0 && runner.start.rehearsals ? init_repeat(&runner, &rehearsal, &error) : 0;
        if (r == 0)
                r = seat_open(seat, &runner, number, &error);
        report(&seats.opened, r < 0 ? &error : NULL);
        if (r == 0) {
                seat_serve(seat);
                seat_close(seat);
                report(&seats.closed, NULL);
        }
        /* Returning would run the plugin's thread-local destructors. */
        for (;;)
                (void)pause();
        pthread_cleanup_pop(0);
        return NULL;
}

static int start_thread(void *(*run)(void *), uintptr_t argument, size_t stack_size)
{
        pthread_attr_t attributes;
        pthread_t thread;
        (void)pthread_attr_init(&attributes);
        (void)pthread_attr_setstacksize(&attributes, stack_size);
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        int r = pthread_create(&thread, &attributes, run, (void *)argument);
        (void)pthread_attr_destroy(&attributes);
        return -r;
}

static int start_seats(struct error *error)
{
        for (uint32_t i = 0; i < runner.start.seats; i++) {
                int r = start_thread(seat_thread, i, SEAT_STACK_SIZE);
                if (r < 0)
                        return error_set(error, r, "plugin %s: cannot start seat %u of %u: %s", runner.start.label,
                                i + 1, runner.start.seats, strerror(-r));
        }
        return 0;
}

/* --- the control socket ------------------------------------------------------------------------------------------ */

/* After the start message the host sends only log levels.  End-of-file means that the host is gone. */
static void *watch_host(void *unused)
{
        (void)unused;
        uint8_t packet[64];
        sigset_t all;
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
        for (;;) {
                struct reader reader;
                enum message_kind kind;
                uint32_t level;
                ssize_t n = recv(control_fd, packet, sizeof(packet), 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        _exit(EXIT_FAILURE);
                if (message_open(&reader, packet, (size_t)n, &kind) == 0 && kind == MESSAGE_LEVEL &&
                        message_get_level(&reader, &level) == 0)
                        runner.logger.level_max = level;
        }
}

/* --- the sequence ------------------------------------------------------------------------------------------------ */

static int receive_start(struct error *error)
{
        const size_t room = (size_t)MESSAGE_MAX;
        enum message_kind kind;
        struct reader reader;
        ssize_t n;
        do
                n = recv(control_fd, buffer_reserve(&start_bytes, room), room, 0);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                leave(EXIT_FAILURE);
        start_bytes.size = (size_t)n;
        if (message_open(&reader, start_bytes.data, start_bytes.size, &kind) < 0 || kind != MESSAGE_START ||
                message_get_start(&reader, &runner.start) < 0)
                return error_set(error, -EBADMSG, "the start message cannot be read; is the host of another version?");
        return 0;
}

/* Maps the ring and the leases, and moves the descriptors that are still needed out of the plugin's way. */
static int attach(struct error *error)
{
        control_fd = sandbox_hide_fd(control_fd);
        int bell_fd = sandbox_hide_fd(RUNNER_FD_BELL);
        (void)sandbox_hide_fd(RUNNER_FD_ALIVE);
        int r = ring_attach(&runner.ring, RUNNER_FD_RING, bell_fd);
        if (r < 0)
                return error_set(error, r, "cannot map the ring: %s", strerror(-r));
        if (runner.start.seats < 1 || runner.start.seats > runner.ring.map.shape.seats)
                return error_set(error, -EINVAL, "the host asks for %u seats, its ring has %u", runner.start.seats,
                        runner.ring.map.shape.seats);
        r = leases_attach(&runner.leases, RUNNER_FD_LEASES, runner.start.leases);
        if (r < 0)
                return error_set(error, r, "cannot map the leases: %s", strerror(-r));
        fault_watch_threads(&runner.ring.map.header->thread_fault);
        (void)close(RUNNER_FD_RING);
        (void)close(RUNNER_FD_LEASES);
        logger_init(&runner.logger, control_fd, runner.start.log_level, runner.start.log_rate);
        settings_init(&runner.settings, runner.start.settings, runner.start.settings_count);
        return 0;
}

static void take_name(void)
{
        char name[16];
        (void)snprintf(name, sizeof(name), "qv:%s", runner.start.handler);
        (void)prctl(PR_SET_NAME, name);
}

/* The user that the runner becomes cannot enter the folder of plugin copies.  So the copy is opened before, and loaded
 * through its descriptor, which stays open for the symbols of a backtrace. */
static int hold_plugin(struct error *error)
{
        static char path[32];
        if (!*runner.start.user)
                return 0;
        int fd = open(runner.start.plugin, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return error_set(error, -errno, "plugin %s: cannot open its private copy %s: %s", runner.start.label,
                        runner.start.plugin, strerror(errno));
        fd = sandbox_hide_fd(fd);
        symbol_hold_file(fd);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        runner.start.plugin = path;
        return 0;
}

static int give_up_rights(pid_t parent, struct error *error)
{
        bool has_network_left = false;
        int r = hold_plugin(error);
        if (!r)
                r = sandbox_join(&runner.start, error);
        if (!r)
                r = sandbox_limit(&runner.start, &notes, error);
        sandbox_clean_environment();
        if (!r)
                r = sandbox_leave_network(&runner.start, &has_network_left, error);
        if (!r)
                r = sandbox_become(runner.start.user, error);
        /* A change of user takes core dumps away. */
        if (!r && runner.start.core_max)
                (void)prctl(PR_SET_DUMPABLE, 1);
        /* A change of user clears the parent-death signal. */
        if (!r && sandbox_tie_to_parent(parent) < 0)
                leave(EXIT_FAILURE);
        if (!r)
                r = sandbox_give_up_privileges(error);
        return r ? r : sandbox_confine(&runner.start, has_network_left, &notes, error);
}

/* A crash in the plugin's constructors or in load() happens on this thread, before any task runs: seat 0's fault record
 * takes it. */
static int load(struct error *error)
{
        int r = fault_begin(&runner.ring.map.seats[0], 0);
        if (r < 0)
                return error_set(error, r, "plugin %s: no memory for a signal stack", runner.start.label);
        if (runner.start.rehearsals)
                constructors_begin();
        r = load_plugin(runner.start.plugin, runner.start.label, runner.start.seats, &runner.plugin, error);
        if (runner.start.rehearsals)
                constructors_end(&rehearsal);
        if (r == 0)
                r = seat_load(&runner, error);
        fault_end();
        fault_catch_exit();
        return r;
}

/* No task is left, so a crash here costs nobody anything; seat 0's fault record takes it. */
static void unload(void)
{
        if (fault_begin(&runner.ring.map.seats[0], 0) < 0)
                return;
        seat_unload(&runner);
        fault_end();
}

/* With AddressSanitizer loaded: reports leaks on standard error, as it would at exit(). */
static bool has_leaks(void)
{
        int (*check)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "__lsan_do_recoverable_leak_check");
        return check && check();
}

static _Noreturn void run(pid_t parent)
{
        struct error error;
        if (sandbox_tie_to_parent(parent) < 0)
                leave(EXIT_FAILURE);
        sandbox_leave_terminal();
        sandbox_close_strangers();
        if (receive_start(&error) < 0)
                refuse(&error);
        take_name();
        output_init();
        (void)mallopt(M_ARENA_MAX, ARENAS_MAX);
        fault_install();
        if (attach(&error) < 0 || give_up_rights(parent, &error) < 0)
                refuse(&error);
        if (start_thread(watch_host, 0, WATCH_STACK_SIZE) < 0)
                leave(EXIT_FAILURE);
        if (load(&error) < 0 || start_seats(&error) < 0)
                refuse(&error);
        wait_for(&seats.opened);
        fault_catch_exit();
        if (seats.has_failed)
                refuse(&seats.error);
        say_ready();
        wait_for(&seats.closed);
        unload();
        leave(has_leaks() ? EXIT_FAILURE : EXIT_SUCCESS);
}

static bool is_control_socket(int fd)
{
        int type = 0;
        socklen_t size = sizeof(type);
        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

int cmd_runner(int argc, char **argv)
{
        long parent = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
        if (parent <= 0 || parent > INT_MAX || !is_control_socket(RUNNER_FD_CONTROL)) {
                (void)fprintf(stderr, "quiver runner: a host starts this, never a person; try: quiver try PLUGIN.so\n");
                return 2;
        }
        run((pid_t)parent);
}
