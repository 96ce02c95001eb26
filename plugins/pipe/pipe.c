/* pipe: passes tasks to a worker process in any language, which stays between tasks.  README.md has the settings,
 * sdk/pipe/README.md the protocol and workers to start from.
 *
 *         config = { command = ["/usr/bin/python3", "/srv/resize.py"]; };
 *
 * Each seat has a worker of its own.  A fault of the worker costs the task that it was doing, and the worker. */
#include <inttypes.h>

#include "worker.h"

#define UNSEEN_MAX 3 /* the most workers in a row that may end before they have read the task */

/* The result of handling a frame: one of these, or an outcome. */
enum { HEARD = -1, BREACH = -2 };

/* The worker ended before it had read the task, so the task can go to another worker at no cost. */
#define UNSEEN (-3)

/* A task that a worker is doing. */
struct call {
        struct worker *worker;
        const struct qv_task *task;
        struct frame frame; /* the frame that is being handled */
        char refused[128];  /* the first refusal of a service; "": none */
        const char *breach;
};

/* --- frames that call a service ----------------------------------------------------------------------------------- */

/* The protocol cannot report a refusal to the worker, which may have continued: the task cannot be done. */
static int check(struct call *call, int32_t r)
{
        if (r < 0 && !call->refused[0])
                (void)snprintf(call->refused, sizeof(call->refused), "%s of %zu bytes refused: %s", call->frame.kind,
                        call->frame.body_size, strerror(-r));
        return HEARD;
}

static int breach(struct call *call, const char *what)
{
        call->breach = what;
        return BREACH;
}

static int on_result(struct call *call)
{
        const struct qv_host *host = call->task->host;
        return check(call, host->result(host, call->task, call->frame.body, call->frame.body_size));
}

static int on_checkpoint(struct call *call)
{
        const struct qv_host *host = call->task->host;
        return check(call, host->checkpoint(host, call->task, call->frame.body, call->frame.body_size));
}

static int on_progress(struct call *call)
{
        uint64_t done;
        uint64_t total;
        if (frame_get_number(&call->frame, "done", 0, &done) < 0 ||
                frame_get_number(&call->frame, "total", 0, &total) < 0)
                return breach(call, "sent a progress frame with a field that is no number");
        (void)call->task->host->progress(call->task->host, call->task, done, total);
        return HEARD;
}

static int read_lane(const char *text, int32_t *ret)
{
        static const char *const lanes[] = { "low", "normal", "high" };
        for (int32_t i = 0; i < 3; i++) {
                if (!strcmp(text, lanes[i])) {
                        *ret = i - 1;
                        return 0;
                }
        }
        return -EINVAL;
}

static int on_submit(struct call *call)
{
        struct qv_submit submit = QV_SUBMIT_INIT;
        struct frame_headers headers;
        const struct frame *f = &call->frame;
        const char *lane = frame_get(f, "lane");
        const char *merge = frame_get(f, "merge");
        if (frame_get_number(f, "debounce_ms", 0, &submit.debounce_ms) < 0)
                return breach(call, "sent a submit frame whose debounce_ms is no number");
        if (merge && strcmp(merge, "1") != 0 && strcmp(merge, "0") != 0)
                return breach(call, "sent a submit frame whose merge is not 1 or 0");
        submit.merge = merge && *merge == '1';
        if (frame_get_number(f, "delay_ms", 0, &submit.delay_ms) < 0)
                return breach(call, "sent a submit frame whose delay_ms is no number");
        if (lane && read_lane(lane, &submit.lane) < 0)
                return breach(call, "sent a submit frame whose lane is not low, normal or high");
        submit.handler = frame_get(f, "handler");
        submit.key = frame_get(f, "key");
        submit.payload = f->body;
        submit.payload_size = f->body_size;
        int r = frame_get_headers(f, &headers);
        if (r < 0)
                return breach(call, r == -E2BIG ? "sent a submit frame with too many headers"
                                                : "sent a submit frame with a header64 that is not base64");
        submit.headers = headers.texts;
        submit.headers_count = headers.texts_count;
        submit.headers2 = headers.bytes;
        submit.headers2_count = headers.bytes_count;
        return check(call, call->task->host->submit(call->task->host, call->task, &submit));
}

/* --- frames that ask for an answer ---------------------------------------------------------------------------------
 */

