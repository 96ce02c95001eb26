/* open.c: the driver: opens and closes a tree and its connection. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "coord/redis/redis_tree.h"

/* --- closing ----------------------------------------------------------------------------------------------------- */

static void tree_free(struct remote *remote)
{
        struct redis_tree *tree = (struct redis_tree *)remote;
        rtree_watch_free_all(tree);
        explicit_bzero(tree->nonce, sizeof(tree->nonce));
        text_free_secret(tree->password);
        text_free_secret(tree->sentinel_password);
        free(tree->user);
        free(tree->sentinel_user);
        tls_files_free(&tree->tls);
        free((char *)tree->redis_url);
        free(tree->prefix);
        free(tree);
}

static void on_disconnected(void *self)
{
        remote_end(self);
}

static void disconnect(struct redis_tree *tree)
{
        struct redis *redis = tree->redis ? tree->redis : tree->is_connecting ? tree->redis_open.redis : NULL;
        if (tree->is_disconnecting)
                return;
        tree->is_disconnecting = true;
        coord_cancel(&tree->remote.coord, -ECANCELED);
        if (redis)
                redis_close(redis, on_disconnected, tree);
        else
                on_disconnected(tree);
}

static void session_finished(struct tree_op *op)
{
        struct redis_tree *tree = op->tree;
        rtree_op_free(op);
        disconnect(tree);
}

void rtree_close(struct coord *coord, void (*closed)(void *self), void *self)
{
        struct redis_tree *tree = (struct redis_tree *)coord;
        remote_close(&tree->remote, closed, self);
        tree->remote.has_session = tree->redis && tree->number[0];
        if (tree->remote.has_session)
                rtree_op_send(
                        rtree_finish_op(tree, tree->number, tree->nonce, session_finished), coord->session_ms / 2);
}

/* The session is ended before the connection is closed. */
static void close_connection(struct remote *remote)
{
        if (!remote->has_session)
                disconnect((struct redis_tree *)remote);
}

/* --- the connection ---------------------------------------------------------------------------------------------- */

static void on_rang(void *self, const char *key, size_t size)
{
        struct redis_tree *tree = self;
        size_t prefix = strlen(tree->prefix);
        if (size > prefix + 1 && !memcmp(key, tree->prefix, prefix) && key[prefix] == ':')
                rtree_watch_rang(tree, key + prefix + 1, size - prefix - 1);
}

static void on_look(void *self)
{
        struct redis_tree *tree = self;
        const struct coord_events *events = &tree->remote.coord.events;
        rtree_watch_clear(tree);
        if (events->look && tree->remote.coord.session && !tree->remote.is_closing)
                events->look(events->self);
}

static void on_state(void *self, bool is_up, const char *text)
{
        struct redis_tree *tree = self;
        /* Logged for hosts only: a visitor has no session, and at first the opener waits for it anyway. */
        if (tree->redis && !tree->remote.coord.is_visitor)
                log_event(LEVEL_INFO, "coordination-redis", "up=%d text=%s", is_up, LOG_QUOTE(text));
        if (is_up)
                remote_beat_soon(&tree->remote);
        else
                remote_suspend(&tree->remote);
}

static bool is_final(int status)
{
        return status == -EACCES || status == -EINVAL || status == -ENOTSUP || status == -EPROTO;
}

void rtree_refuse(struct redis_tree *tree, int status, const char *why)
{
        struct coord_open *opening = tree->remote.opening;
        if (!opening) {
                remote_refuse_all(&tree->remote, status, why);
                return;
        }
        opening->request.status = error_set(&opening->request.error, status, "%s", why);
        tree->remote.is_closing = true;
        disconnect(tree);
}

static void on_connected(struct redis_open *open, int status)
{
        struct redis_tree *tree = container_of(open, struct redis_tree, redis_open);
        tree->is_connecting = false;
        if (tree->remote.is_closing)
                return;
        if (status) {
                tree->connect_at_ms = clock_boot_ms() + remote_beat_every_ms(&tree->remote);
                if (is_final(status))
                        rtree_refuse(tree, status, tree->redis_open.error.text);
                remote_wake_at(&tree->remote, tree->connect_at_ms);
                return;
        }
        tree->redis = open->redis;
        tree->remote.refusal.text[0] = 0;
        /* A visitor is open once connected.  Others wait for the first answered heartbeat, because a user may log in
         * and yet lack rights. */
        if (tree->remote.coord.is_visitor)
                tree->opening_by_ms = 0;
        remote_flush(&tree->remote);
        remote_beat_soon(&tree->remote);
}

