#include "host/pool/pool_io.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "host/pool/pool_io_private.h"

static void on_busy(uv_idle_t *idle)
{
        (void)idle;
}

static void on_timer(uv_timer_t *timer)
{
        struct pool_io *io = timer->data;
        io->timer_ms = UINT64_MAX;
        pool_io_post(io, &(struct pool_event){ .kind = POOL_TICK });
}

static void set_timer(struct pool_io *io, uint64_t now_ms)
{
        uint64_t due_ms = pool_io_pass_on_saves(io, now_ms);
        uint64_t pool_ms = pool_due_ms(&io->pool);
        due_ms = min_u64(pool_ms, due_ms);
        if (due_ms == io->timer_ms)
                return;
        io->timer_ms = due_ms;
        if (due_ms == UINT64_MAX)
                (void)uv_timer_stop(&io->timer);
        else
                (void)uv_timer_start(&io->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* Wakes the pool's runners.  True: no answer is waiting, and the runners will ring the bell. */
static bool flush(struct pool_io *io)
{
        bool may_sleep = true;
        for (uint32_t i = 0; i < io->pool.runners_count; i++) {
                struct process *p = io->pool.runners[i].process;
                if (!p || !p->pid)
                        continue;
                ring_host_ring(&p->ring);
                if (io->pool.runners[i].why != BLAME_SCRIBBLE && !ring_host_sleep(&p->ring))
                        may_sleep = false;
        }
        set_timer(io, clock_boot_ms());
        return may_sleep;
}

static void collect(struct pool_io *io)
{
        for (uint32_t i = 0; i < io->pool.runners_count; i++) {
                struct process *p = io->pool.runners[i].process;
                if (!p || io->pool.runners[i].why == BLAME_SCRIBBLE)
                        continue;
                ring_host_awake(&p->ring);
                (void)pool_io_drain(io, p);
        }
}

/* --- all pools of a loop --- */

void pools_init(struct pools *pools, uv_loop_t *loop)
{
        *pools = (struct pools){ .loop = loop, .explainer = { .loop = loop }, .host.alive_fd = -1 };
        (void)uv_idle_init(loop, &pools->busy);
}

void pools_flush(struct pools *pools)
{
        bool may_sleep = true;
        for (struct pool_io *io = pools->list; io; io = io->next)
                may_sleep &= flush(io);
        if (may_sleep)
                (void)uv_idle_stop(&pools->busy);
        else
                (void)uv_idle_start(&pools->busy, on_busy);
}

void pools_expect(struct pools *pools)
{
        if (pools->latest)
                ring_host_expect(&pools->latest->ring);
}

/* An answer may close its pool and others: they leave the list at once, but their memory and links stay valid until the
 * loop has closed their timers. */
void pools_collect(struct pools *pools)
{
        for (struct pool_io *io = pools->list; io; io = io->next)
                collect(io);
}

void pools_close(struct pools *pools)
{
        explainer_close(&pools->explainer);
        uv_close((uv_handle_t *)&pools->busy, NULL);
}

/* --- one pool --- */

static void on_timer_closed(uv_handle_t *handle)
{
        struct pool_io *io = handle->data;
        pool_free(&io->pool);
        pool_actions_free(&io->actions);
        free(io->queue);
        io->queue = NULL;
        if (io->events->closed)
                io->events->closed(io->owner);
}

int pool_io_init(struct pool_io *io, struct pools *pools, const struct pool_policy *policy,
        const struct runner_start *start, const struct leases *leases, const struct pool_io_events *events, void *owner)
{
        *io = (struct pool_io){ .pools = pools,
                .start = *start,
                .leases = leases,
                .events = events,
                .owner = owner,
                .timer_ms = UINT64_MAX };
        const uint64_t around = 16384; /* for id, key, headers, checkpoint and error around a payload or result */
        io->shape = (struct ring_shape){ .seats = policy->threads,
                .entries = policy->ring_entries,
                .task_bytes_max = start->payload_max + around,
                .answer_bytes_max = start->result_max + start->payload_max + around };
        struct ring_offsets offsets;
        int r = ring_offsets(&io->shape, &offsets);
        if (r < 0)
                return r;
        pool_init(&io->pool, policy, clock_boot_ns());
        (void)uv_timer_init(pools->loop, &io->timer);
        io->timer.data = io;
        DL_APPEND(pools->list, io);
        return 0;
}

uint32_t pool_io_room(const struct pool_io *io, enum lane lane)
{
        return pool_room(&io->pool, lane);
}

bool pool_io_has_room(const struct pool_io *io)
{
        return pool_has_room(&io->pool);
}

bool pool_io_is_idle(const struct pool_io *io)
{
        return !io->endings && pool_is_idle(&io->pool);
}

void pool_io_offer(struct pool_io *io, struct pool_task *task, uint64_t now_ms)
{
        for (struct pool_task *t = task; t; t = t->run_next) {
                t->pool_io = io;
                t->saved_version = 0;
        }
        pool_io_post_at(io, &(struct pool_event){ .kind = POOL_OFFERED, .task = task }, now_ms * NS_PER_MS);
}

static void stop_task(struct pool_io *io, struct pool_task *task, enum blame_why why)
{
        if (task->is_ending)
                task->why = why; /* it has ended already; its owner decides what follows */
        else
                pool_io_post(io, &(struct pool_event){ .kind = POOL_CANCELLED, .task = task, .why = why });
}

static void stop_all(struct pool_io *io, enum blame_why why)
{
        struct pool *pool = &io->pool;
        while (pool->waiting)
                stop_task(io, pool->waiting, why);
        while (pool->suspects)
                stop_task(io, pool->suspects, why);
        for (uint32_t i = 0; i < pool->runners_count; i++)
                /* From the last on: stopping a task also takes back its followers. */
                for (struct pool_task *task = pool->runners[i].handed_last, *before; task; task = before) {
                        before = task->prev;
                        stop_task(io, task, why);
                }
}

void pool_io_recall(struct pool_io *io, struct pool_task *task)
{
        if (!task->is_ending)
                pool_io_post(io, &(struct pool_event){ .kind = POOL_RECALLED, .task = task });
}

void pool_io_cancel(struct pool_io *io, struct pool_task *task)
{
        stop_task(io, task, BLAME_CANCEL);
}

void pool_io_interrupt_task(struct pool_io *io, struct pool_task *task)
{
        stop_task(io, task, BLAME_SHUTDOWN);
}

void pool_io_cancel_all(struct pool_io *io)
{
        stop_all(io, BLAME_CANCEL);
}

void pool_io_interrupt(struct pool_io *io)
{
        stop_all(io, BLAME_SHUTDOWN);
}

uint32_t pool_io_size(const struct pool_io *io)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < io->pool.runners_count; i++)
                count += io->pool.runners[i].state != RUNNER_NONE && !io->pool.runners[i].is_solo;
        return count;
}

