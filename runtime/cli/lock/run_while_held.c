#include "cli/lock/run_while_held.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/lock/descendants.h"

#define EXIT_CANNOT_RUN 127
/* Between two looks at what is still there, and at what may not be killed. */
#define SWEEP_MS        5
#define SWEEP_SLOWLY_MS 500
#define FRONT_LOOKS     3 /* in a session's time */

static const int signal_numbers[HELD_SIGNALS] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP };

static void say(const struct held *held, const char *what)
{
        (void)fprintf(stderr, "quiver %s %s: %s\n", held->tree.command, held->name, what);
}

/* Each step, for who wants to know. */
__attribute__((format(printf, 2, 3))) static void tell(const struct held *held, const char *format, ...)
{
        char text[512];
        va_list args;
        if (!held->is_verbose)
                return;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        say(held, text);
}

static void finish(struct held *held, int code)
{
        held->is_over = true;
        held->code = code;
}

/* --- the command ------------------------------------------------------------------------------------------------- */

/* In the new process.  A group of its own, so that it can be stopped with what it starts, in front of the terminal if
 * we were; and gone when we are. */
static void become_command(const struct held *held, pid_t parent)
{
        sigset_t none;
        (void)setpgid(0, 0);
        (void)signal(SIGTTOU, SIG_IGN);
        if (tcgetpgrp(STDIN_FILENO) == held->front.group)
                (void)tcsetpgrp(STDIN_FILENO, getpid());
        (void)signal(SIGTTOU, SIG_DFL);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
                (void)execvp(held->argv[0], held->argv);
        (void)fprintf(stderr, "quiver %s %s: cannot run %s: %s\n", held->tree.command, held->name, held->argv[0],
                strerror(errno));
        _exit(EXIT_CANNOT_RUN);
}

static void start_command(struct held *held)
{
        char token[24];
        pid_t parent = getpid();
        (void)snprintf(token, sizeof(token), "%" PRIu64, held->token);
        (void)setenv("QUIVER_TOKEN", token, 1);
        (void)setenv(held->is_election ? "QUIVER_ELECTION" : "QUIVER_LOCK", held->name, 1);
        pid_t pid = fork();
        if (pid == 0)
                become_command(held, parent);
        if (pid < 0) {
                say(held, strerror(errno));
                finish(held, EXIT_FAILED);
                return;
        }
        (void)setpgid(pid, pid); /* whoever of the two is first */
        held->pid = held->group = pid;
        tell(held, "%s runs as process %d", held->argv[0], (int)pid);
}

/* It, or what it has started. */
static bool is_running(const struct held *held)
{
        return held->pid || held->is_sweeping;
}

static void on_kill_timer(uv_timer_t *timer)
{
        const struct held *held = timer->data;
        if (held->pid)
                (void)kill(-held->pid, SIGKILL);
}

static void stop_command(struct held *held, int signal_number)
{
        if (!held->pid)
                return;
        (void)kill(-held->pid, signal_number);
        (void)kill(-held->pid, SIGCONT);
        if (!uv_is_active((uv_handle_t *)&held->kill_timer))
                (void)uv_timer_start(&held->kill_timer, on_kill_timer, held->grace_ms, 0);
}

/* Leadership that was given up because of the front is only left once the command is gone. */
static void step_down(struct held *held)
{
        if (!held->is_stepping_down)
                return;
        held->is_stepping_down = false;
        (void)queue_leave(&held->queue);
        if (!held->is_front_stopped)
                queue_enter(&held->queue);
}

