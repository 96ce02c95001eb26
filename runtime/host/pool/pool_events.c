/* pool_events.c: turns messages, answers and deaths of runners into events for the pool. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/pool/pool_call.h"
#include "host/pool/pool_io_private.h"

/* The most answers to take from one runner before the other runners and the loop continue. */
#define ANSWERS_A_TURN 1024

static struct pool_runner *runner_of(struct process *p)
{
        struct pool_io *io = p->owner;
        for (uint32_t i = 0; i < io->pool.runners_count; i++)
                if (io->pool.runners[i].process == p)
                        return &io->pool.runners[i];
        return NULL;
}

static int by_ticket(const void *a, const void *b)
{
        const struct pool_view *x = a;
        const struct pool_view *y = b;
        return x->task->ticket < y->task->ticket ? -1 : x->task->ticket > y->task->ticket;
}

/* Times come from the runner and are not trusted: they are limited to the possible range. */
static uint64_t plausible_ms(uint64_t ns, uint64_t not_before_ms, uint64_t now_ms)
{
        uint64_t ms = ns / NS_PER_MS;
        return ms < not_before_ms ? not_before_ms : min_u64(ms, now_ms);
}

struct pool_view *pool_io_look(struct process *p, uint64_t now_ms, size_t *ret_count, bool *ret_is_broken)
{
        struct pool_view *views = memory_zero(p->ring.in_flight + 1, sizeof(*views));
        size_t count = 0;
        uint32_t cursor = 0;
        struct ring_view s;
        *ret_is_broken = false;
        while (ring_host_each(&p->ring, &cursor, &s)) {
                struct pool_task *task = s.owner;
                *ret_is_broken |= s.is_broken;
                struct ring_seat_view seat;
                ring_host_seat(&p->ring, s.seat, &seat);
                views[count++] = (struct pool_view){ .task = task,
                        .is_started = s.is_started,
                        .seat = s.seat,
                        .started_ms = plausible_ms(seat.started_ns, task->handed_ms, now_ms),
                        .progressed_ms = plausible_ms(seat.progressed_ns, task->handed_ms, now_ms) };
        }
        qsort(views, count, sizeof(*views), by_ticket);
        *ret_count = count;
        return views;
}

struct pool_task *pool_io_task(struct process *p, uint64_t ticket)
{
        struct ring_view s;
        for (uint32_t cursor = 0; ticket && ring_host_each(&p->ring, &cursor, &s);)
                if (s.ticket == ticket)
                        return s.owner;
        return NULL;
}

static void on_ready(struct process *p, const struct runner_ready *ready)
{
        struct pool_io *io = p->owner;
        struct pool_runner *runner = runner_of(p);
        /* A second READY, or that of a runner that is being killed, is ignored. */
        if (runner->state != RUNNER_STARTING)
                return;
        io->events->ready(io->owner, ready, p->pid);
        pool_io_post(io, &(struct pool_event){ .kind = POOL_READY, .runner = runner, .has_many = ready->has_many });
}

static void on_refused(struct process *p, const char *text)
{
        struct pool_io *io = p->owner;
        /* After READY the runner does not send this message; only plugin code could. */
        if (runner_of(p)->state != RUNNER_STARTING)
                return;
        (void)snprintf(io->last_words, sizeof(io->last_words), "%s", text);
        io->events->refused(io->owner, text);
}

static void on_log(struct process *p, const struct runner_log *log)
{
        struct pool_io *io = p->owner;
        io->events->log(io->owner, log, pool_io_task(p, log->ticket));
}

static void take_notice(struct pool_io *io, struct process *p)
{
        if (!ring_host_has_attention(&p->ring))
                return;
        io->has_saves = p->has_saves = true;
        if (p->pid)
                pool_calls_take(io, p);
}

bool pool_io_drain(struct pool_io *io, struct process *p)
{
        struct ring_reply reply;
        void *task;
        uint64_t now_ns = clock_boot_ns();
        take_notice(io, p);
        for (int i = 0; i < ANSWERS_A_TURN; i++) {
                int r = ring_host_next(&p->ring, &reply, &task);
                if (r == 0)
                        return true;
                if (r < 0) {
                        pool_io_post(io, &(struct pool_event){ .kind = POOL_BROKEN, .runner = runner_of(p) });
                        return true;
                }
                /* The clock is read once for all answers that were there when it was. */
                if (reply.ended_ns > now_ns)
                        now_ns = clock_boot_ns();
                pool_io_post_at(
                        io, &(struct pool_event){ .kind = POOL_ANSWERED, .task = task, .reply = &reply }, now_ns);
        }
        return false;
}

static void on_rang(struct process *p)
{
        ring_host_awake(&p->ring);
}

static void on_gone(struct process *p)
{
        struct pool_io *io = p->owner;
        struct pool_runner *runner = runner_of(p);
        pool_calls_forget(p);
        if (io->events->reaped)
                io->events->reaped(io->owner, p->handle.pid, pool_exit_of(runner, p->term_signal));
        while (runner->why != BLAME_SCRIBBLE && !pool_io_drain(io, p))
                ;
        pool_io_end(io, runner, p);
}

const struct process_events pool_process_events = {
        .ready = on_ready,
        .refused = on_refused,
        .log = on_log,
        .rang = on_rang,
        .gone = on_gone,
};