void pool_io_warm(struct pool_io *io, uint32_t runners)
{
        pool_io_post(io, &(struct pool_event){ .kind = POOL_WARM, .count = runners });
}

void pool_io_set_policy(struct pool_io *io, const struct pool_policy *policy)
{
        assert(!io->is_stepping);
        pool_set_policy(&io->pool, policy);
        /* With fewer processes some runners may have to retire. */
        pool_io_post(io, &(struct pool_event){ .kind = POOL_TICK });
}

void pool_io_set_start(struct pool_io *io, const struct runner_start *start)
{
        bool is_news = start->log_level != io->start.log_level;
        io->start = *start;
        for (uint32_t i = 0; is_news && i < io->pool.runners_count; i++)
                if (io->pool.runners[i].process)
                        process_set_level(io->pool.runners[i].process, start->log_level);
}

void pool_io_retreat(struct pool_io *io)
{
        io->is_stopping = true;
        pool_io_post(io, &(struct pool_event){ .kind = POOL_RETREAT });
}

void pool_io_resume(struct pool_io *io)
{
        io->is_stopping = io->has_stopped = false;
        pool_io_post(io, &(struct pool_event){ .kind = POOL_RESUME });
}

void pool_io_stop(struct pool_io *io)
{
        io->is_stopping = true;
        io->pool.is_draining = true;
        pool_io_post(io, &(struct pool_event){ .kind = POOL_TICK });
}

void pool_io_cut(struct pool_io *io)
{
        io->is_stopping = io->is_cut = true;
        pool_io_post(io, &(struct pool_event){ .kind = POOL_CUT });
        pool_io_tell_endings(io);
}

void pool_io_close(struct pool_io *io)
{
        DL_DELETE(io->pools->list, io);
        uv_close((uv_handle_t *)&io->timer, on_timer_closed);
}
