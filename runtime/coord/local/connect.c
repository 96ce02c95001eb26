/* connect.c: opens and leaves the folder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "coord/local/bell.h"
#include "coord/local/worker.h"

void worker_note(struct worker *worker, struct job *note)
{
        job_add(&worker->out, note);
}

void worker_note_session(struct worker *worker, enum coord_state state, uint64_t session)
{
        struct job *note = job_new(JOB_SESSION);
        note->state = state;
        note->session = session;
        worker_note(worker, note);
}

static void remember_token(struct worker *worker)
{
        (void)pthread_mutex_lock(&worker->mutex);
        memcpy(worker->token, worker->own.tree.nonce, TREE_NONCE_SIZE);
        (void)pthread_mutex_unlock(&worker->mutex);
}

static void bell_close(struct worker *worker)
{
        if (worker->bell_fd >= 0)
                (void)close(worker->bell_fd);
        worker->bell_fd = -1;
}

int worker_session_open(struct worker *worker, struct error *error)
{
        struct own_session *own = &worker->own;
        /* Locked before any other process can see it: an unlocked session file counts as dead. */
        int r = own_session_hold(own, &worker->folder, worker->session_ms, clock_boot_ms(), error);
        if (r)
                return r;
        bell_close(worker);
        worker->bell_fd = local_bell_open(&worker->folder, own->tree.nonce, error);
        r = worker->bell_fd < 0 ? worker->bell_fd : 0;
        if (!r) {
                struct epoll_event event = { .events = EPOLLIN, .data.u64 = 0 };
                (void)epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->bell_fd, &event);
                r = replica_session_open(&worker->replica, &own->tree, &own->tree.id, error);
        }
        if (r) {
                own_session_drop(own, &worker->folder);
                return r;
        }
        watches_free(&worker->watches);
        remember_token(worker);
        worker->troubled_ms = 0;
        worker_note_session(worker, COORD_ALIVE, own->tree.id);
        worker_note(worker, job_new(JOB_LOOK));
        return 0;
}

int worker_connect(struct worker *worker, struct error *error)
{
        int r = folder_open(&worker->folder, worker->where, worker->app, error);
        if (r)
                return r;
        r = replica_open(&worker->replica, worker->folder.fd, error);
        if (r) {
                folder_close(&worker->folder);
                return r;
        }
        worker->is_connected = true;
        if (!worker->is_visitor) {
                r = worker_session_open(worker, error);
        } else {
                worker->troubled_ms = 0;
                worker_note_session(worker, COORD_ALIVE, 0);
        }
        if (r)
                worker_disconnect(worker);
        return r;
}

void worker_disconnect(struct worker *worker)
{
        if (!worker->is_connected)
                return;
        own_session_drop(&worker->own, &worker->folder);
        bell_close(worker);
        peers_free(&worker->peers);
        watches_free(&worker->watches);
        replica_close(&worker->replica);
        folder_close(&worker->folder);
        worker->is_connected = false;
}
