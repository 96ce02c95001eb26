/* client.c: a handle: its thread, its loop, and the calls that wait for it. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <uv.h>

#include "base/memory.h"
#include "base/strings.h"
#include "base/thread_signals.h"
#include "client/call.h"
#include "client/follow.h"
#include "client/ids.h"
#include "client/tree.h"

#define SLOW_S 1

/* While several calls are under way and the store answers within BRIEF_NS, the client's thread polls so many times
 * before it sleeps: its processor would halt, and waking that up takes longer than the answer.  It lets other threads
 * run at each poll, so that those whose calls have ended make their next ones, which then go to the store together. */
#define POLLS    100u
#define BRIEF_NS UINT64_C(300000)

struct qv_client {
        uv_loop_t loop;
        uv_async_t wake;
        pthread_t thread;
        struct store *store;
        struct store_info info;
        uint8_t consumer[STORE_NONCE_SIZE];
        char *state; /* NULL: opened without a configuration */
        struct client_follows follows;
        struct client_tree tree;
        struct client_ids ids;
        uint32_t under_way; /* calls that were started and have not ended */
        uint32_t polls;     /* how often to poll before sleeping, from now on */
        bool is_near;       /* the last call was answered within BRIEF_NS */
        bool has_stirred;   /* calls have started or ended since the loop was polled last */

        pthread_mutex_t lock; /* guards what follows */
        struct client_call *waiting;
        struct client_call **waiting_end;
        bool is_closing;
};

struct store *client_store(struct qv_client *client)
{
        return client->store;
}

struct client_follows *client_follows(struct qv_client *client)
{
        return &client->follows;
}

struct client_tree *client_tree(struct qv_client *client)
{
        return &client->tree;
}

struct client_ids *client_ids(struct qv_client *client)
{
        return &client->ids;
}

uv_loop_t *client_loop(struct qv_client *client)
{
        return &client->loop;
}

const uint8_t *client_consumer(const struct qv_client *client)
{
        return client->consumer;
}

const struct store_info *client_store_info(const struct qv_client *client)
{
        return &client->info;
}

void client_set_state(struct qv_client *client, const char *state)
{
        client->state = text_copy(state);
}

const char *client_state(const struct qv_client *client)
{
        return client->state;
}

/* --- on the client's thread --------------------------------------------------------------------------------------- */

static struct client_call *call_of(struct store_request *request)
{
        return container_of(request, struct client_call, request);
}

/* The call's memory is gone as soon as its caller has woken up: nothing may touch it after the post.  No lock is taken
 * here, because the caller would wake up only to wait for it. */
static void on_done(struct store_request *request)
{
        struct client_call *call = call_of(request);
        struct qv_client *client = call->client;
        client->is_near = uv_hrtime() - call->started_ns < BRIEF_NS;
        client->under_way--;
        client->has_stirred = true;
        if (!request->status && call->take)
                call->take(call);
        (void)sem_post(&call->ended);
}

static void on_closed(void *self)
{
        struct qv_client *client = self;
        uv_close((uv_handle_t *)&client->wake, NULL);
}

static void on_wake(uv_async_t *wake)
{
        struct qv_client *client = wake->data;
        (void)pthread_mutex_lock(&client->lock);
        struct client_call *call = client->waiting;
        client->waiting = NULL;
        client->waiting_end = &client->waiting;
        bool is_closing = client->is_closing;
        (void)pthread_mutex_unlock(&client->lock);
        while (call) {
                struct client_call *next = call->next;
                call->started_ns = uv_hrtime();
                client->under_way++;
                client->has_stirred = true;
                call->start(client, call);
                call = next;
        }
        if (!is_closing)
                return;
        follows_close(&client->follows);
        if (client->store)
                store_close(client->store, on_closed, client);
        else
                on_closed(client);
}

static void *run(void *self)
{
        struct qv_client *client = self;
        (void)pthread_setname_np(pthread_self(), "quiver-client");
        while (uv_run(&client->loop, client->polls ? UV_RUN_NOWAIT : UV_RUN_ONCE)) {
                if (client->has_stirred)
                        client->polls = client->is_near && client->under_way > 1 ? POLLS : 0;
                client->has_stirred = false;
                if (client->polls) {
                        client->polls--;
                        (void)sched_yield();
                }
        }
        return NULL;
}

/* --- on the callers' ---------------------------------------------------------------------------------------------- */

