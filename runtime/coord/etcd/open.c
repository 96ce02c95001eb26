/* open.c: the driver: opens and closes a tree. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "coord/etcd/etcd.h"

#define DEFAULT_USER "quiver"

/* --- closing ----------------------------------------------------------------------------------------------------- */

static void tree_free(struct remote *remote)
{
        struct etcd_tree *tree = (struct etcd_tree *)remote;
        etcd_watch_free_all(&tree->watches);
        explicit_bzero(tree->nonce, sizeof(tree->nonce));
        text_free_secret(tree->token);
        text_free_secret(tree->password);
        url_free(&tree->url);
        free(tree->user);
        free(tree->prefix);
        free(tree);
}

static void on_http_freed(void *self)
{
        remote_end(self);
}

static void drop(struct etcd_call **call)
{
        if (*call)
                etcd_call_forget(*call);
        *call = NULL;
}

/* Ends the session first, as far as a server answers; then drops everything under way. */
static void close_http(struct remote *remote)
{
        struct etcd_tree *tree = (struct etcd_tree *)remote;
        uint64_t now_ms = clock_boot_ms();
        if (tree->is_freeing)
                return;
        if (tree->closing) {
                remote_wake_at(remote, etcd_call_tick(tree, now_ms));
                if (tree->closing) {
                        remote_wake_at(remote, max_u64(tree->retry_at_ms, now_ms + 1));
                        return;
                }
        }
        tree->is_freeing = true;
        coord_cancel(&remote->coord, -ECANCELED);
        remote_forget_beat(remote);
        etcd_stream_stop(tree);
        drop(&tree->greeting);
        while (tree->waiting)
                etcd_call_forget(tree->waiting);
        if (tree->http)
                curl_http_free(tree->http, on_http_freed, tree);
        else
                on_http_freed(tree);
}

static void session_ended(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        tree->closing = NULL;
        etcd_call_free(call);
        remote_wake_at(&tree->remote, 0);
}

void etcd_close(struct coord *coord, void (*closed)(void *self), void *self)
{
        struct etcd_tree *tree = (struct etcd_tree *)coord;
        uint64_t lease = tree->lease ? tree->lease : tree->old_lease;
        remote_close(&tree->remote, closed, self);
        etcd_stream_stop(tree);
        if (lease) {
                tree->closing = etcd_revoke_call(tree, lease, session_ended, coord->session_ms / 2);
                etcd_call_post(tree->closing);
        }
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static uint64_t tick(struct remote *remote, uint64_t now_ms)
{
        struct etcd_tree *tree = (struct etcd_tree *)remote;
        uint64_t next_ms = etcd_endpoint_tick(tree, now_ms);
        if (remote->opening && !remote->is_closing) {
                if (etcd_is_ready(tree, now_ms) || now_ms >= tree->opening_by_ms)
                        remote_tell_opened(remote);
                else
                        next_ms = min_u64(next_ms, tree->opening_by_ms);
        }
        if (!remote->is_closing)
                next_ms = min_u64(next_ms, etcd_session_tick(tree, now_ms));
        if (!remote->is_closing)
                next_ms = min_u64(next_ms, etcd_stream_tick(tree, now_ms));
        if (!remote->is_closing)
                next_ms = min_u64(next_ms, etcd_call_tick(tree, now_ms));
        if (!remote->is_closing)
                remote_flush(remote);
        return remote->is_closing ? UINT64_MAX : next_ms;
}

static void tell_changed(void *self, const char *path)
{
        struct etcd_tree *tree = self;
        const struct coord_events *events = &tree->remote.coord.events;
        if (events->changed && !tree->remote.is_closing)
                events->changed(events->self, path);
}

static const struct remote_hooks hooks = {
        .make = etcd_request_make,
        .send = etcd_request_send,
        .forget = etcd_call_forget,
        .beat = etcd_beat,
        .tick = tick,
        .close = close_http,
        .free = tree_free,
};

static int read_options(
        struct etcd_tree *tree, uv_loop_t *loop, const struct coord_options *options, struct error *error)
{
        int r = url_parse(options->url, URL_FOR_COORDINATION, "/", &tree->url, error);
        if (r)
                return error_prefix(error, r, "coordination url");
        tree->http = curl_http_new(loop, &(struct curl_http_options){ .tls = options->tls }, error);
        return tree->http ? 0 : -ENOTSUP;
}

void etcd_make(struct uv_loop_s *loop, struct coord_open *open, uint64_t patience_ms)
{
        struct coord_request *request = &open->request;
        const struct coord_options *options = &open->options;
        struct etcd_tree *tree = memory_zero(1, sizeof(*tree));
        if (!request->status)
                request->status = read_options(tree, loop, options, &request->error);
        remote_init(&tree->remote, &hooks, loop, open, &etcd_driver, tree->url.text);
        tree->watches.tell = tell_changed;
        tree->watches.self = tree;
        if (request->status)
                return;
        tree->prefix = text_printf("%s/%s/", tree->url.path, options->app);
        tree->user = text_copy(options->user && options->user[0] ? options->user : DEFAULT_USER);
        tree->password = text_copy(options->password);
        tree->wanted_ms = tree->remote.coord.session_ms;
        tree->endpoint = (size_t)random() % tree->url.hosts_count;
        tree->made_ms = clock_boot_ms();
        tree->opening_by_ms = tree->made_ms + patience_ms;
}

static void etcd_open(struct uv_loop_s *loop, struct coord_open *open)
{
        etcd_make(loop, open, REMOTE_OPENING_MS);
}

const struct coord_driver etcd_driver = {
        .scheme = "etcd",
        .open = etcd_open,
        .end_session = etcd_end_session,
        .start = remote_start,
        .token = etcd_token,
        .close = etcd_close,
};
