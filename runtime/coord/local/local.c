/* local.c: the loop's side of the driver: passes jobs to the worker, and reports results to the owner.
 *
 *         worker.c   the thread: what it waits for, one turn        connect.c  opens and leaves the folder
 *         execute.c  one request                                    watch.c    watched nodes
 *         replica.c  the tree, kept by reading the log              tree.c     the tree     log.c  the log
 *         session.c  which processes live                           bell.c     ringing      folder.c  the folder */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "base/units.h"
#include "coord/local/end_session.h"
#include "coord/local/worker.h"

#define SESSION_DEFAULT_MS 10000u
#define SESSION_MIN_MS     100u
#define SESSION_MAX_MS     (5u * 60u * 1000u)
#define BEATS              3u /* per session timeout */

struct local_coord {
        struct coord coord; /* must be first */
        struct worker worker;
        bool has_worker;
        uv_async_t async;
        uv_timer_t timer; /* for heartbeats and request deadlines */
        unsigned handles;
        uint64_t beat_due_ms;
        struct coord_open *open; /* the open request, until it is finished */
        bool is_closing;
        void (*closed)(void *self);
        void *closed_self;
};

static const char *where_of(const char *url)
{
        const char *colon = url ? strchr(url, ':') : NULL;
        return colon ? colon + 1 : "";
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
        struct local_coord *local = handle->data;
        if (--local->handles)
                return;
        struct coord_open *open = local->open;
        void (*closed)(void *self) = local->closed;
        void *self = local->closed_self;
        coord_base_free(&local->coord);
        free(local);
        if (open)
                coord_finish(&open->request, open->request.status);
        else if (closed)
                closed(self);
}

/* The worker is gone: finishes everything under way. */
static void end(struct local_coord *local)
{
        struct job_list left = { 0 };
        struct job *job;
        if (local->has_worker) {
                worker_join(&local->worker);
                job_move(&left, &local->worker.done);
                job_move(&left, &local->worker.todo);
        }
        while ((job = job_take(&left)))
                job_free(job);
        coord_cancel(&local->coord, -ECANCELED);
        uv_close((uv_handle_t *)&local->async, on_handle_closed);
        uv_close((uv_handle_t *)&local->timer, on_handle_closed);
}

static void begin_end(struct local_coord *local)
{
        local->is_closing = true;
        (void)uv_timer_stop(&local->timer);
        worker_post(&local->worker, job_new(JOB_STOP));
}

static void on_timer(uv_timer_t *timer);

/* Nobody waits for the answer any more. */
static void forget(struct coord_request *request)
{
        struct job *job = request->driver;
        if (job)
                job->request = NULL;
        request->driver = NULL;
}

/* --- messages from the worker ------------------------------------------------------------------------------------ */

static void opened(struct local_coord *local, struct job *job)
{
        struct coord_open *open = local->open;
        free(local->coord.url);
        local->coord.url = job->url;
        job->url = NULL;
        open->request.status = job->status;
        open->request.error = job->error;
        if (job->status) {
                begin_end(local); /* the open request is finished when the thread and the handles are gone */
                return;
        }
        local->open = NULL;
        open->coord = &local->coord;
        local->beat_due_ms = clock_boot_ms();
        (void)uv_timer_start(&local->timer, on_timer, 0, 0);
        coord_finish(&open->request, 0);
}

/* Fails requests of a session that is over, whether the worker has seen them or not. */
static void fail_orphans(struct local_coord *local, uint64_t session)
{
        struct coord_request *request = local->coord.requests;
        while (request && !local->is_closing) {
                struct job *job = request->driver;
                if (!job || job->session != session) {
                        request = request->next;
                        continue;
                }
                forget(request);
                coord_finish_error(request, -EOWNERDEAD, "the session expired before it was done");
                /* done() may have changed the list.  Requests that it started belong to no session yet. */
                request = local->coord.requests;
        }
}

static void session_changed(struct local_coord *local, const struct job *job)
{
        struct coord *coord = &local->coord;
        if (job->state == COORD_EXPIRED) {
                coord->session = 0;
                fail_orphans(local, job->session);
                if (local->is_closing)
                        return;
        }
        if (job->state == COORD_ALIVE)
                coord->answered_ms = clock_boot_ms();
        coord_tell(coord, job->state, job->session);
        if (job->state == COORD_EXPIRED)
                coord->session = 0;
}

static void finish_request(struct job *job)
{
        struct coord_request *request = job->request;
        if (!request)
                return;
        job_reply(job);
        request->driver = NULL;
        coord_finish(request, job->status);
}

