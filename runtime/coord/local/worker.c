#include "coord/local/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/thread_signals.h"
#include "coord/local/bell.h"

#define RETRY_MS 100u

/* --- trouble ----------------------------------------------------------------------------------------------------- */

/* The session has certainly expired. */
static void expire(struct worker *worker)
{
        uint64_t session = worker->own.tree.id;
        if (worker->is_connected && session)
                worker_note_session(worker, COORD_EXPIRED, session);
        worker_disconnect(worker);
}

/* The folder cannot be read or written.  The session lasts as long as its last heartbeat, because no new one can be
 * written. */
static void trouble(struct worker *worker, int status, const struct error *error)
{
        uint64_t now_ms = clock_boot_ms();
        /* The first error is the answer to the open, and is not logged here. */
        if (worker->is_opened && strcmp(error->text, worker->told.text) != 0)
                log_event(LEVEL_WARN, "coordination-trouble", "driver=local error=%s", LOG_QUOTE(error->text));
        worker->told = *error;
        if (!worker->troubled_ms) {
                worker->troubled_ms = now_ms;
                if (worker->is_connected)
                        worker_note_session(worker, COORD_SUSPENDED, worker->own.tree.id);
        }
        if (status == -ESTALE || now_ms - worker->troubled_ms >= worker->session_ms)
                expire(worker);
}

static void no_trouble(struct worker *worker)
{
        if (!worker->troubled_ms)
                return;
        worker->troubled_ms = 0;
        worker->told.text[0] = 0;
        worker_note_session(worker, COORD_ALIVE, worker->own.tree.id);
}

/* --- a turn of the thread ---------------------------------------------------------------------------------------- */

/* Reads new records, and checks that the folder is still the one that others see. */
static int refresh(struct worker *worker, struct error *error)
{
        int r = replica_catch_up(&worker->replica, error);
        if (r)
                return r;
        r = log_check(&worker->replica.log, worker->folder.path);
        if (r == -ESTALE)
                return error_set(error, r, "%s: replaced while it was in use", worker->folder.path);
        return r ? error_set(error, r, "%s: %s", worker->folder.path, strerror(-r)) : 0;
}

static int end_dead_sessions(struct worker *worker, struct error *error)
{
        uint64_t dead;
        int r = 0;
        while (!r && (dead = peers_look(&worker->peers, &worker->folder, &worker->replica.tree, worker->own.tree.id,
                              clock_boot_ms()))) {
                const struct tree_session *session = tree_session_get(&worker->replica.tree, dead);
                struct tree_session gone = *session;
                r = replica_session_end(&worker->replica, dead, error);
                if (!r)
                        folder_sweep(&worker->folder, gone.nonce);
        }
        return r;
}

/* Another process has ended our session: it took us for dead, or our guard asked for it. */
static int renew_session(struct worker *worker, struct error *error)
{
        uint64_t session = worker->own.tree.id;
        if (worker->is_visitor || tree_session_get(&worker->replica.tree, session))
                return 0;
        worker_note_session(worker, COORD_EXPIRED, session);
        own_session_drop(&worker->own, &worker->folder);
        int r = worker_session_open(worker, error);
        if (r)
                worker_disconnect(worker);
        return r;
}

static int do_requests(struct worker *worker, struct error *error)
{
        int r = 0;
        while (!r && worker->waiting.first) {
                struct job *job = worker->waiting.first;
                r = worker_execute(worker, job, error);
                /* A request that was not carried out waits until the folder works again. */
                if (!r || job->status)
                        job_add(&worker->out, job_take(&worker->waiting));
        }
        return r;
}

static void tell_watches(struct worker *worker)
{
        struct local_watch *watch;
        while ((watch = watch_fired(&worker->watches, &worker->replica.tree))) {
                struct job *note = job_new(JOB_CHANGED);
                note->path = arena_copy(&note->memory, (struct span){ watch->path, strlen(watch->path) }).data;
                worker_note(worker, note);
                free(watch);
        }
}

/* Syncs what was written before anybody is told of it. */
static int settle(struct worker *worker, struct error *error)
{
        int r = 0;
        if (worker->replica.has_appended) {
                r = log_sync(&worker->replica.log, error);
                local_bell_ring(&worker->folder, &worker->replica.tree, worker->own.tree.id);
                worker->replica.has_appended = false;
        }
        if (!r)
                r = replica_tidy(&worker->replica, error);
        tell_watches(worker);
        return r;
}

static int turn(struct worker *worker, struct error *error)
{
        int r = worker->is_connected ? refresh(worker, error) : worker_connect(worker, error);
        if (!r)
                r = renew_session(worker, error);
        if (!r)
                r = end_dead_sessions(worker, error);
        if (!r)
                no_trouble(worker);
        if (!r)
                r = do_requests(worker, error);
        if (!r)
                r = settle(worker, error);
        return r;
}

/* --- jobs -------------------------------------------------------------------------------------------------------- */