static void (*tell_slow)(void *self);
static void *tell_slow_self;

void client_when_slow(void (*slow)(void *self), void *self)
{
        tell_slow = slow;
        tell_slow_self = self;
}

/* Whether the call has ended within a second. */
static bool ends_soon(struct client_call *call)
{
        struct timespec until;
        int r;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += SLOW_S;
        while ((r = sem_clockwait(&call->ended, CLOCK_MONOTONIC, &until)) < 0 && errno == EINTR)
                ;
        return r == 0;
}

static void wait_for(struct client_call *call)
{
        if (tell_slow && !call->is_patient) {
                if (ends_soon(call))
                        return;
                tell_slow(tell_slow_self);
        }
        while (sem_wait(&call->ended) < 0 && errno == EINTR)
                ;
}

int client_call(struct qv_client *client, struct client_call *call, struct error *error)
{
        call->client = client;
        call->next = NULL;
        call->request.done = on_done;
        (void)sem_init(&call->ended, 0, 0);
        (void)pthread_mutex_lock(&client->lock);
        bool is_first = !client->waiting;
        *client->waiting_end = call;
        client->waiting_end = &call->next;
        (void)pthread_mutex_unlock(&client->lock);
        /* If other calls already wait, the client's thread was woken for them. */
        if (is_first)
                (void)uv_async_send(&client->wake);
        wait_for(call);
        (void)sem_destroy(&call->ended);
        if (call->request.status < 0)
                return error_set(error, call->request.status, "%s", call->request.error.text);
        return 0;
}

/* The thread blocks the program's signals. */
static int start_thread(struct qv_client *client)
{
        sigset_t all;
        sigset_t before;
        thread_signals_of_others(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        int r = -pthread_create(&client->thread, NULL, run, client);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

static int start_loop(struct qv_client *client, struct error *error)
{
        int r = uv_loop_init(&client->loop);
        if (r < 0)
                return error_set(error, r, "cannot make an event loop: %s", uv_strerror(r));
        r = uv_async_init(&client->loop, &client->wake, on_wake);
        if (r < 0)
                goto no_async;
        client->wake.data = client;
        (void)pthread_mutex_init(&client->lock, NULL);
        client->waiting_end = &client->waiting;
        r = start_thread(client);
        if (r < 0)
                goto no_thread;
        return 0;

no_thread:
        (void)pthread_mutex_destroy(&client->lock);
        uv_close((uv_handle_t *)&client->wake, NULL);
        (void)uv_run(&client->loop, UV_RUN_DEFAULT);
no_async:
        (void)uv_loop_close(&client->loop);
        return error_set(error, r, "cannot start a thread: %s", strerror(-r));
}

static void start_open(struct qv_client *client, struct client_call *call)
{
        store_open(&client->loop, &call->open);
}

static void take_store(struct client_call *call)
{
        call->client->store = call->open.store;
        store_info(call->open.store, &call->client->info);
}

int client_open(const struct store_options *options, struct qv_client **ret_client, struct error *error)
{
        struct client_call call = { .start = start_open, .take = take_store };
        struct qv_client *client = memory_zero(1, sizeof(*client));
        client->ids.fixed = SLOT_ANY;
        (void)pthread_mutex_init(&client->ids.opening, NULL);
        struct store_bell bell = follows_bell(&client->follows);
        call.open.options = *options;
        call.open.options.bell = &bell;
        if (getrandom(client->consumer, sizeof(client->consumer), 0) != sizeof(client->consumer)) {
                free(client);
                return error_set(error, -EIO, "cannot get random numbers from the system");
        }
        int r = start_loop(client, error);
        if (r < 0) {
                free(client);
                return r;
        }
        r = client_call(client, &call, error);
        if (r < 0) {
                qv_client_close(client);
                return r;
        }
        *ret_client = client;
        return 0;
}

void qv_client_close(struct qv_client *client)
{
        if (!client)
                return;
        client_ids_close(client);
        client_tree_close(client);
        client_ids_free(client);
        (void)pthread_mutex_lock(&client->lock);
        client->is_closing = true;
        (void)uv_async_send(&client->wake);
        (void)pthread_mutex_unlock(&client->lock);
        (void)pthread_join(client->thread, NULL);
        (void)uv_loop_close(&client->loop);
        (void)pthread_mutex_destroy(&client->lock);
        free(client->state);
        free(client);
}
