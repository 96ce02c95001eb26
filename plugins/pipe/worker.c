#include "worker.h"

#include <inttypes.h>
#include <poll.h>
#include <sys/ioctl.h>

#define READ_SIZE        65536u
#define START_TIMEOUT_MS 8000 /* below the 10 s that a host waits for init */
#define KILL_AFTER_MS    2000 /* below the 5 s of a handler's grace */
#define MAX_FRAME        (16u << 20)

/* A worker that dies during tasks is replaced at once so many times in a row.  After that, and if it does not start,
 * there is a pause before each start, which doubles. */
#define FAILURES_FREE  2
#define BACKOFF_MS     100
#define BACKOFF_MAX_MS 10000

#define DYING_MS 200
#define TICK_MS  50

/* --- settings ---------------------------------------------------------------------------------------------------- */

int worker_open(struct worker *w, const struct qv_host *host)
{
        *w = (struct worker){ .host = host, .child = CHILD_NONE };
        if (command_read(&w->command, host) < 0)
                return -1;
        if (command_read_ms(host, "start_timeout", START_TIMEOUT_MS, COMMAND_MS_MAX, &w->start_timeout_ms) < 0 ||
                command_read_ms(host, "kill_after", KILL_AFTER_MS, COMMAND_MS_MAX, &w->kill_after_ms) < 0 ||
                command_read_bytes(host, "max_frame", MAX_FRAME, COMMAND_BYTES_MAX, &w->max_frame) < 0) {
                command_free(&w->command);
                return -1;
        }
        return 0;
}

/* --- end --------------------------------------------------------------------------------------------------------- */

static int end(struct worker *w)
{
        if (w->child.err >= 0)
                (void)stderr_log_read(&w->err, w->child.err);
        stderr_log_end(&w->err);
        int status = child_end(&w->child, &w->guard);
        bytes_clear(&w->in);
        bytes_clear(&w->out);
        w->heard = w->sent = 0;
        return status;
}

void worker_replace(struct worker *w)
{
        (void)end(w);
}

static void put_off(struct worker *w, unsigned failures_free)
{
        w->failures++;
        if (w->failures <= failures_free)
                return;
        unsigned doublings = w->failures - failures_free - 1;
        uint64_t pause_ms = doublings > 6 ? BACKOFF_MAX_MS : (uint64_t)BACKOFF_MS << doublings;
        w->start_ms = now_ms() + pause_ms;
}

/* Ends the worker and sets w->why. */
static void give_up(struct worker *w, const char *breach)
{
        char tail[STDERR_TAIL_MAX + 2];
        char ended[64];
        const char *where = w->in.size > w->heard ? " in the middle of a frame" : "";
        /* The pipes of a dying process are closed shortly before it can be reaped. */
        bool is_dead = child_has_ended(&w->child, w->has_ended ? DYING_MS : 0);
        int status = end(w);
        const char *last_words = stderr_log_tail(&w->err, tail);
        if (!breach && *w->breach)
                breach = w->breach;
        if (breach)
                (void)snprintf(w->why, sizeof(w->why), "the worker %s%s", breach, last_words);
        else if (is_dead)
                (void)snprintf(w->why, sizeof(w->why), "the worker ended%s: %s%s", where,
                        child_status_text(status, ended, sizeof(ended)), last_words);
        else
                (void)snprintf(w->why, sizeof(w->why), "the worker closed its stdin or stdout%s%s", where, last_words);
}

void worker_fail(struct worker *w, const char *breach)
{
        give_up(w, breach);
        put_off(w, FAILURES_FREE);
}

void worker_praise(struct worker *w)
{
        w->failures = 0;
}

/* Reads and drops the worker's output, so that it does not block on a full pipe while it ends. */
static void hear_out(struct worker *w, uint64_t until_ms)
{
        for (uint64_t now; (now = now_ms()) < until_ms && !child_has_ended(&w->child, 0);) {
                struct pollfd polls[] = { { .fd = w->child.pidfd, .events = POLLIN },
                        { .fd = w->child.out, .events = POLLIN }, { .fd = w->child.err, .events = POLLIN } };
                (void)poll(polls, 3, (int)(until_ms - now));
                w->in.size = 0;
                if (polls[1].revents && bytes_read(&w->in, w->child.out, READ_SIZE) == 0)
                        child_close_fd(&w->child.out);
                if (polls[2].revents && !stderr_log_read(&w->err, w->child.err))
                        child_close_fd(&w->child.err);
        }
}