static void start_connecting(struct redis_tree *tree)
{
        tree->is_connecting = true;
        tree->redis_open = (struct redis_open){ .opened = on_connected,
                .options = { .url = tree->redis_url,
                        .user = tree->user,
                        .password = tree->password,
                        .sentinel_user = tree->sentinel_user,
                        .sentinel_password = tree->sentinel_password,
                        .tls = tree->tls,
                        .name = "quiver-coordination",
                        .wants_bell = !tree->remote.coord.is_visitor,
                        .deadline_ms = tree->remote.coord.session_ms,
                        .events = &tree->redis_events } };
        redis_open(tree->loop, &tree->redis_open);
}

static void tick_connection(struct redis_tree *tree, uint64_t now_ms)
{
        struct remote *remote = &tree->remote;
        if (!tree->redis && !tree->is_connecting && now_ms >= tree->connect_at_ms)
                start_connecting(tree);
        if (!tree->redis && !tree->is_connecting)
                remote_wake_at(remote, tree->connect_at_ms);
        if (!remote->opening)
                return;
        if (now_ms >= tree->opening_by_ms)
                remote_tell_opened(remote);
        else
                remote_wake_at(remote, tree->opening_by_ms);
}

static uint64_t tick(struct remote *remote, uint64_t now_ms)
{
        struct redis_tree *tree = (struct redis_tree *)remote;
        tick_connection(tree, now_ms);
        return remote->is_closing ? UINT64_MAX : rtree_session_tick(tree, now_ms);
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

/* The tree is in the store's Redis, or in one of its own. */
static int choose_redis(struct redis_tree *tree, const struct coord_options *options, struct error *error)
{
        bool is_stores = !strcmp(options->url, "redis");
        const char *url = is_stores ? options->store_url : options->url;
        if (!url || strncmp(url, "redis", 5) != 0)
                return error_set(error, -EINVAL,
                        "coordination url \"redis\" is the Redis of the store, and the store is none; "
                        "write redis://HOST:PORT");
        tree->redis_url = text_copy(url);
        tree->user = text_copy(is_stores ? options->store_user : options->user);
        tree->password = text_copy(is_stores ? options->store_password : options->password);
        tree->sentinel_user = text_copy(is_stores ? options->store_sentinel_user : options->sentinel_user);
        tree->sentinel_password = text_copy(is_stores ? options->store_sentinel_password : options->sentinel_password);
        tree->tls = tls_files_copy(is_stores ? &options->store_tls : &options->tls);
        return 0;
}

static const struct remote_hooks hooks = {
        .make = rtree_request_make,
        .send = rtree_request_send,
        .forget = rtree_op_forget,
        .beat = rtree_beat,
        .tick = tick,
        .close = close_connection,
        .free = tree_free,
};

void rtree_make(struct uv_loop_s *loop, struct coord_open *open, uint64_t patience_ms)
{
        struct coord_request *request = &open->request;
        struct redis_tree *tree = memory_zero(1, sizeof(*tree));
        tree->prefix = text_printf("quiver:{%s:coord}", open->options.app ? open->options.app : "");
        tree->loop = loop;
        tree->redis_events = (struct redis_events){ on_rang, on_look, on_state, tree };
        tree->opening_by_ms = clock_boot_ms() + patience_ms;
        rtree_scripts_init(&tree->scripts);
        if (!request->status)
                request->status = choose_redis(tree, &open->options, &request->error);
        remote_init(&tree->remote, &hooks, loop, open, &redis_tree_driver, open->options.url);
}

static void tree_open(struct uv_loop_s *loop, struct coord_open *open)
{
        rtree_make(loop, open, REMOTE_OPENING_MS);
}

const struct coord_driver redis_tree_driver = {
        .scheme = "redis",
        .open = tree_open,
        .end_session = rtree_end_session,
        .start = remote_start,
        .token = rtree_token,
        .close = rtree_close,
        .rights = rtree_rights,
};
