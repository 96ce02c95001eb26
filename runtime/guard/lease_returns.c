#include "guard/lease_returns.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define AGAIN_MS 100

static void give_back(struct lease_returns *h);
static void withdraw(struct lease_returns *h);

static void on_again(uv_timer_t *timer)
{
        give_back(timer->data);
}

/* Removes the documents of a dead host, so that it is not shown as running.  Otherwise they expire. */
static void on_withdrawn(struct store_request *request)
{
        struct lease_returns *h = container_of(request, struct lease_returns, put.request);
        if (++h->withdrawn < DOCUMENTS)
                withdraw(h);
        else
                h->done(h);
}

static void withdraw(struct lease_returns *h)
{
        h->put = (struct store_status_put){ .request.done = on_withdrawn, .kind = (enum store_document)h->withdrawn };
        memcpy(h->put.nonce, h->nonce, sizeof(h->put.nonce));
        store_status_put(h->store, &h->put);
}

static void finish_one(struct lease_return *b, int status)
{
        struct lease_returns *h = b->of;
        b->is_open = status < 0;
        h->unanswered += b->is_open;
        if (--h->pending)
                return;
        if (h->unanswered && h->timer && clock_boot_ms() < h->until_ms) {
                h->timer->data = h;
                (void)uv_timer_start(h->timer, on_again, AGAIN_MS, 0);
                return;
        }
        withdraw(h);
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
                h->pending += h->list[i].is_open;
        for (uint32_t i = 0; i < h->count; i++) {
                struct lease_return *b = &h->list[i];
                if (!b->is_open)
                        continue;
                b->acquire = (struct store_acquire){ .request.done = on_acquired, .lease = b->lease };
                store_acquire(h->store, &b->acquire);
        }
}

void lease_returns_init(struct lease_returns *h, const uint8_t nonce[STORE_NONCE_SIZE], uint32_t most)
{
        memcpy(h->nonce, nonce, sizeof(h->nonce));
        h->list = memory_zero(most, sizeof(*h->list));
        h->count = h->released = 0;
}

void lease_returns_add(struct lease_returns *h, const struct store_lease *lease)
{
        struct lease_return *b = &h->list[h->count++];
        b->of = h;
        b->is_open = true;
        b->lease = *lease;
}

void lease_returns_start(struct lease_returns *h)
{
        if (h->count)
                give_back(h);
        else
                withdraw(h);
}

void lease_returns_free(struct lease_returns *h)
{
        free(h->list);
        h->list = NULL;
}
