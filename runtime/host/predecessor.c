#include "host/predecessor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

static void finish(struct predecessor *p, const char *trouble)
{
        uint64_t after_ms = clock_boot_ms() - p->since_ms;
        if (trouble)
                log_event(LEVEL_WARN, "predecessor", "leases=%" PRIu32 " after_ms=%" PRIu64 " text=%s hint=%s",
                        p->returns.released, after_ms, LOG_QUOTE(trouble),
                        LOG_QUOTE("what the killed host still holds ends by itself"));
        else
                log_event(LEVEL_INFO, "predecessor", "leases=%" PRIu32 " after_ms=%" PRIu64 " text=%s",
                        p->returns.released, after_ms,
                        LOG_QUOTE("the host before this one was killed with its guard; its leases are returned and its "
                                  "session is ended"));
        lease_returns_free(&p->returns);
        free(p->count.counts);
        p->count.counts = NULL;
        p->done(p->self);
}

static void on_session_ended(struct coord_request *request)
{
        struct predecessor *p = container_of(request, struct predecessor, end.request);
        finish(p, request->status < 0 ? request->error.text : NULL);
}

static void end_session(struct predecessor *p)
{
        if (!*p->run->session) {
                finish(p, NULL);
                return;
        }
        p->end = (struct coord_end_session){
                .request.done = on_session_ended, .options = p->coord, .token = p->run->session
        };
        coord_end_session(p->loop, &p->end);
}

static void on_returned(struct lease_returns *returns)
{
        end_session(container_of(returns, struct predecessor, returns));
}

static void on_counted(struct store_request *request)
{
        struct predecessor *p = container_of(request, struct predecessor, count.request);
        if (request->status < 0) {
                finish(p, request->error.text);
                return;
        }
        p->returns = (struct lease_returns){ .store = p->store, .done = on_returned };
        lease_returns_init(&p->returns, p->run->nonce, p->count.counted);
        for (uint32_t i = 0; i < p->count.counted; i++) {
                const struct store_counts *c = &p->count.counts[i];
                struct store_lease lease = { .shard = c->shard, .epoch = c->epoch, .ttl_ms = p->ttl_ms };
                memcpy(lease.nonce, p->run->nonce, sizeof(lease.nonce));
                if (c->is_held && c->left_ms && !memcmp(c->holder, lease.nonce, sizeof(lease.nonce)))
                        lease_returns_add(&p->returns, &lease);
        }
        lease_returns_start(&p->returns);
}

void predecessor_end(struct predecessor *p)
{
        struct store_info info;
        store_info(p->store, &info);
        p->since_ms = clock_boot_ms();
        p->count = (struct store_count){ .request.done = on_counted,
                .shards = info.shards,
                .counts = memory_zero(info.shards, sizeof(struct store_counts)) };
        store_count(p->store, &p->count);
}