void worker_close(struct worker *w)
{
        if (w->child.pid > 0) {
                child_close_fd(&w->child.in);
                hear_out(w, now_ms() + w->kill_after_ms);
                (void)end(w);
        }
        guard_close(&w->guard);
        command_free(&w->command);
        bytes_free(&w->in);
        bytes_free(&w->out);
}

/* --- frames ------------------------------------------------------------------------------------------------------ */

static void send_what_fits(struct worker *w)
{
        size_t before = w->sent;
        int r = child_write(&w->child, w->out.data, w->out.size, &w->sent);
        w->told += w->sent - before;
        if (r < 0) {
                w->has_ended = true;
        } else if (w->sent == w->out.size) {
                bytes_clear(&w->out);
                w->sent = 0;
        }
}

/* Reads until the pipe is empty, a frame may be complete, or it is certain that none will be. */
static void read_stdout(struct worker *w)
{
        long n;
        do
                n = bytes_read(&w->in, w->child.out, READ_SIZE);
        while (n > 0 && w->has_ended && w->in.size <= w->max_frame);
        if (n == 0 || (n < 0 && n != -EAGAIN)) {
                child_close_fd(&w->child.out);
                w->has_ended = true;
        }
}

/* Waits once for any event, then reads and writes what is possible. */
static void wait_and_read(struct worker *w, int wait_ms)
{
        struct pollfd polls[] = {
                { .fd = w->child.out, .events = POLLIN },
                { .fd = w->child.err, .events = POLLIN },
                { .fd = w->child.pidfd, .events = POLLIN },
                { .fd = w->sent < w->out.size ? w->child.in : -1, .events = POLLOUT },
        };
        if (poll(polls, 4, wait_ms) <= 0)
                return;
        /* The worker is dead: what it sent is in the pipe; only processes that it left behind could add more. */
        if (polls[2].revents)
                w->has_ended = true;
        if (polls[3].revents)
                send_what_fits(w);
        if (w->child.out >= 0 && (polls[0].revents || w->has_ended))
                read_stdout(w);
        /* After stdout: what the worker printed before it sent a frame is logged before that frame ends the task. */
        if (w->child.err >= 0 && (polls[0].revents || polls[1].revents) && !stderr_log_read(&w->err, w->child.err))
                child_close_fd(&w->child.err);
}

/* Quotes the beginning of what the worker printed, which helps to find the print() that caused it. */
static void note_rubbish(struct worker *w, const char *why)
{
        char glance[33];
        size_t size = w->in.size < sizeof(glance) - 1 ? w->in.size : sizeof(glance) - 1;
        for (size_t i = 0; i < size; i++)
                glance[i] = (char)(w->in.data[i] >= ' ' && w->in.data[i] < 0x7f ? w->in.data[i] : '.');
        glance[size] = 0;
        (void)snprintf(w->breach, sizeof(w->breach), "sent \"%s\", which is no frame: %s", glance, why);
}

static void log_frame(const struct worker *w, const struct frame *f)
{
        static const char *const levels[] = { "error", "warn", "info", "debug" };
        const char *level = frame_get(f, "level");
        int number = QV_LOG_INFO;
        for (int i = 0; level && i <= QV_LOG_DEBUG; i++)
                if (!strcmp(level, levels[i]))
                        number = i;
        qv_logf(w->host, number, "%.*s", f->body_size < QV_LOG_MAX ? (int)f->body_size : (int)QV_LOG_MAX, f->body);
}