/* Nothing that it has started is left. */
static void conclude(struct held *held)
{
        int status = held->status;
        held->is_sweeping = false;
        (void)uv_timer_stop(&held->sweep_timer);
        /* One that had to be stopped did not end in peace, whatever it says. */
        if (held->is_front_gone || (held->was_lost && !held->is_election))
                finish(held, EXIT_FAILED);
        else if (!held->was_lost)
                finish(held, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        else
                step_down(held);
        held->was_lost = false;
        /* Elected again while the last one was still ending. */
        if (held->is_held && !held->is_over)
                start_command(held);
}

static void sweep(struct held *held);

static void on_sweep_timer(uv_timer_t *timer)
{
        sweep(timer->data);
}

static void reap(struct held *held)
{
        pid_t was = held->pid;
        bool is_none = descendants_reap(&held->pid, &held->status);
        if (was && !held->pid) {
                (void)uv_timer_stop(&held->kill_timer);
                if (tcgetpgrp(STDIN_FILENO) == held->group)
                        (void)tcsetpgrp(STDIN_FILENO, held->front.group);
                held->is_sweeping = true;
        }
        if (!held->is_sweeping || held->pid)
                return;
        if (is_none)
                conclude(held);
        else if (!uv_is_active((uv_handle_t *)&held->sweep_timer))
                sweep(held);
}

/* What it has started has no lock either, wherever it is by now. */
static void sweep(struct held *held)
{
        pid_t immortal = descendants_kill();
        if (immortal && !held->has_immortal) {
                (void)fprintf(stderr, "quiver %s %s: process %d may not be killed; the lock is kept until it ends\n",
                        held->tree.command, held->name, (int)immortal);
                held->has_immortal = true;
        }
        (void)uv_timer_start(&held->sweep_timer, on_sweep_timer, immortal ? SWEEP_SLOWLY_MS : SWEEP_MS, 0);
        reap(held);
}

/* --- holding ----------------------------------------------------------------------------------------------------- */

static void on_had(void *self, uint64_t token)
{
        struct held *held = self;
        if (held->is_over)
                return;
        held->token = token;
        held->is_held = true;
        (void)uv_timer_stop(&held->wait_timer);
        tell(held, "%s after %" PRIu64 " ms, token %" PRIu64, held->is_election ? "leads" : "had",
                clock_boot_ms() - held->asked_ms, token);
        /* One that was stopped and is not gone yet is waited for. */
        if (!is_running(held))
                start_command(held);
}

static void on_lost(void *self)
{
        struct held *held = self;
        held->is_held = false;
        say(held, held->is_election ? "no longer the leader; the command is stopped"
                                    : "the lock was lost; the command is stopped");
        held->was_lost = is_running(held);
        stop_command(held, SIGTERM);
        if (!is_running(held) && !held->is_election)
                finish(held, EXIT_FAILED);
}

static void on_left(void *self)
{
        struct held *held = self;
        held->has_left = true;
        tell(held, "given back");
}

/* Somebody wants another to lead.  It stays ours until the command is gone. */
static void on_asked(void *self)
{
        struct held *held = self;
        if (!held->is_held || held->is_stepping_down)
                return;
        say(held, "asked to resign; the command is stopped");
        held->is_held = false;
        held->is_stepping_down = true;
        held->was_lost = is_running(held);
        stop_command(held, SIGTERM);
        if (!is_running(held))
                step_down(held);
}

static void on_retry_timer(uv_timer_t *timer)
{
        struct held *held = timer->data;
        if (!held->is_over)
                lock_try(&held->lock);
}

/* A random pause up to a limit that doubles, so that those who failed together do not come back together. */
static void try_later(struct held *held)
{
        uint64_t limit_ms = held->backoff_max_ms;
        uint64_t random = 0;
        if (held->tries < 32 && held->backoff_ms << held->tries < limit_ms)
                limit_ms = held->backoff_ms << held->tries;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
                abort();
        held->tries++;
        held->retries -= held->retries != HELD_FOREVER;
        uint64_t pause_ms = random % (limit_ms + 1);
        tell(held, "somebody else has it; try %" PRIu32 " follows after %" PRIu64 " ms", held->tries + 1, pause_ms);
        (void)uv_timer_start(&held->retry_timer, on_retry_timer, pause_ms, 0);
}

static void on_busy(void *self)
{
        struct held *held = self;
        if (held->has_retries && held->retries) {
                try_later(held);
                return;
        }
        say(held, "somebody else has it");
        finish(held, held->busy_code);
}

static void on_failed(void *self, int status, const char *text)
{
        struct held *held = self;
        say(held, text);
        if (!is_running(held))
                finish(held, status == -EACCES ? EXIT_UNREACHABLE : EXIT_FAILED);
}

static void on_waited(uv_timer_t *timer)
{
        struct held *held = timer->data;
        if (held->is_held || is_running(held))
                return;
        if (!held->has_session) {
                say(held, "the coordination does not answer");
                finish(held, EXIT_UNREACHABLE);
        } else if (!held->is_try) {
                say(held, "not had in time");
                finish(held, held->busy_code);
        }
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct held *held = self;
        held->has_session = state == COORD_ALIVE;
        cli_tree_answers(&held->tree, held->has_session);
        if (!held->is_open)
                return; /* the recipe is told when it is there */
        if (held->is_election)
                queue_session(&held->queue, state, session);
        else
                lock_session(&held->lock, state, session);
}

static void on_changed(void *self, const char *path)
{
        struct held *held = self;
        if (held->is_open && held->is_election)
                queue_changed(&held->queue, path);
        else if (held->is_open)
                lock_changed(&held->lock, path);
}

static void on_look(void *self)
{
        struct held *held = self;
        if (held->is_open && held->is_election)
                queue_look(&held->queue);
        else if (held->is_open)
                lock_look(&held->lock);
}

static void on_signal(uv_signal_t *signal, int number)
{
        struct held *held = signal->data;
        if (number == SIGCHLD) {
                reap(held);
                return;
        }
        if (!is_running(held)) {
                finish(held, 128 + number);
                return;
        }
        /* Whoever is told to end does not run again. */
        held->was_lost &= !held->is_election;
        stop_command(held, number);
}

/* --- the front --------------------------------------------------------------------------------------------------- */

/* It was killed.  There is nobody to be patient for. */
static void on_front_gone(uv_poll_t *poll, int status, int events)
{
        struct held *held = poll->data;
        (void)status;
        (void)events;
        (void)uv_poll_stop(poll);
        held->is_front_gone = true;
        if (is_running(held))
                sweep(held);
        else
                finish(held, EXIT_FAILED);
}

/* One that was stopped for a session's time holds nothing any more, as a session whose process hangs; here the command
 * is ended first. */
static void on_front_timer(uv_timer_t *timer)
{
        struct held *held = timer->data;
        bool was_stopped = held->is_front_stopped;
        held->front_stops = front_is_stopped(&held->front) ? held->front_stops + 1 : 0;
        held->is_front_stopped = held->front_stops > FRONT_LOOKS;
        if (held->is_front_stopped && held->is_held) {
                held->is_stepping_down = held->is_election;
                on_lost(held);
                if (!is_running(held))
                        step_down(held);
        } else if (was_stopped && !held->is_front_stopped && held->is_election && !held->is_stepping_down &&
                   !held->is_over) {
                queue_enter(&held->queue);
        }
}

/* --- from start to end ------------------------------------------------------------------------------------------- */

static void nonce_text(char text[33])
{
        uint8_t nonce[16];
        if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
                abort();
        (void)units_hex(text, nonce, sizeof(nonce));
}

/* What the node says to people who look.  Of the command only its name: its arguments may be secrets. */
static void say_who(const struct held *held, char says[QUEUE_SAYS_MAX])
{
        char machine[65] = "";
        if (gethostname(machine, sizeof(machine) - 1) < 0)
                machine[0] = 0;
        (void)snprintf(says, QUEUE_SAYS_MAX, "machine=%s pid=%d since_ms=%" PRIu64 " command=%.255s\n", machine,
                (int)getpid(), clock_wall_ms(), held->argv[0]);
}

static void start_recipe(struct held *held)
{
        char nonce[33], path[COORD_PATH_MAX];
        struct coord_info info;
        nonce_text(nonce);
        if (held->is_election) {
                struct queue_events events = { .front = on_had,
                        .lost = on_lost,
                        .left = on_left,
                        .asked = on_asked,
                        .failed = on_failed,
                        .self = held };
                (void)snprintf(path, sizeof(path), "elections/%.255s", held->name);
                queue_init(&held->queue, held->tree.coord, path, nonce, &events);
                held->queue.removes_empty = true;
                say_who(held, held->queue.says);
                queue_enter(&held->queue);
        } else {
                struct lock_events events = { .acquired = on_had,
                        .busy = on_busy,
                        .lost = on_lost,
                        .released = on_left,
                        .failed = on_failed,
                        .self = held };
                lock_init(&held->lock, held->tree.coord, held->name, nonce, &events);
                say_who(held, held->lock.queue.says);
                lock_set_limit(&held->lock, held->limit);
                if (held->is_try || held->has_retries)
                        lock_try(&held->lock);
                else
                        lock_acquire(&held->lock);
        }
        held->is_open = true;
        held->asked_ms = clock_boot_ms();
        coord_info(held->tree.coord, &info);
        on_session(held, info.state, info.session);
        uint64_t wait_ms = held->is_try ? info.session_ms : held->wait_ms;
        if (wait_ms)
                (void)uv_timer_start(&held->wait_timer, on_waited, wait_ms, 0);
}

static void start_handles(struct held *held)
{
        uv_loop_t *loop = &held->tree.loop;
        uv_timer_t *timers[] = { &held->wait_timer, &held->kill_timer, &held->sweep_timer, &held->front_timer,
                &held->retry_timer };
        for (unsigned i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
                (void)uv_timer_init(loop, timers[i]);
                timers[i]->data = held;
        }
        for (unsigned i = 0; i < HELD_SIGNALS; i++) {
                (void)uv_signal_init(loop, &held->signals[i]);
                held->signals[i].data = held;
                (void)uv_signal_start(&held->signals[i], on_signal, signal_numbers[i]);
        }
        (void)signal(SIGTTOU, SIG_IGN);
        (void)uv_poll_init(loop, &held->front_poll, held->front.fd);
        held->front_poll.data = held;
        (void)uv_poll_start(&held->front_poll, UV_READABLE | UV_DISCONNECT, on_front_gone);
        struct coord_info info;
        coord_info(held->tree.coord, &info);
        uint64_t every_ms = info.session_ms / FRONT_LOOKS;
        (void)uv_timer_start(&held->front_timer, on_front_timer, every_ms, every_ms);
        front_unblock();
}

static void close_handles(struct held *held)
{
        uv_close((uv_handle_t *)&held->wait_timer, NULL);
        uv_close((uv_handle_t *)&held->kill_timer, NULL);
        uv_close((uv_handle_t *)&held->sweep_timer, NULL);
        uv_close((uv_handle_t *)&held->front_timer, NULL);
        uv_close((uv_handle_t *)&held->retry_timer, NULL);
        uv_close((uv_handle_t *)&held->front_poll, NULL);
        for (unsigned i = 0; i < HELD_SIGNALS; i++)
                uv_close((uv_handle_t *)&held->signals[i], NULL);
}

static void on_left_in_time(uv_timer_t *timer)
{
        ((struct held *)timer->data)->has_left = true;
}

/* Out of the queue, and its node with us if nobody else is in it; the end of the session would leave that. */
static void leave(struct held *held)
{
        struct coord_info info;
        coord_info(held->tree.coord, &info);
        held->has_left =
                !held->has_session || !(held->is_election ? queue_leave(&held->queue) : lock_release(&held->lock));
        (void)uv_timer_start(&held->wait_timer, on_left_in_time, info.session_ms, 0);
        while (!held->has_left)
                (void)uv_run(&held->tree.loop, UV_RUN_ONCE);
}

static void take_settings(struct held *held)
{
        const struct locks_config *settings = &held->tree.config.locks;
        if (!held->wait_ms && !held->is_try)
                held->wait_ms = settings->wait_ms;
        if (held->grace_ms == HELD_UNSET)
                held->grace_ms = settings->grace_ms;
        if (!held->backoff_ms) {
                held->backoff_ms = settings->backoff_ms;
                held->backoff_max_ms = settings->backoff_max_ms;
        }
}

int held_run(struct held *held, const char *command, const char *given_config)
{
        struct coord_events events = { on_session, on_changed, on_look, held };
        int code = EXIT_FAILED;
        if (!front_split(&held->front, command, &code))
                return code;
        code = cli_tree_open_for(&held->tree, command, given_config, held->ttl_ms, &events);
        if (code != EXIT_DONE)
                return code;
        take_settings(held);
        start_handles(held);
        start_recipe(held);
        while (!held->is_over)
                (void)uv_run(&held->tree.loop, UV_RUN_ONCE);
        leave(held);
        close_handles(held);
        cli_tree_close(&held->tree);
        return held->code;
}
