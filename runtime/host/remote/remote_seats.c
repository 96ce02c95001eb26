/* remote_seats.c: our tasks on seats of other hosts: which tasks go there, and how their outcomes come back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/numbers.h"
#include "host/handler/handlers.h"
#include "host/lend/seat_outcome.h"
#include "host/remote/remote_private.h"
#include "host/shard/shard_io.h"

/* A task is lent only after waiting this long: before that it probably starts here sooner. */
#define LEND_AFTER_MS UINT64_C(100)

/* --- to the seats --- */

/* A task that waits in the pool for a seat and could be lent. */
static struct pool_task *find_in_pool(const struct pool *pool, uint64_t before_ms)
{
        for (struct pool_task *task = pool->waiting; task; task = task->next)
                if (!task->is_borrowed && window_may_lend((const struct claimed *)task, before_ms))
                        return task;
        return NULL;
}

/* The next task for another host's seat.  A task that waits in the pool is taken back if the windows have none of its
 * lane or a higher one. */
static struct claimed *next_task(
        struct handler *handler, struct generation *generation, uint64_t now_ms, struct shard **ret_shard)
{
        struct dispatch *dispatch = handler->all->dispatch;
        const struct pool *pool = &generation->pool_io.pool;
        uint64_t before_ms = now_ms - min_u64(now_ms, LEND_AFTER_MS);
        /* The waiting time decides whether a task is lent, the lane decides which. */
        if (!find_in_pool(pool, before_ms) && !dispatch_count_to_lend(dispatch, handler->slot, LANES, before_ms, 1))
                return NULL;
        struct pool_task *waiting = find_in_pool(pool, now_ms);
        unsigned lanes = waiting ? STORE_SEQ_LANE(((const struct claimed *)waiting)->seq) + 1u : 0;
        if (waiting && !dispatch_count_to_lend(dispatch, handler->slot, lanes, now_ms, 1)) {
                const struct shard *shard = waiting->owner;
                pool_io_recall(&generation->pool_io, waiting);
                for (unsigned lane = 0; lane < LANES; lane++)
                        if (window_has_ready_of(&shard->window, (enum lane)lane))
                                shard_set_add(&dispatch->ready[lane], shard->number);
        }
        return dispatch_next_to_lend(dispatch, handler->slot, now_ms, now_ms, ret_shard);
}

void remote_feed_seats(struct handler *handler, uint64_t now_ms)
{
        struct generation *generation = handler_current(handler);
        struct work_poll *poll;
        struct shard *shard = NULL;
        struct claimed *c;
        if (!handler->remote.polls)
                return;
        bool is_lending = generation->settings->spread && !handler->all->is_leaving;
        while (is_lending && (poll = remote_free_poll(&handler->remote)) &&
                (c = next_task(handler, generation, now_ms, &shard)))
                remote_lend(handler, poll, shard, c, now_ms);
        remote_expire_polls(handler, now_ms);
}

uint32_t remote_count_wanting(const struct handler *handler, uint32_t max, uint64_t now_ms)
{
        const struct generation *generation = handler_current(handler);
        struct dispatch *dispatch = handler->all->dispatch;
        uint64_t before_ms = now_ms - min_u64(now_ms, LEND_AFTER_MS);
        if (!generation || !generation->settings->spread || handler->all->is_leaving ||
                dispatch->pools[handler->slot].is_paused)
                return 0;
        if (handler_is_remote(generation->settings))
                return !remote_own_polls(&handler->remote) &&
                       (dispatch_has_waiting(dispatch, handler->slot) || dispatch_has_stored(dispatch, handler->slot));
        const struct pool *pool = &generation->pool_io.pool;
        /* Tasks of a handler that is down do not wait for seats. */
        if (pool->state != POOL_OPEN || pool_free_seats(pool))
                return 0;
        uint32_t count = dispatch_count_to_lend(dispatch, handler->slot, LANES, before_ms, max);
        for (const struct pool_task *task = pool->waiting; task && count < max; task = task->next)
                count += !task->is_borrowed && window_may_lend((const struct claimed *)task, before_ms);
        return count;
}

/* --- outcomes from the seats --- */

void remotes_decline(
        struct handlers *all, uint32_t shard, const struct work_fence *fence, struct span id, uint64_t now_ms)
{
        struct lent *lent = remote_find(all, shard, fence->seq);
        if (!lent || !remote_is_current(lent, fence, id))
                return;
        log_event(LEVEL_DEBUG, "declined", "handler=%s task=%s host=%s", all->list[lent->slot]->name,
                lent->claimed->id.data, lent->worker);
        remote_watch(&all->remotes, lent);
        remote_take_back(lent, now_ms);
}

/* The machines' clocks differ: only the duration is taken over. */
static struct ring_reply reply_of(const struct seat_outcome *outcome, uint64_t now_ms)
{
        struct ring_reply reply = outcome->reply;
        reply.ticket = 0;
        reply.ended_ns = now_ms * NS_PER_MS;
        reply.started_ns = (now_ms - min_u64(now_ms, outcome->ran_ms)) * NS_PER_MS;
        return reply;
}

bool remote_obey_seat(struct handlers *all, struct shard *shard, const struct store_control *control, uint64_t now_ms,
        struct error *error)
{
        struct seat_outcome outcome;
        if (seat_outcome_parse(control->data, &outcome, error) < 0)
                return false;
        struct lent *lent = remote_find(all, shard->number, control->seq);
        if (!lent || !remote_is_current(lent, &outcome.fence, control->id)) {
                (void)error_set(error, -ESTALE, "this is not the current start of the task any more");
                return false;
        }
        struct ring_reply reply = reply_of(&outcome, now_ms);
        struct settled settled = { .outcome = outcome.outcome,
                .is_suspect = outcome.is_suspect,
                .is_excused = outcome.is_excused,
                .error = outcome.error,
                .reply = outcome.has_reply ? &reply : NULL,
                .checkpoint = outcome.has_checkpoint ? outcome.checkpoint.data : NULL,
                .checkpoint_size = outcome.checkpoint.size };
        lent->claimed->is_for_owner |= outcome.is_refused;
        remote_settle(all, lent, &settled);
        return true;
}
