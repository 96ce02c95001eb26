#include "client/tree.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/strings.h"
#include "client/call.h"

/* --- the options ------------------------------------------------------------------------------------------------- */

static const char *copy(const char *text)
{
        return text ? text_copy(text) : NULL;
}

static void drop(const char **text)
{
        text_free_secret((char *)(uintptr_t)*text);
        *text = NULL;
}

void client_tree_set(struct qv_client *client, const struct coord_options *given)
{
        struct coord_options *o = &client_tree(client)->options;
        *o = *given;
        o->url = copy(given->url);
        o->app = copy(given->app);
        o->user = copy(given->user);
        o->password = copy(given->password);
        o->store_url = copy(given->store_url);
        o->store_user = copy(given->store_user);
        o->store_password = copy(given->store_password);
        o->sentinel_user = copy(given->sentinel_user);
        o->sentinel_password = copy(given->sentinel_password);
        o->store_sentinel_user = copy(given->store_sentinel_user);
        o->store_sentinel_password = copy(given->store_sentinel_password);
        o->tls = tls_files_copy(&given->tls);
        o->store_tls = tls_files_copy(&given->store_tls);
}

static void forget_options(struct coord_options *o)
{
        const char **const texts[] = { &o->url, &o->app, &o->user, &o->password, &o->store_url, &o->store_user,
                &o->store_password, &o->sentinel_user, &o->sentinel_password, &o->store_sentinel_user,
                &o->store_sentinel_password };
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                drop(texts[i]);
        tls_files_free(&o->tls);
        tls_files_free(&o->store_tls);
}

/* --- on the client's thread --------------------------------------------------------------------------------------- */

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct client_tree *tree = self;
        struct client_listener *one;
        if (state == COORD_ALIVE || state == COORD_EXPIRED)
                tree->session = state == COORD_ALIVE ? session : 0;
        for (one = tree->listeners; one; one = one->next) {
                one->events.session(one->events.self, state, session);
        }
}

static void on_changed(void *self, const char *path)
{
        struct client_tree *tree = self;
        struct client_listener *one;
        for (one = tree->listeners; one; one = one->next) {
                one->events.changed(one->events.self, path);
        }
}

static void on_look(void *self)
{
        struct client_tree *tree = self;
        struct client_listener *one;
        for (one = tree->listeners; one; one = one->next) {
                one->events.look(one->events.self);
        }
}

void client_tree_listen(struct qv_client *client, struct client_listener *listener)
{
        struct client_tree *tree = client_tree(client);
        DL_APPEND(tree->listeners, listener);
        if (tree->session)
                listener->events.session(listener->events.self, COORD_ALIVE, tree->session);
}

void client_tree_unlisten(struct qv_client *client, struct client_listener *listener)
{
        DL_DELETE(client_tree(client)->listeners, listener);
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

struct opening_tree {
        struct coord_open open;
        struct client_call *call;
        struct client_tree *tree;
};

static void on_opened(struct coord_request *request)
{
        struct opening_tree *opening = (struct opening_tree *)request;
        struct client_call *call = opening->call;
        if (!request->status)
                opening->tree->coord = opening->open.coord;
        call->request.status = request->status;
        call->request.error = request->error;
        call->request.done(&call->request);
}

static void start_opening(struct qv_client *client, struct client_call *call)
{
        struct opening_tree *opening = call->self;
        struct client_tree *tree = client_tree(client);
        tree->events = (struct coord_events){ on_session, on_changed, on_look, tree };
        opening->open = (struct coord_open){ .request.done = on_opened, .options = tree->options };
        opening->open.options.events = &tree->events;
        coord_open(client_loop(client), &opening->open);
}

int client_tree_ensure(struct qv_client *client, struct error *error)
{
        /* Two threads may call at once: the second one finds the tree open. */
        static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
        struct client_tree *tree = client_tree(client);
        struct opening_tree opening = { .tree = tree };
        struct client_call call = { .start = start_opening, .self = &opening };
        int r = 0;
        opening.call = &call;
        (void)pthread_mutex_lock(&one_at_a_time);
        if (!tree->coord && !tree->options.app)
                r = error_set(error, -ENOTSUP,
                        "the handle was opened without a configuration, which would say where the coordination is");
        else if (!tree->coord)
                r = client_call(client, &call, error);
        (void)pthread_mutex_unlock(&one_at_a_time);
        return r;
}

static void on_closed(void *self)
{
        struct client_call *call = self;
        call->request.status = 0;
        call->request.done(&call->request);
}

static void start_closing(struct qv_client *client, struct client_call *call)
{
        coord_close(client_tree(client)->coord, on_closed, call);
}

void client_tree_close(struct qv_client *client)
{
        struct client_tree *tree = client_tree(client);
        struct client_call call = { .start = start_closing, .is_patient = true };
        if (tree->coord)
                (void)client_call(client, &call, NULL);
        tree->coord = NULL;
        tree->session = 0;
        forget_options(&tree->options);
}