/* The worker waits for the answer, and decides what a refusal means. */
static int answer(struct call *call, int32_t status, uint64_t value)
{
        struct bytes *out = &call->worker->out;
        frame_put_answer(out, call->task->id, call->frame.kind, status, value);
        return out->is_broken ? breach(call, "got no answer, for which there is no memory") : HEARD;
}

static int on_trylock(struct call *call)
{
        const struct qv_host *host = call->task->host;
        const char *name = frame_get(&call->frame, "name");
        uint64_t ttl_ms;
        uint64_t token = 0;
        if (!name)
                return breach(call, "sent a trylock frame without a name");
        if (frame_get_number(&call->frame, "ttl_ms", 0, &ttl_ms) < 0)
                return breach(call, "sent a trylock frame whose ttl_ms is no number");
        int32_t r = host->trylock(host, name, ttl_ms, &token);
        return answer(call, r, token);
}

static int on_unlock(struct call *call)
{
        const struct qv_host *host = call->task->host;
        const char *name = frame_get(&call->frame, "name");
        uint64_t token;
        if (!name)
                return breach(call, "sent an unlock frame without a name");
        if (!frame_get(&call->frame, "token") || frame_get_number(&call->frame, "token", 0, &token) < 0)
                return breach(call, "sent an unlock frame whose token is no number");
        return answer(call, host->unlock(host, name, token), 0);
}

static int on_next_id(struct call *call)
{
        const struct qv_host *host = call->task->host;
        uint64_t id = 0;
        int32_t r = host->next_id(host, &id);
        return answer(call, r, id);
}

static int on_room_append(struct call *call)
{
        const struct qv_host *host = call->task->host;
        const struct frame *f = &call->frame;
        const char *room = frame_get(f, "room");
        uint64_t number = 0;
        if (!room)
                return breach(call, "sent a room_append frame without a room");
        /* The host may be older than this plugin. */
        int32_t r =
                QV_HAS(host, room_append) ? host->room_append(host, room, f->body, f->body_size, &number) : -ENOTSUP;
        return answer(call, r, number);
}

/* --- frames that end the task ------------------------------------------------------------------------------------- */

static int on_done(struct call *call)
{
        if (!call->refused[0])
                return QV_DONE;
        /* REJECT, because the next attempt would be refused too. */
        qv_errorf(call->task, "%s", call->refused);
        return QV_REJECT;
}

static int not_done(struct call *call, int outcome)
{
        const struct frame *f = &call->frame;
        int size = f->body_size < QV_ERROR_MAX ? (int)f->body_size : (int)QV_ERROR_MAX;
        if (size)
                qv_errorf(call->task, "%.*s", size, f->body);
        else
                qv_errorf(call->task, "the worker said %s, and not why", f->kind);
        return outcome;
}

static int not_now(struct call *call, int outcome)
{
        uint64_t after_ms;
        if (frame_get_number(&call->frame, "after_ms", UINT64_MAX, &after_ms) < 0)
                return breach(call, "sent a frame whose after_ms is no number");
        if (after_ms != UINT64_MAX)
                (void)call->task->host->retry_after(call->task->host, call->task, after_ms);
        return not_done(call, outcome);
}

static int on_retry(struct call *call)
{
        return not_now(call, QV_RETRY);
}

static int on_later(struct call *call)
{
        return not_now(call, QV_LATER);
}

static int on_limited(struct call *call)
{
        return not_now(call, QV_LIMITED);
}

static int on_reject(struct call *call)
{
        return not_done(call, QV_REJECT);
}

static int on_unavailable(struct call *call)
{
        return not_done(call, QV_UNAVAILABLE);
}

/* --- one task ----------------------------------------------------------------------------------------------------- */

static const struct {
        const char *kind;
        int (*hear)(struct call *call);
} kinds[] = {
        { "done", on_done },
        { "retry", on_retry },
        { "later", on_later },
        { "limited", on_limited },
        { "reject", on_reject },
        { "unavailable", on_unavailable },
        { "result", on_result },
        { "submit", on_submit },
        { "progress", on_progress },
        { "checkpoint", on_checkpoint },
        { "trylock", on_trylock },
        { "unlock", on_unlock },
        { "next_id", on_next_id },
        { "room_append", on_room_append },
};