static void take_jobs(struct worker *worker)
{
        struct job_list list = { 0 };
        struct job *job;
        (void)pthread_mutex_lock(&worker->mutex);
        job_move(&list, &worker->todo);
        (void)pthread_mutex_unlock(&worker->mutex);
        while ((job = job_take(&list))) {
                if (job->kind == JOB_STOP)
                        worker->is_stopping = true;
                if (job->kind == JOB_BEAT)
                        own_session_beat(&worker->own, job->at_ms);
                job_add(job->kind == JOB_REQUEST ? &worker->waiting : &worker->beats, job);
        }
}

static void hand_over(struct worker *worker)
{
        if (!worker->out.first)
                return;
        (void)pthread_mutex_lock(&worker->mutex);
        job_move(&worker->done, &worker->out);
        (void)pthread_mutex_unlock(&worker->mutex);
        worker->handed(worker->self);
}

/* Reports the open after the first turn, which shows whether there is a tree at all. */
static void tell_opened(struct worker *worker, int status, const struct error *error)
{
        struct job *note = job_new(JOB_OPENED);
        char url[FOLDER_PATH_MAX + 256];
        folder_url(&worker->folder, worker->where, url, sizeof(url));
        note->url = text_copy(url);
        if (folder_is_hopeless(status)) {
                note->status = status == -EPROTO || status == -EINVAL ? status : -EACCES;
                note->error = *error;
        }
        worker->is_opened = true;
        /* The open is reported before a session that the same turn began. */
        struct job_list later = worker->out;
        worker->out = (struct job_list){ 0 };
        worker_note(worker, note);
        job_move(&worker->out, &later);
}

static void one_turn(struct worker *worker)
{
        struct error error = { "" };
        int r = turn(worker, &error);
        struct job *beat;
        if (r)
                trouble(worker, r, &error);
        while ((beat = job_take(&worker->beats))) {
                beat->status = r;
                job_add(&worker->out, beat);
        }
        if (!worker->is_opened)
                tell_opened(worker, r, &error);
        hand_over(worker);
}

static void stop(struct worker *worker)
{
        struct error error;
        struct job *job;
        if (worker->is_connected && worker->own.tree.id &&
                !replica_session_end(&worker->replica, worker->own.tree.id, &error)) {
                (void)log_sync(&worker->replica.log, &error);
                local_bell_ring(&worker->folder, &worker->replica.tree, worker->own.tree.id);
        }
        worker_disconnect(worker);
        job_move(&worker->out, &worker->waiting);
        while ((job = job_take(&worker->beats)))
                job_add(&worker->out, job);
        hand_over(worker);
}

/* --- the thread -------------------------------------------------------------------------------------------------- */

static int sleep_ms(const struct worker *worker)
{
        uint64_t now_ms = clock_boot_ms();
        if (!worker->is_connected || worker->troubled_ms)
                return RETRY_MS;
        if (worker->is_visitor || worker->peers.due_ms == UINT64_MAX)
                return -1;
        return worker->peers.due_ms < now_ms ? 0 : (int)(worker->peers.due_ms - now_ms + 1);
}

static void wait_for_something(struct worker *worker)
{
        struct epoll_event events[16];
        uint64_t count;
        (void)epoll_wait(worker->epoll_fd, events, 16, sleep_ms(worker));
        if (read(worker->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
                abort();
        if (worker->bell_fd >= 0)
                local_bell_drain(worker->bell_fd);
}

static void *worker_main(void *self)
{
        struct worker *worker = self;
        for (;;) {
                take_jobs(worker);
                if (worker->is_stopping)
                        break;
                one_turn(worker);
                wait_for_something(worker);
        }
        stop(worker);
        return NULL;
}

int worker_start(struct worker *worker, struct error *error)
{
        struct epoll_event event = { .events = EPOLLIN };
        sigset_t all, before;
        (void)pthread_mutex_init(&worker->mutex, NULL);
        worker->bell_fd = worker->folder.fd = worker->own.fd = worker->replica.log.fd = -1;
        worker->peers.due_ms = UINT64_MAX;
        worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        worker->peers.epoll_fd = worker->epoll_fd;
        if (worker->wake_fd < 0 || worker->epoll_fd < 0 ||
                epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->wake_fd, &event) < 0)
                return error_set(error, -errno, "coordination: %s", strerror(errno));
        /* Signals are handled on the loop's thread. */
        thread_signals_of_others(&all);
        (void)pthread_sigmask(SIG_BLOCK, &all, &before);
        int r = pthread_create(&worker->thread, NULL, worker_main, worker);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r ? error_set(error, -r, "coordination: no thread: %s", strerror(r)) : 0;
}

void worker_post(struct worker *worker, struct job *job)
{
        uint64_t one = 1;
        (void)pthread_mutex_lock(&worker->mutex);
        job_add(&worker->todo, job);
        (void)pthread_mutex_unlock(&worker->mutex);
        if (write(worker->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
                abort();
}

void worker_take(struct worker *worker, struct job_list *ret_list)
{
        (void)pthread_mutex_lock(&worker->mutex);
        job_move(ret_list, &worker->done);
        (void)pthread_mutex_unlock(&worker->mutex);
}

void worker_join(struct worker *worker)
{
        (void)pthread_join(worker->thread, NULL);
        (void)close(worker->wake_fd);
        (void)close(worker->epoll_fd);
        (void)pthread_mutex_destroy(&worker->mutex);
        free(worker->where);
        free(worker->app);
}
