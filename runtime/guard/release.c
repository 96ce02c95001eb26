/* release.c: returns a dead host's leases and ends its session, once no runner is left. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/url.h"
#include "coord/coord.h"
#include "guard/guard.h"
#include "guard/lease_returns.h"

#define AGAIN_MS       100
#define AGAIN_AHEAD_MS 1000 /* between two tries while the host lives */

struct guard_work {
        const struct guard_start *start;
        const char *token;
        uv_loop_t *loop;
        uv_timer_t timer;
        bool is_due; /* the host is dead */
        bool is_over;
        struct store_open open;
        bool is_opening;
        struct store *store; /* NULL: not open */
        struct coord_open visit;
        struct coord *tree; /* opened while the host lives; NULL: none */
        struct lease_returns returns;
        struct coord_end_session end;
};

static void on_tree_closed(void *self)
{
        (void)self;
}

static void end(struct guard_work *w)
{
        w->is_over = true;
        uv_close((uv_handle_t *)&w->timer, NULL);
        if (w->tree)
                coord_close(w->tree, on_tree_closed, NULL);
}

static void on_session_ended(struct coord_request *request)
{
        struct guard_work *w = container_of(request, struct guard_work, end.request);
        if (request->status < 0)
                log_event(LEVEL_WARN, "guard", "text=%s", LOG_QUOTE(request->error.text));
        end(w);
}

static const char *if_any(const char *text)
{
        return *text ? text : NULL;
}

static struct coord_options coord_options(const struct guard_start *s)
{
        return (struct coord_options){ .url = s->coord_url,
                .app = s->app,
                .session_ms = s->ttl_ms,
                .user = if_any(s->coord_user),
                .password = if_any(s->coord_password),
                .tls = s->coord_tls,
                .store_tls = s->store_tls,
                .store_url = s->store_url,
                .store_user = if_any(s->store_user),
                .store_password = if_any(s->store_password),
                .sentinel_user = if_any(s->coord_sentinel_user),
                .sentinel_password = if_any(s->coord_sentinel_password),
                .store_sentinel_user = if_any(s->store_sentinel_user),
                .store_sentinel_password = if_any(s->store_sentinel_password) };
}

static void end_session(struct guard_work *w)
{
        if (!*w->token) {
                end(w);
                return;
        }
        w->end = (struct coord_end_session){ .request.done = on_session_ended,
                .options = coord_options(w->start),
                .token = w->token,
                .through = w->tree };
        coord_end_session(w->loop, &w->end);
}

static void on_store_closed(void *self)
{
        end_session(self);
}

static void on_returned(struct lease_returns *returns)
{
        struct guard_work *w = container_of(returns, struct guard_work, returns);
        store_close(w->store, on_store_closed, w);
}

static void open_store(struct guard_work *w);

static void on_again(uv_timer_t *timer)
{
        open_store(timer->data);
}

/* The host is dead, and the store is open or cannot be opened now. */
static void give_back(struct guard_work *w)
{
        if (w->store) {
                w->returns.store = w->store;
                lease_returns_start(&w->returns);
        } else if (w->returns.count && clock_boot_ms() < w->returns.until_ms) {
                (void)uv_timer_start(&w->timer, on_again, AGAIN_MS, 0);
        } else {
                end_session(w);
        }
}

static void on_open(struct store_request *request)
{
        struct guard_work *w = container_of(request, struct guard_work, open.request);
        w->is_opening = false;
        w->store = w->open.store;
        if (w->is_due)
                give_back(w);
        else if (!w->store)
                (void)uv_timer_start(&w->timer, on_again, AGAIN_AHEAD_MS, 0);
}

static void open_store(struct guard_work *w)
{
        const struct guard_start *s = w->start;
        w->is_opening = true;
        w->open = (struct store_open){ .request.done = on_open,
                .options = { .url = s->store_url,
                        .app = s->app,
                        .user = if_any(s->store_user),
                        .password = if_any(s->store_password),
                        .sentinel_user = if_any(s->store_sentinel_user),
                        .sentinel_password = if_any(s->store_sentinel_password),
                        .tls = s->store_tls } };
        store_open(w->loop, &w->open);
}

/* --- ahead -------------------------------------------------------------------------------------------------------- */

static void on_visit(struct coord_request *request)
{
        struct guard_work *w = container_of(request, struct guard_work, visit.request);
        w->tree = request->status ? NULL : w->visit.coord;
        if (w->tree && w->is_over)
                coord_close(w->tree, on_tree_closed, NULL);
}

static bool is_tls(const struct guard_start *s)
{
        return url_is_redis_tls(strcmp(s->coord_url, "redis") ? s->coord_url : s->store_url);
}

struct guard_work *guard_work_open(uv_loop_t *loop, const struct guard_start *start)
{
        struct guard_work *w = memory_zero(1, sizeof(*w));
        w->start = start;
        w->loop = loop;
        (void)uv_timer_init(loop, &w->timer);
        w->timer.data = w;
        if (url_is_redis_tls(start->store_url))
                open_store(w);
        if (is_tls(start)) {
                w->visit = (struct coord_open){ .request.done = on_visit, .options = coord_options(start) };
                coord_open(loop, &w->visit);
        }
        return w;
}

/* --- the host is dead --------------------------------------------------------------------------------------------- */

/* Collects the leases that the page shows as held, expired or not, and those that may have been granted.  Acquiring a
 * lease with the same nonce then shows whether another host has it by now. */
static void collect(struct guard_work *w, const struct leases *leases)
{
        for (uint32_t i = 0; i < leases->count; i++) {
                uint64_t until_ns = atomic_load(&leases->slots[i].until_ns);
                if (!until_ns)
                        continue;
                uint64_t until_ms =
                        until_ns == LEASES_ASKED ? clock_boot_ms() + w->start->ttl_ms : until_ns / NS_PER_MS;
                struct store_lease lease = {
                        .shard = i, .epoch = atomic_load(&leases->slots[i].epoch), .ttl_ms = w->start->ttl_ms
                };
                memcpy(lease.nonce, w->start->nonce, STORE_NONCE_SIZE);
                lease_returns_add(&w->returns, &lease);
                if (until_ms > w->returns.until_ms)
                        w->returns.until_ms = until_ms;
        }
}

uint32_t guard_work_release(struct guard_work *w, const struct leases *leases, const char *token)
{
        w->token = token;
        w->is_due = true;
        w->returns = (struct lease_returns){ .timer = &w->timer, .done = on_returned };
        lease_returns_init(&w->returns, w->start->nonce, leases->count);
        collect(w, leases);
        (void)uv_timer_stop(&w->timer);
        if (!w->is_opening && !w->store)
                open_store(w);
        else if (!w->is_opening)
                give_back(w);
        (void)uv_run(w->loop, UV_RUN_DEFAULT);
        uint32_t released = w->returns.released;
        lease_returns_free(&w->returns);
        free(w);
        return released;
}
