/* The driver: a tree is opened and closed; its bell brings what the client's threads posted, its timer what is due. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "coord/zookeeper/zookeeper.h"

#define DEFAULT_USER "quiver"

void zk_ring(struct zk *zk)
{
        (void)uv_async_send(&zk->bell);
}

/* --- closing ----------------------------------------------------------------------------------------------------- */

static void on_freed(uv_handle_t *handle)
{
        struct zk *zk = handle->data;
        void (*closed)(void *self) = zk->closed;
        void *self = zk->closed_self;
        url_free(&zk->url);
        if (zk->auth)
                explicit_bzero(zk->auth, strlen(zk->auth));
        explicit_bzero(&zk->id, sizeof(zk->id));
        free(zk->auth);
        free(zk->root);
        free(zk->addresses);
        coord_base_free(&zk->coord);
        free(zk);
        if (closed)
                closed(self);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct zk *zk = handle->data;
        uv_close((uv_handle_t *)&zk->bell, on_freed);
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

static void close_if_done(struct zk *zk)
{
        if (uv_is_closing((uv_handle_t *)&zk->timer))
                return;
        if (zk->links && clock_boot_ms() < zk->close_by_ms)
                return;
        drop_links(zk, true);
        uv_close((uv_handle_t *)&zk->timer, on_timer_closed);
}

static void zookeeper_close_tree(struct coord *coord, void (*closed)(void *self), void *self)
{
        struct zk *zk = (struct zk *)coord;
        zk->is_closing = true;
        zk->closed = closed;
        zk->closed_self = self;
        zk->close_by_ms = clock_boot_ms() + coord->session_ms;
        zk_session_end(zk, false);
        for (struct coord_request *request = coord->requests; request; request = request->next)
                zk_request_forget(request);
        for (struct zk_link *link = zk->links; link; link = link->next)
                zk_handle_end(link->handle, false);
        zk_ring(zk);
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

void zk_wake_at(struct zk *zk, uint64_t at_ms)
{
        uint64_t now_ms = clock_boot_ms();
        if (zk->timer_at_ms <= at_ms || uv_is_closing((uv_handle_t *)&zk->timer))
                return;
        zk->timer_at_ms = at_ms;
        (void)uv_timer_start(&zk->timer, on_timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

/* What is due is done, and the timer set for what is next. */
static void turn(struct zk *zk)
{
        if (zk->is_closing) {
                coord_cancel(&zk->coord, -ECANCELED);
                zk->timer_at_ms = UINT64_MAX;
                zk_wake_at(zk, zk->close_by_ms);
                close_if_done(zk);
                return;
        }
        uint64_t now_ms = clock_boot_ms();
        uint64_t session_ms = zk_session_tick(zk, now_ms);
        uint64_t requests_ms = coord_sweep(&zk->coord, now_ms, zk_request_forget);
        zk->timer_at_ms = UINT64_MAX;
        zk_wake_at(zk, session_ms < requests_ms ? session_ms : requests_ms);
        if (zk->is_closing)
                zk_ring(zk);
}

static void on_timer(uv_timer_t *timer)
{
        turn(timer->data);
}

static void take_posts(struct zk *zk, struct zk_link *from)
{
        struct post *next;
        for (struct post *post = zk_handle_collect(from->handle); post; post = next) {
                next = post->next;
                zk_session_take(zk, from, post);
        }
}

static void tell_opened(struct zk *zk)
{
        struct coord_open *open = zk->opening;
        zk->opening = NULL;
        open->coord = &zk->coord;
        coord_finish(&open->request, 0);
}

static void on_bell(uv_async_t *bell)
{
        struct zk *zk = bell->data;
        if (zk->opening)
                tell_opened(zk);
        for (struct zk_link *link = zk->links; link; link = link->next)
                take_posts(zk, link);
        drop_links(zk, false);
        zk_request_finish_refused(zk);
        turn(zk);
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
        *ret_auth = NULL;
        if (options->password && asprintf(ret_auth, "%s:%s", user, options->password) < 0)
                abort();
        return 0;
}

/* A request that failed before there was a tree whose bell could ring. */
struct failure {
        uv_timer_t timer;
        struct coord_request *request;
};

static void on_failure_closed(uv_handle_t *handle)
{
        free(handle->data);
}

static void on_failure(uv_timer_t *timer)
{
        struct failure *failure = timer->data;
        struct coord_request *request = failure->request;
        uv_close((uv_handle_t *)timer, on_failure_closed);
        coord_finish(request, request->status);
}

static void fail_later(struct uv_loop_s *loop, struct coord_request *request)
{
        struct failure *failure = calloc(1, sizeof(*failure));
        if (!failure)
                abort();
        failure->request = request;
        failure->timer.data = failure;
        (void)uv_timer_init(loop, &failure->timer);
        (void)uv_timer_start(&failure->timer, on_failure, 0, 0);
}

static void zookeeper_open(struct uv_loop_s *loop, struct coord_open *open)
{
        struct coord_request *request = &open->request;
        struct url url = { 0 };
        char *auth = NULL;
        if (!request->status)
                request->status = zk_read_options(&open->options, &url, &auth, &request->error);
        if (request->status) {
                fail_later(loop, request);
                return;
        }
        struct zk *zk = calloc(1, sizeof(*zk));
        if (!zk || asprintf(&zk->root, "%s/%s", url.path, open->options.app) < 0)
                abort();
        coord_base_init(&zk->coord, &zookeeper_driver, &open->options, url.text);
        zk->url = url;
        zk->auth = auth;
        zk->acl = auth ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
        zk->wanted_ms = zk->coord.session_ms = open->options.session_ms ? open->options.session_ms : SESSION_DEFAULT_MS;
        zk->opening = open;
        zk->timer_at_ms = UINT64_MAX;
        zk->bell.data = zk->timer.data = zk;
        (void)uv_async_init(loop, &zk->bell, on_bell);
        (void)uv_timer_init(loop, &zk->timer);
        zk_ring(zk);
}

static void zookeeper_end_session(struct uv_loop_s *loop, struct coord_end_session *end)
{
        if (!end->request.status)
                zk_end_session(loop, end);
        if (end->request.status)
                fail_later(loop, &end->request);
}

static void zookeeper_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX])
{
        zk_token_write(&((const struct zk *)coord)->id, ret_token);
}

const struct coord_driver zookeeper_driver = {
        .scheme = "zookeeper",
        .open = zookeeper_open,
        .end_session = zookeeper_end_session,
        .start = zk_request_start,
        .token = zookeeper_token,
        .close = zookeeper_close_tree,
};
