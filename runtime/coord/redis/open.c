/* The driver: a tree is opened and closed; its connection, and its timer. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "coord/redis/redis_tree.h"

/* How long an opening waits for what will not heal: a wrong password, too old a server. */
#define OPENING_MS 500u

/* --- closing ----------------------------------------------------------------------------------------------------- */

static void free_secret(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct redis_tree *tree = handle->data;
        void (*closed)(void *self) = tree->closed;
        void *self = tree->closed_self;
        struct coord_open *failed = tree->opening;
        rtree_watch_free_all(tree);
        explicit_bzero(tree->nonce, sizeof(tree->nonce));
        free_secret(tree->password);
        free_secret(tree->sentinel_password);
        free(tree->user);
        free(tree->sentinel_user);
        free((char *)tree->redis_url);
        free(tree->prefix);
        coord_base_free(&tree->coord);
        free(tree);
        if (failed)
                coord_finish(&failed->request, failed->request.status);
        if (closed)
                closed(self);
}

static void on_disconnected(void *self)
{
        struct redis_tree *tree = self;
        uv_close((uv_handle_t *)&tree->timer, on_timer_closed);
}

static void disconnect(struct redis_tree *tree)
{
        struct redis *redis = tree->redis ? tree->redis : tree->is_connecting ? tree->redis_open.redis : NULL;
        if (tree->is_disconnecting)
                return;
        tree->is_disconnecting = true;
        coord_cancel(&tree->coord, -ECANCELED);
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
        tree->is_closing = true;
        tree->closed = closed;
        tree->closed_self = self;
        if (tree->beat)
                rtree_op_forget(tree->beat);
        tree->beat = NULL;
        for (struct coord_request *request = coord->requests; request; request = request->next)
                rtree_request_forget(request);
        if (tree->redis && tree->number[0])
                rtree_op_send(
                        rtree_finish_op(tree, tree->number, tree->nonce, session_finished), coord->session_ms / 2);
        else
                tree->number[0] = 0;
        rtree_wake_at(tree, 0);
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
        rtree_watch_clear(tree);
        if (tree->coord.events.look && tree->coord.session && !tree->is_closing)
                tree->coord.events.look(tree->coord.events.self);
}

static void on_state(void *self, bool is_up, const char *text)
{
        struct redis_tree *tree = self;
        if (tree->redis) /* before, whoever opens it waits for the session */
                log_event(LEVEL_INFO, "coordination_redis", "up=%d text=%s", is_up, LOG_QUOTE(text));
        if (is_up)
                rtree_beat_soon(tree);
        else
                rtree_suspend(tree);
}

static bool is_final(int status)
{
        return status == -EACCES || status == -EINVAL || status == -ENOTSUP || status == -EPROTO;
}

static void refuse(struct redis_tree *tree, int status)
{
        if (tree->opening) {
                tree->opening->request.status =
                        error_set(&tree->opening->request.error, status, "%s", tree->redis_open.error.text);
                tree->is_closing = true;
                disconnect(tree);
                return;
        }
        tree->refusal = tree->redis_open.error;
        log_event(LEVEL_ERROR, "coordination_refused", "error=%s", LOG_QUOTE(tree->refusal.text));
        rtree_request_refuse_all(tree, status, tree->refusal.text);
}

static void on_connected(struct redis_open *open, int status)
{
        struct redis_tree *tree = (struct redis_tree *)((char *)open - offsetof(struct redis_tree, redis_open));
        tree->is_connecting = false;
        if (tree->is_closing)
                return;
        if (status) {
                tree->connect_at_ms = clock_boot_ms() + tree->coord.session_ms / 3;
                if (is_final(status))
                        refuse(tree, status);
                rtree_wake_at(tree, tree->connect_at_ms);
                return;
        }
        tree->redis = open->redis;
        tree->refusal.text[0] = 0;
        tree->opening_by_ms = 0;
        rtree_request_flush(tree);
        rtree_beat_soon(tree);
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
                        .name = "quiver-coordination",
                        .scripts = tree->scripts.pointers,
                        .scripts_count = TREE_SCRIPTS,
                        .wants_bell = !tree->coord.is_visitor,
                        .deadline_ms = tree->coord.session_ms,
                        .events = &tree->redis_events } };
        redis_open(tree->loop, &tree->redis_open);
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

