/* shard_io.c: a host's shards and the store: makes the calls that shards want, and hands the replies back. */
#include <errno.h>
#include <inttypes.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/host_parts.h"

static void show_lease(struct shard_io *io)
{
        const struct shard *s = &io->shard;
        uint64_t until_ns = shard_may_be_held(s) ? LEASES_ASKED : shard_is_held(s) ? s->until_ms * NS_PER_MS : 0;
        leases_set(&io->host->leases, s->number, s->lease.epoch, until_ns);
}

/* One that runs under a lease that we have lost, or that is not renewed any more, and has not been told. */
static struct claimed *find_stale(const struct shard *s)
{
        for (struct window_key *key = s->window.keys; key; key = key->hh.next)
                for (struct claimed *c = key->first; c; c = c->next)
                        if (c->state == CLAIMED_RUNNING && !c->is_told_to_stop &&
                                (c->lease_number != s->lease_number || s->is_refused))
                                return c;
        return NULL;
}

/* Its shard was taken from us: told to stop, killed after the grace.  Each look starts anew: one that had not started
 * yet is settled, and forgotten, on the spot. */
static void cancel_stale(struct shard_io *io)
{
        struct claimed *c;
        while ((c = find_stale(&io->shard))) {
                c->is_told_to_stop = true;
                pool_io_cancel(c->pool_task.pool_io, &c->pool_task);
        }
}

static void after_reply(struct shard_io *io, uint64_t fenced_before)
{
        struct shard *s = &io->shard;
        show_lease(io);
        if (s->stale_epoch)
                membership_report(io->host);
        if (s->fenced != fenced_before)
                log_event(LEVEL_WARN, "fenced", "shard=%" PRIu32 " epoch=%" PRIu64, s->number, s->lease.epoch);
        if (s->fenced != fenced_before || s->is_refused)
                cancel_stale(io);
}

static bool has_failed(struct shard_io *io, const struct store_request *request)
{
        if (request->status == 0)
                return false;
        if (request->status == -ECANCELED)
                return true;
        if (!io->shard.failures)
                log_event(LEVEL_ERROR, "store", "shard=%" PRIu32 " text=%s", io->shard.number,
                        LOG_QUOTE(request->error.text));
        shard_failed(&io->shard, clock_boot_ms());
        return true;
}

static void on_acquired(struct store_request *request)
{
        struct shard_io *io = (struct shard_io *)((char *)request - offsetof(struct shard_io, request));
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        shard_acquired(&io->shard, &io->acquire, shard_io_pool_of, io, clock_boot_ms());
        if (io->acquire.grant == STORE_GRANTED)
                log_event(LEVEL_DEBUG, "acquired", "shard=%" PRIu32 " epoch=%" PRIu64 " in_flight=%" PRIu32,
                        io->shard.number, io->shard.lease.epoch, io->acquire.page.tasks_count);
        after_reply(io, fenced);
}

static void on_paged(struct store_request *request)
{
        struct shard_io *io = (struct shard_io *)((char *)request - offsetof(struct shard_io, request));
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        shard_paged(&io->shard, &io->page, shard_io_pool_of, io);
        after_reply(io, fenced);
}

/* What a person asked for, as far as it is about tasks that we hold. */
static void obey(struct shard_io *io, const struct store_control *control)
{
        struct claimed *c =
                control->verb == CONTROL_CANCEL ? window_find(&io->shard.window, control->key, control->seq) : NULL;
        if (c && c->state == CLAIMED_RUNNING)
                pool_io_cancel(c->pool_task.pool_io, &c->pool_task);
        else
                shard_obey(&io->shard, control, clock_boot_ms());
}

static void forward_outbox(struct shard_io *io);

static void on_forwarded(struct store_request *request)
{
        struct shard_io *io = (struct shard_io *)((char *)request - offsetof(struct shard_io, forward.request));
        io->is_forwarding = false;
        /* What could not be handed over shows again in a later reply. */
        if (request->status == 0 && io->forward.verdict == STORE_OK && io->forward.has_more)
                forward_outbox(io);
}

/* Follow-ups for other shards that the store could not put there itself. */
static void forward_outbox(struct shard_io *io)
{
        if (io->is_forwarding)
                return;
        io->is_forwarding = true;
        io->forward = (struct store_forward){ .request = { .done = on_forwarded }, .lease = io->shard.lease };
        store_forward(io->host->store, &io->forward);
}

