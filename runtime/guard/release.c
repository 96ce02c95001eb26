/* release.c: returns a dead host's leases and ends its session, once no runner is left. */
#include <stdatomic.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "coord/coord.h"
#include "guard/guard.h"
#include "guard/lease_returns.h"

#define AGAIN_MS 100

struct guard_work {
        const struct guard_start *start;
        const char *token;
        uv_loop_t loop;
        uv_timer_t timer;
        struct store_open open;
        struct lease_returns returns;
        struct coord_end_session end;
};

static void end(struct guard_work *w)
{
        uv_close((uv_handle_t *)&w->timer, NULL);
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

static void end_session(struct guard_work *w)
{
        if (!*w->token) {
                end(w);
                return;
        }
        const struct guard_start *s = w->start;
        w->end = (struct coord_end_session){
                .request.done = on_session_ended,
                .options = { .url = s->coord_url,
                        .app = s->app,
                        .session_ms = s->ttl_ms,
                        .user = if_any(s->coord_user),
                        .password = if_any(s->coord_password),
                        .ca_file = if_any(s->coord_ca_file),
                        .cert_file = if_any(s->coord_cert_file),
                        .key_file = if_any(s->coord_key_file),
                        .store_url = s->store_url,
                        .store_user = if_any(s->store_user),
                        .store_password = if_any(s->store_password),
                        .sentinel_user = if_any(s->coord_sentinel_user),
                        .sentinel_password = if_any(s->coord_sentinel_password),
                        .store_sentinel_user = if_any(s->store_sentinel_user),
                        .store_sentinel_password = if_any(s->store_sentinel_password) },
                .token = w->token,
        };
        coord_end_session(&w->loop, &w->end);
}

static void on_store_closed(void *self)
{
        end_session(self);
}

static void on_returned(struct lease_returns *returns)
{
        struct guard_work *w = container_of(returns, struct guard_work, returns);
        store_close(returns->store, on_store_closed, w);
}

static void open_store(struct guard_work *w);

static void on_again(uv_timer_t *timer)
{
        open_store(timer->data);
}

static void on_open(struct store_request *request)
{
        struct guard_work *w = container_of(request, struct guard_work, open.request);
        w->returns.store = w->open.store;
        if (request->status == 0) {
                lease_returns_start(&w->returns);
        } else if (clock_boot_ms() < w->returns.until_ms) {
                w->timer.data = w;
                (void)uv_timer_start(&w->timer, on_again, AGAIN_MS, 0);
        } else {
                end_session(w);
        }
}

static void open_store(struct guard_work *w)
{
        const struct guard_start *s = w->start;
        w->open = (struct store_open){ .request.done = on_open,
                .options = { .url = s->store_url,
                        .app = s->app,
                        .user = if_any(s->store_user),
                        .password = if_any(s->store_password),
                        .sentinel_user = if_any(s->store_sentinel_user),
                        .sentinel_password = if_any(s->store_sentinel_password) } };
        store_open(&w->loop, &w->open);
}

/* Collects the leases that the page shows as held, expired or not, and those that may have been granted.  The acquire
 * with the same nonce shows whether another host has one by now. */
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

uint32_t guard_release(const struct guard_start *start, const struct leases *leases, const char *token)
{
        struct guard_work w = { .start = start, .token = token, .returns = { .timer = &w.timer, .done = on_returned } };
        lease_returns_init(&w.returns, leases->count);
        collect(&w, leases);
        (void)uv_loop_init(&w.loop);
        (void)uv_timer_init(&w.loop, &w.timer);
        if (w.returns.count)
                open_store(&w);
        else
                end_session(&w);
        (void)uv_run(&w.loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&w.loop);
        lease_returns_free(&w.returns);
        return w.returns.released;
}