static void hear(struct local_coord *local, struct job *job)
{
        const struct coord_events *events = &local->coord.events;
        switch (job->kind) {
        case JOB_REQUEST:
                finish_request(job);
                break;
        case JOB_BEAT:
                if (!job->status)
                        local->coord.answered_ms = job->at_ms;
                break;
        case JOB_STOP:
                break;
        case JOB_OPENED:
                opened(local, job);
                break;
        case JOB_SESSION:
                session_changed(local, job);
                break;
        case JOB_CHANGED:
                if (events->changed)
                        events->changed(events->self, job->path);
                break;
        case JOB_LOOK:
                if (events->look)
                        events->look(events->self);
                break;
        }
}

static void hear_all(struct local_coord *local)
{
        struct job_list list = { 0 };
        struct job *job;
        bool is_stopped = !local->has_worker;
        if (local->has_worker)
                worker_take(&local->worker, &list);
        while ((job = job_take(&list))) {
                /* If the owner closes the tree in a callback, it gets no further events. */
                is_stopped |= job->kind == JOB_STOP;
                if (!local->is_closing)
                        hear(local, job);
                else if (job->request)
                        job->request->driver = NULL;
                job_free(job);
        }
        if (is_stopped)
                end(local);
}

static void on_async(uv_async_t *async)
{
        hear_all(async->data);
}

static void on_handed(void *self)
{
        (void)uv_async_send(&((struct local_coord *)self)->async);
}

/* --- time -------------------------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
        struct local_coord *local = timer->data;
        /* After a pause of the process, answers that have arrived are handled before deadlines. */
        hear_all(local);
        if (local->is_closing)
                return;
        uint64_t now_ms = clock_boot_ms();
        uint64_t next_ms = coord_sweep(&local->coord, now_ms, forget);
        if (local->is_closing)
                return;
        if (now_ms >= local->beat_due_ms) {
                struct job *beat = job_new(JOB_BEAT);
                beat->at_ms = now_ms;
                worker_post(&local->worker, beat);
                local->beat_due_ms = now_ms + local->coord.session_ms / BEATS;
        }
        if (local->beat_due_ms < next_ms)
                next_ms = local->beat_due_ms;
        (void)uv_timer_start(timer, on_timer, next_ms > now_ms ? next_ms - now_ms : 1, 0);
}

/* --- the driver -------------------------------------------------------------------------------------------------- */

static uint64_t session_ms_of(const struct coord_options *options)
{
        uint64_t ms = options->session_ms ? options->session_ms : SESSION_DEFAULT_MS;
        return ms < SESSION_MIN_MS ? SESSION_MIN_MS : min_u64(ms, SESSION_MAX_MS);
}

static void local_open(uv_loop_t *loop, struct coord_open *open)
{
        const struct coord_options *options = &open->options;
        struct local_coord *local = memory_zero(1, sizeof(*local));
        struct worker *worker = &local->worker;
        coord_base_init(&local->coord, &local_driver, options, options->url ? options->url : "");
        local->coord.session_ms = session_ms_of(options);
        local->open = open;
        local->handles = 2;
        (void)uv_async_init(loop, &local->async, on_async);
        (void)uv_timer_init(loop, &local->timer);
        local->async.data = local->timer.data = local;
        *worker = (struct worker){ .session_ms = local->coord.session_ms,
                .is_visitor = local->coord.is_visitor,
                .handed = on_handed,
                .self = local };
        if (!open->request.status) {
                worker->where = text_copy(where_of(options->url));
                worker->app = text_copy(options->app);
                open->request.status = worker_start(worker, &open->request.error);
                local->has_worker = !open->request.status;
        }
        /* Even a refused open is finished from the loop, never inside the call. */
        if (open->request.status)
                (void)uv_async_send(&local->async);
}

static void local_start(struct coord *coord, struct coord_request *request)
{
        struct local_coord *local = (struct local_coord *)coord;
        if (local->is_closing)
                return; /* cancelled together with the others */
        struct job *job = job_from_request(request);
        job->session = coord->session;
        request->driver = job;
        request->deadline_ms = clock_boot_ms() + coord->session_ms;
        worker_post(&local->worker, job);
}

static void local_close(struct coord *coord, void (*closed)(void *self), void *self)
{
        struct local_coord *local = (struct local_coord *)coord;
        local->closed = closed;
        local->closed_self = self;
        begin_end(local);
}

static void local_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX])
{
        struct local_coord *local = (struct local_coord *)coord;
        (void)pthread_mutex_lock(&local->worker.mutex);
        (void)units_hex(ret_token, local->worker.token, TREE_NONCE_SIZE);
        (void)pthread_mutex_unlock(&local->worker.mutex);
}

const struct coord_driver local_driver = {
        .scheme = "local",
        .open = local_open,
        .end_session = local_end_session,
        .start = local_start,
        .token = local_token,
        .close = local_close,
};
