/* open.c: the driver: opens and closes a tree, and collects what the client's threads have posted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "coord/zookeeper/zookeeper.h"

#define DEFAULT_USER "quiver"

/* --- closing ----------------------------------------------------------------------------------------------------- */

static void zk_free(struct remote *remote)
{
        struct zk *zk = (struct zk *)remote;
        url_free(&zk->url);
        explicit_bzero(&zk->id, sizeof(zk->id));
        text_free_secret(zk->auth);
        free(zk->root);
        free(zk->addresses);
        free(zk);
}

static void on_bell_closed(uv_handle_t *handle)
{
        remote_end(handle->data);
}

static void drop_links(struct zk *zk, bool all)
{
        for (struct zk_link **at = &zk->links; *at;) {
                struct zk_link *link = *at;
                if (!all && !link->is_gone) {
                        at = &link->next;
                        continue;
                }
                *at = link->next;
                zk_handle_leave(link->handle);
                free(link);
        }
}

/* Waits until the links have ended their sessions, until close_by_ms at the latest. */
static void close_links(struct remote *remote)
{
        struct zk *zk = (struct zk *)remote;
        if (uv_is_closing((uv_handle_t *)&zk->bell))
                return;
        if (zk->links && clock_boot_ms() < zk->close_by_ms) {
                remote_wake_at(remote, zk->close_by_ms);
                return;
        }
        drop_links(zk, true);
        uv_close((uv_handle_t *)&zk->bell, on_bell_closed);
}

static void zookeeper_close_tree(struct coord *coord, void (*closed)(void *self), void *self)
{
        struct zk *zk = (struct zk *)coord;
        remote_close(&zk->remote, closed, self);
        zk->close_by_ms = clock_boot_ms() + coord->session_ms;
        zk_session_end(zk, false);
        for (struct zk_link *link = zk->links; link; link = link->next)
                zk_handle_end(link->handle, false);
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

static uint64_t tick(struct remote *remote, uint64_t now_ms)
{
        if (remote->opening)
                remote_tell_opened(remote);
        return remote->is_closing ? UINT64_MAX : zk_session_tick((struct zk *)remote, now_ms);
}

static void take_posts(struct zk *zk, struct zk_link *from)
{
        struct post *next;
        for (struct post *post = zk_handle_collect(from->handle); post; post = next) {
                next = post->next;
                zk_session_take(zk, from, post);
        }
}

static void on_bell(uv_async_t *bell)
{
        struct zk *zk = bell->data;
        for (struct zk_link *link = zk->links; link; link = link->next)
                take_posts(zk, link);
        drop_links(zk, false);
        remote_turn(&zk->remote);
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

int zk_read_options(const struct coord_options *options, struct url *ret_url, char **ret_auth, struct error *error)
{
        const char *user = options->user && options->user[0] ? options->user : DEFAULT_USER;
        if (strchr(user, ':'))
                return error_set(error, -EINVAL, "coordination user: ZooKeeper allows no colon in it");
        int r = url_parse(options->url, URL_FOR_COORDINATION, "/", ret_url, error);
        if (r)
                return error_prefix(error, r, "coordination url");
        *ret_auth = options->password ? text_printf("%s:%s", user, options->password) : NULL;
        return 0;
}

static const struct remote_hooks hooks = {
        .make = zk_request_make,
        .send = zk_request_send,
        .forget = zk_call_forget,
        .beat = zk_beat,
        .tick = tick,
        .close = close_links,
        .free = zk_free,
};

static void zookeeper_open(struct uv_loop_s *loop, struct coord_open *open)
{
        struct coord_request *request = &open->request;
        struct zk *zk = memory_zero(1, sizeof(*zk));
        if (!request->status)
                request->status = zk_read_options(&open->options, &zk->url, &zk->auth, &request->error);
        remote_init(&zk->remote, &hooks, loop, open, &zookeeper_driver, zk->url.text);
        if (!request->status)
                zk->root = text_printf("%s/%s", zk->url.path, open->options.app);
        zk->acl = zk->auth ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
        zk->wanted_ms = zk->remote.coord.session_ms;
        zk->bell.data = zk;
        (void)uv_async_init(loop, &zk->bell, on_bell);
}

static void zookeeper_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX])
{
        zk_token_write(&((const struct zk *)coord)->id, ret_token);
}

const struct coord_driver zookeeper_driver = {
        .scheme = "zookeeper",
        .open = zookeeper_open,
        .end_session = zk_end_session,
        .start = remote_start,
        .token = zookeeper_token,
        .close = zookeeper_close_tree,
};
