#include "host/crew.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "host/crew_parts.h"

static void on_busy(uv_idle_t *idle)
{
        (void)idle;
}

static void on_timer(uv_timer_t *timer)
{
        struct crew *crew = timer->data;
        crew->timer_ms = UINT64_MAX;
        crew_post(crew, &(struct pool_event){ .kind = POOL_TICK });
}

static void set_timer(struct crew *crew, uint64_t now_ms)
{
        uint64_t due_ms = crew_pass_on_saves(crew, now_ms);
        uint64_t pool_ms = pool_due_ms(&crew->pool);
        due_ms = pool_ms < due_ms ? pool_ms : due_ms;
        if (due_ms == crew->timer_ms)
                return;
        crew->timer_ms = due_ms;
        if (due_ms == UINT64_MAX)
                (void)uv_timer_stop(&crew->timer);
        else
                (void)uv_timer_start(&crew->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

void crew_flush(struct crew *crew)
{
        bool may_sleep = true;
        for (uint32_t i = 0; i < crew->pool.runners_count; i++) {
                struct process *p = crew->pool.runners[i].process;
                if (!p || !p->pid)
                        continue;
                ring_host_ring(&p->ring);
                if (crew->pool.runners[i].why != BLAME_SCRIBBLE && !ring_host_sleep(&p->ring))
                        may_sleep = false;
        }
        if (may_sleep)
                (void)uv_idle_stop(&crew->busy);
        else
                (void)uv_idle_start(&crew->busy, on_busy);
        set_timer(crew, clock_boot_ms());
}

static void on_prepare(uv_prepare_t *prepare)
{
        crew_flush(prepare->data);
}

static void on_check(uv_check_t *check)
{
        struct crew *crew = check->data;
        for (uint32_t i = 0; i < crew->pool.runners_count; i++) {
                struct process *p = crew->pool.runners[i].process;
                if (!p || crew->pool.runners[i].why == BLAME_SCRIBBLE)
                        continue;
                ring_host_awake(&p->ring);
                (void)crew_drain(crew, p);
        }
}

static void on_handle_closed(uv_handle_t *handle)
{
        struct crew *crew = handle->data;
        if (--crew->handles)
                return;
        pool_free(&crew->pool);
        pool_actions_free(&crew->actions);
        free(crew->queue);
        crew->queue = NULL;
        if (crew->events->closed)
                crew->events->closed(crew->owner);
}

int crew_init(struct crew *crew, uv_loop_t *loop, const struct pool_policy *policy, const struct runner_start *start,
        const struct leases *leases, const struct crew_events *events, void *owner)
{
        *crew = (struct crew){ .loop = loop,
                .start = *start,
                .leases = leases,
                .events = events,
                .owner = owner,
                .timer_ms = UINT64_MAX,
                .handles = 4 };
        const uint64_t around = 16384; /* id, key, headers, checkpoint, error: what a payload or result travels with */
        crew->shape = (struct ring_shape){ .seats = policy->threads,
                .entries = policy->ring_entries,
                .task_bytes_max = start->payload_max + around,
                .answer_bytes_max = start->result_max + start->payload_max + around };
        struct ring_offsets offsets;
        int r = ring_offsets(&crew->shape, &offsets);
        if (r == 0)
                r = pool_init(&crew->pool, policy, clock_boot_ns());
        if (r < 0)
                return r;
        (void)uv_prepare_init(loop, &crew->prepare);
        (void)uv_check_init(loop, &crew->check);
        (void)uv_idle_init(loop, &crew->busy);
        (void)uv_timer_init(loop, &crew->timer);
        crew->prepare.data = crew->check.data = crew->busy.data = crew->timer.data = crew;
        (void)uv_prepare_start(&crew->prepare, on_prepare);
        (void)uv_check_start(&crew->check, on_check);
        return 0;
}

uint32_t crew_room(const struct crew *crew)
{
        return pool_room(&crew->pool);
}

bool crew_has_room(const struct crew *crew)
{
        return pool_has_room(&crew->pool);
}

void crew_offer(struct crew *crew, struct pool_task *task)
{
        task->crew = crew;
        task->saved_version = 0;
        crew_post(crew, &(struct pool_event){ .kind = POOL_OFFERED, .task = task });
}

static void stop_task(struct crew *crew, struct pool_task *task, enum blame_why why)
{
        crew_post(crew, &(struct pool_event){ .kind = POOL_CANCELLED, .task = task, .why = why });
}

static void stop_all(struct crew *crew, enum blame_why why)
{
        struct pool *pool = &crew->pool;
        while (pool->waiting)
                stop_task(crew, pool->waiting, why);
        while (pool->suspects)
                stop_task(crew, pool->suspects, why);
        for (uint32_t i = 0; i < pool->runners_count; i++)
                for (struct pool_task *task = pool->runners[i].handed, *next; task; task = next) {
                        next = task->next;
                        stop_task(crew, task, why);
                }
}

void crew_cancel(struct crew *crew, struct pool_task *task)
{
        stop_task(crew, task, BLAME_CANCEL);
}

void crew_cancel_all(struct crew *crew)
{
        stop_all(crew, BLAME_CANCEL);
}

void crew_interrupt(struct crew *crew)
{
        stop_all(crew, BLAME_SHUTDOWN);
}

uint32_t crew_size(const struct crew *crew)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < crew->pool.runners_count; i++)
                count += crew->pool.runners[i].state != RUNNER_NONE && !crew->pool.runners[i].is_solo;
        return count;
}

void crew_warm(struct crew *crew, uint32_t runners)
{
        crew_post(crew, &(struct pool_event){ .kind = POOL_WARM, .count = runners });
}

int crew_set_policy(struct crew *crew, const struct pool_policy *policy)
{
        assert(!crew->is_stepping);
        int r = pool_set_policy(&crew->pool, policy);
        /* Some may be too many now. */
        if (r == 0)
                crew_post(crew, &(struct pool_event){ .kind = POOL_TICK });
        return r;
}

void crew_set_start(struct crew *crew, const struct runner_start *start)
{
        bool is_news = start->log_level != crew->start.log_level;
        crew->start = *start;
        for (uint32_t i = 0; is_news && i < crew->pool.runners_count; i++)
                if (crew->pool.runners[i].process)
                        process_set_level(crew->pool.runners[i].process, start->log_level);
}

void crew_retreat(struct crew *crew)
{
        crew->is_stopping = true;
        crew_post(crew, &(struct pool_event){ .kind = POOL_RETREAT });
}

void crew_resume(struct crew *crew)
{
        crew->is_stopping = crew->has_stopped = false;
        crew_post(crew, &(struct pool_event){ .kind = POOL_RESUME });
}

void crew_stop(struct crew *crew)
{
        crew->is_stopping = true;
        crew->pool.is_draining = true;
        crew_post(crew, &(struct pool_event){ .kind = POOL_TICK });
}

void crew_cut(struct crew *crew)
{
        crew->is_stopping = true;
        crew_post(crew, &(struct pool_event){ .kind = POOL_CUT });
}

void crew_close(struct crew *crew)
{
        uv_close((uv_handle_t *)&crew->prepare, on_handle_closed);
        uv_close((uv_handle_t *)&crew->check, on_handle_closed);
        uv_close((uv_handle_t *)&crew->busy, on_handle_closed);
        uv_close((uv_handle_t *)&crew->timer, on_handle_closed);
}
