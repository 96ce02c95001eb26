/* lease_returns.c: returns a dead host's leases and ends its session, once no runner is left. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "coord/coord.h"
#include "guard/guard.h"

#define AGAIN_MS 100

struct lease_returns;

/* One lease that is being returned.  A release needs the number of the last call, which the guard does not know.  So it
 * acquires first: the same nonce and epoch are granted the lease again, with that number. */
struct lease_return {
        struct lease_returns *of;
        struct store_lease lease;
        bool is_open; /* not yet returned, and the store has not reported another owner */
        union {
                struct store_request request;
                struct store_acquire acquire;
                struct store_release release;
        };
};

struct lease_returns {
        const struct guard_start *start;
        const char *token;
        uv_loop_t loop;
        uv_timer_t timer;
        uint64_t until_ms; /* when the last of the leases expires */
        struct store_open open;
        struct store *store;
        struct lease_return *returns;
        uint32_t count, pending, unanswered, released;
        struct coord_end_session end;
};

static void end(struct lease_returns *h)
{
        uv_close((uv_handle_t *)&h->timer, NULL);
}

static void on_session_ended(struct coord_request *request)
{
        struct lease_returns *h = container_of(request, struct lease_returns, end.request);
        if (request->status < 0)
                log_event(LEVEL_WARN, "guard", "text=%s", LOG_QUOTE(request->error.text));
        end(h);
}

static const char *if_any(const char *text)
{
        return *text ? text : NULL;
}

static void end_session(struct lease_returns *h)
{
        if (!*h->token) {
                end(h);
                return;
        }
        const struct guard_start *s = h->start;
        h->end = (struct coord_end_session){
                .request.done = on_session_ended,
                .options = { .url = s->coord_url,
                        .app = s->app,
                        .session_ms = s->ttl_ms,
                        .user = if_any(s->coord_user),
                        .password = if_any(s->coord_password),
                        .store_url = s->store_url,
                        .store_user = if_any(s->store_user),
                        .store_password = if_any(s->store_password),
                        .sentinel_user = if_any(s->coord_sentinel_user),
                        .sentinel_password = if_any(s->coord_sentinel_password),
                        .store_sentinel_user = if_any(s->store_sentinel_user),
                        .store_sentinel_password = if_any(s->store_sentinel_password) },
                .token = h->token,
        };
        coord_end_session(&h->loop, &h->end);
}

static void on_store_closed(void *self)
{
        end_session(self);
}

static void give_back(struct lease_returns *h);

static void on_ask_again(uv_timer_t *timer)
{
        give_back(timer->data);
}

static void finish_one(struct lease_return *b, int status)
{
        struct lease_returns *h = b->of;
        b->is_open = status < 0;
        h->unanswered += b->is_open;
        if (--h->pending)
                return;
        if (h->unanswered && clock_boot_ms() < h->until_ms) {
                (void)uv_timer_start(&h->timer, on_ask_again, AGAIN_MS, 0);
                return;
        }
        struct store *store = h->store;
        h->store = NULL;
        store_close(store, on_store_closed, h);
}

static void on_released(struct store_request *request)
{
        struct lease_return *b = container_of(request, struct lease_return, request);
        if (request->status == 0 && b->release.verdict == STORE_OK)
                b->of->released++;
        finish_one(b, request->status);
}

static void on_acquired(struct store_request *request)
{
        struct lease_return *b = container_of(request, struct lease_return, request);
        /* Not granted: another host has the lease.  A negative status: the store did not answer, and finish_one() tries
         * again. */
        if (request->status < 0 || b->acquire.grant != STORE_GRANTED) {
                finish_one(b, request->status);
                return;
        }
        uint64_t call = b->acquire.call + 1;
        b->release = (struct store_release){
                .request.done = on_released, .lease = b->lease, .call = call, .is_death = true
        };
        store_release(b->of->store, &b->release);
}

static void give_back(struct lease_returns *h)
{
        h->pending = h->unanswered = 0;
        for (uint32_t i = 0; i < h->count; i++)
                h->pending += h->returns[i].is_open;
        for (uint32_t i = 0; i < h->count; i++) {
                struct lease_return *b = &h->returns[i];
                if (!b->is_open)
                        continue;
                b->acquire = (struct store_acquire){ .request.done = on_acquired, .lease = b->lease };
                store_acquire(h->store, &b->acquire);
        }
}

static void open_store(struct lease_returns *h);

static void on_again(uv_timer_t *timer)
{
        open_store(timer->data);
}

static void on_open(struct store_request *request)
{
        struct lease_returns *h = container_of(request, struct lease_returns, open.request);
        h->store = h->open.store;
        if (request->status == 0)
                give_back(h);
        else if (clock_boot_ms() < h->until_ms)
                (void)uv_timer_start(&h->timer, on_again, AGAIN_MS, 0);
        else
                end_session(h);
}

static void open_store(struct lease_returns *h)
{
        const struct guard_start *s = h->start;
        h->open = (struct store_open){ .request.done = on_open,
                .options = { .url = s->store_url,
                        .app = s->app,
                        .user = if_any(s->store_user),
                        .password = if_any(s->store_password),
                        .sentinel_user = if_any(s->store_sentinel_user),
                        .sentinel_password = if_any(s->store_sentinel_password) } };
        store_open(&h->loop, &h->open);
}

/* Collects the leases that the page shows as held, expired or not, and those that may have been granted.  The acquire
 * with the same nonce shows whether another host has one by now. */
static void collect(struct lease_returns *h, const struct leases *leases)
{
        for (uint32_t i = 0; i < leases->count; i++) {
                uint64_t until_ns = atomic_load(&leases->slots[i].until_ns);
                if (!until_ns)
                        continue;
                uint64_t until_ms =
                        until_ns == LEASES_ASKED ? clock_boot_ms() + h->start->ttl_ms : until_ns / NS_PER_MS;
                struct lease_return *b = &h->returns[h->count++];
                b->of = h;
                b->is_open = true;
                b->lease = (struct store_lease){
                        .shard = i, .epoch = atomic_load(&leases->slots[i].epoch), .ttl_ms = h->start->ttl_ms
                };
                memcpy(b->lease.nonce, h->start->nonce, STORE_NONCE_SIZE);
                if (until_ms > h->until_ms)
                        h->until_ms = until_ms;
        }
}

uint32_t guard_release(const struct guard_start *start, const struct leases *leases, const char *token)
{
        struct lease_returns h = { .start = start, .token = token };
        h.returns = memory_zero(leases->count, sizeof(*h.returns));
        collect(&h, leases);
        (void)uv_loop_init(&h.loop);
        (void)uv_timer_init(&h.loop, &h.timer);
        h.timer.data = &h;
        if (h.count)
                open_store(&h);
        else
                end_session(&h);
        (void)uv_run(&h.loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&h.loop);
        free(h.returns);
        return h.released;
}
