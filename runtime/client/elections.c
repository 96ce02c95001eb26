/* elections.c: elections for programs.  A candidacy lives on the client's thread; its events are queued in order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/memory.h"
#include "client/call.h"
#include "client/recipes.h"
#include "client/told.h"
#include "client/tree.h"

#define IDLE_MS  5
#define RETRY_MS 500

struct qv_client_election {
        struct qv_client *client;
        struct queue queue;
        struct client_listener listener;
        uv_timer_t timer;
        struct told told;
        struct client_call *call; /* waits for the end */
        bool stands_again;
        bool is_asked; /* ASKED was reported */
};

/* --- on the client's thread --------------------------------------------------------------------------------------- */

static void tell(struct qv_client_election *e, enum qv_client_notice_kind kind, uint64_t token)
{
        told_add(&e->told, kind, token, "", (struct span){ 0 });
}

static void on_front(void *self, uint64_t token)
{
        struct qv_client_election *e = self;
        e->is_asked = false;
        tell(e, QV_CLIENT_ELECTED, token);
}

static void on_lost(void *self)
{
        tell(self, QV_CLIENT_LOST, 0);
}

static void on_asked(void *self)
{
        struct qv_client_election *e = self;
        if (!e->is_asked)
                tell(e, QV_CLIENT_ASKED, 0);
        e->is_asked = true;
}

static void on_left(void *self)
{
        struct qv_client_election *e = self;
        tell(e, QV_CLIENT_RESIGNED, 0);
        if (e->stands_again)
                queue_enter(&e->queue);
        e->stands_again = false;
}

static void on_retry(uv_timer_t *timer)
{
        struct qv_client_election *e = timer->data;
        if (e->queue.is_failed)
                queue_look(&e->queue);
}

/* The request is repeated. */
static void on_failed(void *self, int status, const char *text)
{
        struct qv_client_election *e = self;
        (void)status;
        (void)text;
        (void)uv_timer_start(&e->timer, on_retry, RETRY_MS, 0);
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        queue_session(&((struct qv_client_election *)self)->queue, state, session);
}

static void on_changed(void *self, const char *path)
{
        queue_changed(&((struct qv_client_election *)self)->queue, path);
}

static void on_look(void *self)
{
        queue_look(&((struct qv_client_election *)self)->queue);
}

static void start_standing(struct qv_client *client, struct client_call *call)
{
        struct qv_client_election *e = call->self;
        (void)uv_timer_init(client_loop(client), &e->timer);
        e->timer.data = e;
        e->listener.events = (struct coord_events){ on_session, on_changed, on_look, e };
        queue_enter(&e->queue);
        client_tree_listen(client, &e->listener);
        client_recipe_answer(call);
}

static void resign(struct qv_client_election *e, bool stands_again)
{
        e->stands_again = stands_again;
        /* Without a place there is nothing to leave. */
        if (!queue_leave(&e->queue))
                on_left(e);
}

static void start_resigning(struct qv_client *client, struct client_call *call)
{
        (void)client;
        struct qv_client_election *e = call->self;
        resign(e, e->stands_again);
        client_recipe_answer(call);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct qv_client_election *e = handle->data;
        struct client_call *call = e->call;
        told_free(&e->told);
        free(e);
        client_recipe_answer(call);
}

static void on_idle_timer(uv_timer_t *timer)
{
        struct qv_client_election *e = timer->data;
        if (!queue_is_idle(&e->queue)) {
                (void)uv_timer_start(timer, on_idle_timer, IDLE_MS, 0);
                return;
        }
        client_tree_unlisten(e->client, &e->listener);
        uv_close((uv_handle_t *)timer, on_timer_closed);
}

static void start_closing(struct qv_client *client, struct client_call *call)
{
        struct qv_client_election *e = call->self;
        (void)client;
        e->call = call;
        resign(e, false);
        (void)uv_timer_start(&e->timer, on_idle_timer, 0, 0);
}

/* --- on the program's --------------------------------------------------------------------------------------------- */

int qv_client_elect(struct qv_client *client, const char *name, struct qv_client_election **ret_election)
{
        struct error *error = client_error_start();
        char nonce[RECIPE_NONCE_SIZE], path[COORD_PATH_MAX];
        int r = client_recipe_check(name, error);
        if (r == 0)
                r = client_tree_ensure(client, error);
        if (r < 0)
                return r;
        struct qv_client_election *e = memory_zero(1, sizeof(*e));
        const struct queue_events events = {
                .front = on_front, .lost = on_lost, .left = on_left, .asked = on_asked, .failed = on_failed, .self = e
        };
        e->client = client;
        r = told_init(&e->told);
        if (r < 0) {
                free(e);
                return error_set(error, r, "no descriptor is left: %s", strerror(-r));
        }
        client_recipe_nonce(nonce);
        (void)snprintf(path, sizeof(path), "elections/%s", name);
        queue_init(&e->queue, client_tree(client)->coord, path, nonce, &events);
        e->queue.removes_empty = true;
        client_recipe_says(e->queue.says, NULL);
        struct client_call call = { .start = start_standing, .self = e };
        r = client_call(client, &call, error);
        if (r == 0)
                *ret_election = e;
        return r;
}

int qv_client_election_next(
        struct qv_client_election *election, uint64_t timeout_ms, struct qv_client_notice **ret_notice)
{
        (void)client_error_start();
        return told_next(&election->told, timeout_ms, ret_notice);
}

int qv_client_election_fd(const struct qv_client_election *election)
{
        return election->told.fd;
}

int qv_client_resign(struct qv_client_election *election, bool stands_again)
{
        struct error *error = client_error_start();
        struct client_call call = { .start = start_resigning, .self = election };
        election->stands_again = stands_again;
        return client_call(election->client, &call, error);
}

void qv_client_election_close(struct qv_client_election *election)
{
        struct client_call call = { .start = start_closing, .self = election, .is_patient = true };
        if (election)
                (void)client_call(election->client, &call, client_error_start());
}