void rtree_wake_at(struct redis_tree *tree, uint64_t at_ms)
{
        uint64_t now_ms = clock_boot_ms();
        if (tree->timer_at_ms <= at_ms || uv_is_closing((uv_handle_t *)&tree->timer))
                return;
        tree->timer_at_ms = at_ms;
        (void)uv_timer_start(&tree->timer, on_timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

static void tell_opened(struct redis_tree *tree)
{
        struct coord_open *open = tree->opening;
        tree->opening = NULL;
        open->coord = &tree->coord;
        coord_finish(&open->request, 0);
}

static void turn_opening(struct redis_tree *tree, uint64_t now_ms)
{
        if (!tree->redis && !tree->is_connecting && now_ms >= tree->connect_at_ms)
                start_connecting(tree);
        if (tree->opening && now_ms >= tree->opening_by_ms)
                tell_opened(tree);
        if (tree->opening)
                rtree_wake_at(tree, tree->opening_by_ms);
        if (!tree->redis && !tree->is_connecting)
                rtree_wake_at(tree, tree->connect_at_ms);
}

static void on_timer(uv_timer_t *timer)
{
        struct redis_tree *tree = timer->data;
        uint64_t now_ms = clock_boot_ms();
        tree->timer_at_ms = UINT64_MAX;
        if (!tree->is_closing) {
                turn_opening(tree, now_ms);
                rtree_wake_at(tree, rtree_session_tick(tree, now_ms));
                rtree_request_finish_refused(tree);
                rtree_wake_at(tree, coord_sweep(&tree->coord, now_ms, rtree_request_forget));
        }
        if (!tree->is_closing)
                return;
        coord_cancel(&tree->coord, -ECANCELED);
        /* With a session, its end comes first. */
        if (!tree->number[0])
                disconnect(tree);
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

/* Where the tree is: the store's Redis, or one of its own. */
static int choose_redis(struct redis_tree *tree, const struct coord_options *options, struct error *error)
{
        bool is_stores = !strcmp(options->url, "redis");
        const char *url = is_stores ? options->store_url : options->url;
        if (!url || strncmp(url, "redis", 5) != 0)
                return error_set(error, -EINVAL,
                        "coordination url \"redis\" is the Redis of the store, and the store is none; "
                        "write redis://HOST:PORT");
        tree->redis_url = strdup(url);
        tree->user = text_copy(is_stores ? options->store_user : options->user);
        tree->password = text_copy(is_stores ? options->store_password : options->password);
        tree->sentinel_user = text_copy(is_stores ? options->store_sentinel_user : options->sentinel_user);
        tree->sentinel_password = text_copy(is_stores ? options->store_sentinel_password : options->sentinel_password);
        return 0;
}

void rtree_make(struct uv_loop_s *loop, struct coord_open *open, uint64_t patience_ms)
{
        struct coord_request *request = &open->request;
        struct redis_tree *tree = calloc(1, sizeof(*tree));
        if (!tree || asprintf(&tree->prefix, "quiver:{%s:coord}", open->options.app ? open->options.app : "") < 0)
                abort();
        tree->loop = loop;
        tree->opening = open;
        tree->timer_at_ms = UINT64_MAX;
        tree->timer.data = tree;
        tree->redis_events = (struct redis_events){ on_rang, on_look, on_state, tree };
        rtree_scripts_init(&tree->scripts);
        (void)uv_timer_init(loop, &tree->timer);
        if (!request->status)
                request->status = choose_redis(tree, &open->options, &request->error);
        if (request->status) {
                tree->is_closing = true;
        } else {
                coord_base_init(&tree->coord, &redis_tree_driver, &open->options, open->options.url);
                if (!tree->coord.session_ms)
                        tree->coord.session_ms = TREE_SESSION_DEFAULT_MS;
                tree->opening_by_ms = clock_boot_ms() + patience_ms;
        }
        rtree_wake_at(tree, 0);
}

static void tree_open(struct uv_loop_s *loop, struct coord_open *open)
{
        rtree_make(loop, open, OPENING_MS);
}

const struct coord_driver redis_tree_driver = {
        .scheme = "redis",
        .open = tree_open,
        .end_session = rtree_end_session,
        .start = rtree_request_start,
        .token = rtree_token,
        .close = rtree_close,
};
