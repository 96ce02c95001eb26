/* locks.c: locks for programs.  A lock lives on the client's thread; the program's calls wait for it. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/memory.h"
#include "client/call.h"
#include "client/recipes.h"
#include "client/sized_struct.h"
#include "client/tree.h"
#include "coord/lock.h"

#define IDLE_MS 5 /* between two checks whether the last request is done */

struct qv_client_lock {
        struct qv_client *client;
        struct lock lock;
        struct client_listener listener;
        uv_timer_t timer;
        struct client_call *call; /* the waiting call, which acquires or releases */
        uint64_t wait_ms;
        uint64_t token;
        _Atomic bool is_held;
        bool is_ending; /* the call ends when no request is under way */
        int fd;
};

/* --- on the client's thread --------------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *handle)
{
        struct qv_client_lock *lock = handle->data;
        struct client_call *call = lock->call;
        (void)close(lock->fd);
        free(lock);
        client_recipe_answer(call);
}

/* Ends the call and frees the lock. */
static void end_if_idle(struct qv_client_lock *lock);

static void on_idle_timer(uv_timer_t *timer)
{
        end_if_idle(timer->data);
}

static void end_if_idle(struct qv_client_lock *lock)
{
        if (!lock_is_idle(&lock->lock)) {
                (void)uv_timer_start(&lock->timer, on_idle_timer, IDLE_MS, 0);
                return;
        }
        client_tree_unlisten(lock->client, &lock->listener);
        uv_close((uv_handle_t *)&lock->timer, on_timer_closed);
}

/* The lock is not held, or no longer: it is freed as soon as no request of it is under way. */
static void begin_end(struct qv_client_lock *lock, int status)
{
        if (lock->is_ending)
                return;
        lock->is_ending = true;
        lock->call->request.status = status;
        (void)lock_release(&lock->lock);
        (void)uv_timer_start(&lock->timer, on_idle_timer, 0, 0);
}

static void on_acquired(void *self, uint64_t token)
{
        struct qv_client_lock *lock = self;
        struct client_call *call = lock->call;
        if (lock->is_ending)
                return;
        (void)uv_timer_stop(&lock->timer);
        lock->token = token;
        atomic_store(&lock->is_held, true);
        lock->call = NULL;
        client_recipe_answer(call);
}

static void on_busy(void *self)
{
        struct qv_client_lock *lock = self;
        if (lock->call)
                begin_end(lock, error_set(&lock->call->request.error, -EBUSY, "somebody else has the lock"));
}

static void on_lost(void *self)
{
        struct qv_client_lock *lock = self;
        uint64_t one = 1;
        atomic_store(&lock->is_held, false);
        ssize_t n = write(lock->fd, &one, sizeof(one));
        (void)n;
}

/* The node is gone and no request is under way.  The lock ends after this event. */
static void on_released(void *self)
{
        struct qv_client_lock *lock = self;
        if (lock->is_ending)
                (void)uv_timer_start(&lock->timer, on_idle_timer, 0, 0);
}

static void on_failed(void *self, int status, const char *text)
{
        struct qv_client_lock *lock = self;
        (void)status;
        if (lock->call && !lock->is_ending)
                begin_end(lock, error_set(&lock->call->request.error, -EIO, "%s", text));
}

static void on_waited(uv_timer_t *timer)
{
        struct qv_client_lock *lock = timer->data;
        struct error *error = &lock->call->request.error;
        if (client_tree(lock->client)->session)
                begin_end(lock, error_set(error, -EBUSY, "somebody else has the lock; not had in time"));
        else
                begin_end(lock, error_set(error, -ETIMEDOUT, "the coordination does not answer"));
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        lock_session(&((struct qv_client_lock *)self)->lock, state, session);
}

static void on_changed(void *self, const char *path)
{
        lock_changed(&((struct qv_client_lock *)self)->lock, path);
}