/* A call that told of few ends was made for the sake of those who wait for them. */
static void make_urgent(struct shard_io *io)
{
        struct host *h = io->host;
        uint32_t told = io->advance.outcomes_count;
        if (io->is_urgent || !told || told > URGENT_TASKS_MAX)
                return;
        io->is_urgent = true;
        DL_APPEND2(h->urgent, io, urgent_prev, urgent_next);
}

static void on_advanced(struct store_request *request)
{
        struct shard_io *io = (struct shard_io *)((char *)request - offsetof(struct shard_io, request));
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        shard_advanced(&io->shard, &io->advance, shard_io_pool_of, io, clock_boot_ms());
        make_urgent(io);
        for (uint32_t i = 0; i < io->advance.controls_count; i++)
                obey(io, &io->advance.controls[i]);
        if (io->advance.verdict == STORE_OK && io->advance.has_outbox)
                forward_outbox(io);
        after_reply(io, fenced);
}

static void on_released(struct store_request *request)
{
        struct shard_io *io = (struct shard_io *)((char *)request - offsetof(struct shard_io, request));
        if (has_failed(io, request))
                return;
        shard_released(&io->shard);
        show_lease(io);
}

void shard_io_call(struct shard_io *io, enum shard_call call, uint64_t now_ms)
{
        struct host *h = io->host;
        switch (call) {
        case SHARD_CALL_ACQUIRE:
                shard_fill_acquire(&io->shard, &io->acquire, now_ms);
                /* The last owner is gone, but a member from which it was to move may hold it still: never force that.
                 */
                if (assignment_lists(&h->membership.assignment, io->shard.holder))
                        io->acquire.is_firm = false;
                /* Before it is sent: should we die before the answer comes, our guard gives this one back, too. */
                show_lease(io);
                io->request.done = on_acquired;
                store_acquire(h->store, &io->acquire);
                break;
        case SHARD_CALL_PAGE:
                shard_fill_page(&io->shard, &io->page, now_ms);
                io->request.done = on_paged;
                store_in_flight(h->store, &io->page);
                break;
        case SHARD_CALL_ADVANCE:
                shard_fill_advance(&io->shard, &io->advance, now_ms);
                io->request.done = on_advanced;
                store_advance(h->store, &io->advance);
                break;
        case SHARD_CALL_RELEASE:
                shard_fill_release(&io->shard, &io->release, now_ms);
                io->request.done = on_released;
                store_release(h->store, &io->release);
                break;
        case SHARD_CALL_NONE:
                break;
        }
}

/* --- renewal --- */

static void on_renewed(struct store_request *request)
{
        struct host *h = (struct host *)((char *)request - offsetof(struct host, renew.request));
        h->is_renewing = false;
        if (request->status == -ECANCELED)
                return;
        membership_store_seen(h, request->status == 0);
        if (request->status < 0)
                return;
        membership_reconcile(h);
        if (h->renew.desired_version != h->desired_version)
                host_ask_desired(h);
        for (uint32_t i = 0; i < h->renew.items_count; i++) {
                struct shard_io *io = &h->shards[h->renewals[i].lease.shard];
                uint64_t fenced = io->shard.fenced;
                if (io->shard.lease.epoch == h->renewals[i].lease.epoch)
                        shard_renewed(&io->shard, &h->renewals[i], h->renew_sent_ms, clock_boot_ms());
                after_reply(io, fenced);
        }
}

void host_renew(struct host *h, uint64_t now_ms)
{
        h->renew_at_ms = now_ms + h->limits.ttl_ms / 3;
        if (h->is_renewing || !h->store || h->is_closing)
                return;
        uint32_t count = 0;
        for (uint32_t i = 0; i < h->shards_count; i++) {
                const struct shard *s = &h->shards[i].shard;
                if (shard_is_held(s))
                        h->renewals[count++] = (struct store_renewal){ .lease = s->lease };
        }
        /* Also without any: an answer proves that the store is there, and tells of the desired state. */
        h->renew = (struct store_renew){ .items = h->renewals, .items_count = count };
        h->renew.request.done = on_renewed;
        h->renew_sent_ms = now_ms;
        h->is_renewing = true;
        store_renew(h->store, &h->renew);
}