/* The next frame that has already arrived. */
static enum worker_event take_frame(struct worker *w, struct frame *ret_frame)
{
        for (;;) {
                const char *why;
                bytes_drop(&w->in, w->heard);
                w->heard = 0;
                int r = frame_parse(ret_frame, &w->in, w->max_frame, &why);
                if (r < 0) {
                        note_rubbish(w, why);
                        return WORKER_FAILED;
                }
                if (r == 0)
                        return WORKER_NOTHING;
                w->heard = ret_frame->size;
                if (strcmp(ret_frame->kind, "log") != 0)
                        return WORKER_FRAME;
                log_frame(w, ret_frame);
        }
}

enum worker_event worker_next(struct worker *w, int wait_ms, struct frame *ret_frame)
{
        enum worker_event event = take_frame(w, ret_frame);
        if (event != WORKER_NOTHING)
                return event;
        if (w->out.size && !w->sent)
                send_what_fits(w);
        wait_and_read(w, wait_ms);
        event = take_frame(w, ret_frame);
        return event == WORKER_NOTHING && w->has_ended ? WORKER_FAILED : event;
}

bool worker_is_untouched(const struct worker *w)
{
        int unread;
        /* FIONREAD also works on the writing end, and the bytes stay in the pipe when the reader is gone. */
        return !*w->breach && ioctl(w->child.in, FIONREAD, &unread) == 0 && (size_t)unread == w->told;
}

/* --- start ------------------------------------------------------------------------------------------------------- */

/* Waits for the ready frame.  0, or -errno with the reason in w->breach; "" if the worker ended without an answer. */
static int greet(struct worker *w, const struct qv_task *task)
{
        uint64_t until_ms = now_ms() + w->start_timeout_ms;
        const char *breach = "did not say ready within start_timeout";
        struct frame frame;
        frame_put_hello(&w->out, w->host);
        while (now_ms() < until_ms) {
                enum worker_event event = worker_next(w, TICK_MS, &frame);
                if (event == WORKER_FAILED)
                        return -EPROTO;
                if (event == WORKER_FRAME) {
                        const char *protocol = frame_get(&frame, "protocol");
                        bool is_ready = strcmp(frame.kind, "ready") == 0;
                        if (is_ready && protocol && strcmp(protocol, FRAME_PROTOCOL) == 0)
                                return 0;
                        breach = is_ready ? "speaks another protocol than " FRAME_PROTOCOL
                                          : "did not begin with a ready frame";
                        break;
                }
                if (task && qv_stop(task)) {
                        (void)snprintf(w->breach, sizeof(w->breach), "was still starting when the task had to stop");
                        return -ECANCELED;
                }
        }
        (void)snprintf(w->breach, sizeof(w->breach), "%s", breach);
        return -EPROTO;
}

static int start(struct worker *w, const struct qv_task *task)
{
        stderr_log_begin(&w->err, w->host);
        w->has_ended = false;
        w->breach[0] = 0;
        int r = child_start(&w->child, &w->guard, &w->command);
        if (r < 0) {
                (void)snprintf(w->why, sizeof(w->why), "cannot start %s: %s", w->command.path, strerror(-r));
                return r;
        }
        r = greet(w, task);
        w->told = 0;
        if (r < 0)
                give_up(w, NULL);
        return r;
}

/* Whether the worker can take a task.  A worker may end between tasks, and one that sent a frame without a task is
 * replaced before it costs anything. */
static bool is_fit(struct worker *w)
{
        struct frame frame;
        if (w->child.pid <= 0)
                return false;
        enum worker_event event = worker_next(w, 0, &frame);
        if (event == WORKER_NOTHING) {
                w->err.tail_size = 0; /* drops the lines of the last task */
                w->told = 0;
                return true;
        }
        give_up(w, event == WORKER_FRAME ? "sent a frame while it had no task" : NULL);
        qv_logf(w->host, QV_LOG_INFO, "between tasks %s; starting another", w->why);
        return false;
}

int worker_start(struct worker *w, const struct qv_task *task)
{
        if (is_fit(w))
                return 0;
        if (now_ms() < w->start_ms)
                return -EAGAIN;
        int r = start(w, task);
        if (r < 0 && r != -ECANCELED)
                put_off(w, 0);
        return r;
}