static void on_look(void *self)
{
        lock_look(&((struct qv_client_lock *)self)->lock);
}

static void start_taking(struct qv_client *client, struct client_call *call)
{
        struct qv_client_lock *lock = call->self;
        struct coord_info info;
        lock->call = call;
        (void)uv_timer_init(client_loop(client), &lock->timer);
        lock->timer.data = lock;
        coord_info(client_tree(client)->coord, &info);
        uint64_t wait_ms = lock->wait_ms ? lock->wait_ms : info.session_ms;
        if (wait_ms != UINT64_MAX)
                (void)uv_timer_start(&lock->timer, on_waited, wait_ms, 0);
        lock->listener.events = (struct coord_events){ on_session, on_changed, on_look, lock };
        if (lock->wait_ms)
                lock_acquire(&lock->lock);
        else
                lock_try(&lock->lock);
        client_tree_listen(client, &lock->listener);
}

static void start_giving(struct qv_client *client, struct client_call *call)
{
        struct qv_client_lock *lock = call->self;
        (void)client;
        lock->call = call;
        bool was_held = atomic_exchange(&lock->is_held, false);
        begin_end(lock, was_held ? 0 : error_set(&call->request.error, -ENOLCK, "the lock had been lost"));
}

/* --- on the program's --------------------------------------------------------------------------------------------- */

int qv_client_lock(struct qv_client *client, const char *name, const struct qv_client_lock_options *given,
        struct qv_client_lock **ret_lock)
{
        struct error *error = client_error_start();
        struct qv_client_lock_options options = QV_CLIENT_LOCK_OPTIONS_INIT;
        char nonce[RECIPE_NONCE_SIZE];
        if (given && SIZED_COPY(&options, given) < 0)
                return error_set(error, -EINVAL, "options.size: start from QV_CLIENT_LOCK_OPTIONS_INIT");
        if (options.limit > QUEUE_LIMIT_MAX)
                return error_set(error, -EINVAL, "options.limit: at most %u", QUEUE_LIMIT_MAX);
        int r = client_recipe_check(name, error);
        if (r == 0)
                r = client_tree_ensure(client, error);
        if (r < 0)
                return r;
        struct qv_client_lock *lock = memory_zero(1, sizeof(*lock));
        const struct lock_events events = { on_acquired, on_busy, on_lost, on_released, on_failed, lock };
        lock->client = client;
        lock->wait_ms = options.wait_ms;
        lock->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (lock->fd < 0) {
                free(lock);
                return error_set(error, -EMFILE, "no descriptor is left: %s", strerror(errno));
        }
        client_recipe_nonce(nonce);
        lock_init(&lock->lock, client_tree(client)->coord, name, nonce, &events);
        lock_set_limit(&lock->lock, options.limit);
        client_recipe_says(lock->lock.queue.says, options.reason);
        struct client_call call = { .start = start_taking, .self = lock, .is_patient = true };
        r = client_call(client, &call, error);
        if (r == 0)
                *ret_lock = lock;
        return r;
}

int qv_client_trylock(struct qv_client *client, const char *name, struct qv_client_lock **ret_lock)
{
        struct qv_client_lock_options options = QV_CLIENT_LOCK_OPTIONS_INIT;
        options.wait_ms = 0;
        return qv_client_lock(client, name, &options, ret_lock);
}

uint64_t qv_client_lock_token(const struct qv_client_lock *lock)
{
        return lock->token;
}

int qv_client_lock_fd(const struct qv_client_lock *lock)
{
        return lock->fd;
}

bool qv_client_lock_is_held(const struct qv_client_lock *lock)
{
        return atomic_load(&lock->is_held);
}

int qv_client_unlock(struct qv_client_lock *lock)
{
        struct error *error = client_error_start();
        struct client_call call = { .start = start_giving, .self = lock, .is_patient = true };
        return lock ? client_call(lock->client, &call, error) : 0;
}