static int hear(struct call *call)
{
        const char *id = frame_get(&call->frame, "id");
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                if (strcmp(call->frame.kind, kinds[i].kind) != 0)
                        continue;
                /* A late answer to an earlier task must not end this one. */
                if (!id || strcmp(id, call->task->id) != 0)
                        return breach(
                                call, id ? "sent a frame for another task" : "sent a frame without the task's id");
                return kinds[i].hear(call);
        }
        return breach(call, "sent a frame of an unknown kind");
}

static int32_t lose(struct call *call, const struct halt *halt, const char *what)
{
        struct worker *w = call->worker;
        if (halt->term_ms) {
                worker_replace(w);
                qv_errorf(call->task, "stopped before it was done; the worker was %s",
                        halt->is_killed ? "killed" : "told by SIGTERM");
                return QV_RETRY;
        }
        worker_fail(w, what);
        qv_errorf(call->task, "%s", w->why);
        return QV_RETRY;
}

/* Waits until the worker has answered or failed. */
static int32_t attend(struct call *call)
{
        struct worker *w = call->worker;
        struct halt halt = { .kill_after_ms = w->kill_after_ms };
        for (;;) {
                enum worker_event event = worker_next(w, halt_step(&halt, &w->child, call->task), &call->frame);
                if (event == WORKER_NOTHING)
                        continue;
                if (event == WORKER_FAILED && !halt.term_ms && worker_is_untouched(w))
                        return UNSEEN;
                if (event == WORKER_FAILED)
                        return lose(call, &halt, NULL);
                int r = hear(call);
                if (r == BREACH)
                        return lose(call, &halt, call->breach);
                if (r == HEARD)
                        continue;
                /* A line that the worker did not end is this task's, not the beginning of the next one's. */
                stderr_log_end(&w->err);
                worker_praise(w);
                /* After SIGTERM the worker may end at any moment, so it must not get the next task. */
                if (halt.term_ms)
                        worker_replace(w);
                return r;
        }
}

static uint64_t left_ms(const struct qv_task *task)
{
        uint64_t deadline_ms = task->deadline_ns / 1000000;
        uint64_t now = now_ms();
        return deadline_ms > now ? deadline_ms - now : 0;
}

/* UNAVAILABLE is not charged to the task, and the handler pauses. */
static int32_t say_unavailable(const struct worker *w, const struct qv_task *task, int r)
{
        uint64_t now = now_ms();
        if (r == -EAGAIN)
                qv_errorf(task, "no worker: %u failures in a row, next start in %" PRIu64 " ms; the last: %s",
                        w->failures, w->start_ms > now ? w->start_ms - now : 0, w->why);
        else
                qv_errorf(task, "no worker: %s", w->why);
        return QV_UNAVAILABLE;
}

static int32_t pipe_handle(void *self, const struct qv_task *task)
{
        struct worker *w = self;
        for (int i = 0; i < UNSEEN_MAX; i++) {
                int r = worker_start(w, task);
                if (r < 0)
                        return say_unavailable(w, task, r);
                frame_put_task(&w->out, task, left_ms(task));
                if (w->out.is_broken) {
                        bytes_clear(&w->out);
                        qv_errorf(task, "no memory for a frame of %zu bytes", task->payload_size);
                        return QV_UNAVAILABLE;
                }
                int32_t outcome = attend(&(struct call){ .worker = w, .task = task });
                if (outcome != UNSEEN)
                        return outcome;
        }
        worker_fail(w, NULL);
        return say_unavailable(w, task, 0);
}

/* --- the plugin --------------------------------------------------------------------------------------------------- */

static void pipe_close(void *self)
{
        worker_close(self);
        free(self);
}

/* Starts the first worker, so that a worker that cannot start is found before any task comes. */
static int32_t pipe_init(const struct qv_host *host, void **ret_self)
{
        struct worker *w = malloc(sizeof(*w));
        if (!w)
                return qv_init_errorf(host, "out of memory");
        if (worker_open(w, host) < 0) {
                free(w);
                return -1;
        }
        if (worker_start(w, NULL) < 0) {
                (void)qv_init_errorf(host, "%s", w->why);
                pipe_close(w);
                return -1;
        }
        *ret_self = w;
        return 0;
}

/* QV_THREADS: all state of a seat is in its own struct worker. */
QV_PLUGIN("pipe", "1.0", QV_THREADS, pipe_init, pipe_handle, pipe_close, NULL)
