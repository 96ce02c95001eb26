/* pool_actions.c: performs the pool's actions. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "host/pool/pool_io_private.h"

static void defer(struct pool_io *io, const struct pool_event *event)
{
        if (io->queue_count == io->queue_room) {
                size_t room = io->queue_room ? io->queue_room * 2 : 64;
                struct pool_event *queue = memory_resize(io->queue, room * sizeof(*queue));
                io->queue = queue;
                io->queue_room = room;
        }
        io->queue[io->queue_count++] = *event;
}

static void do_spawn(struct pool_io *io, struct pool_runner *runner)
{
        struct error error = { "" };
        struct process *p = NULL;
        *io->last_words = 0;
        if (process_start(io->pools->loop, &io->shape, io->leases, &io->pools->host, &io->start, &pool_process_events,
                    io, &p, &error) == 0) {
                runner->process = p;
                if (io->events->spawned)
                        io->events->spawned(io->owner, p->pid);
                return;
        }
        (void)snprintf(io->last_words, sizeof(io->last_words), "%s", error.text);
        io->events->refused(io->owner, error.text);
        static const struct death never_lived = { .exit_status = 1 };
        defer(io, &(struct pool_event){ .kind = POOL_GONE, .runner = runner, .death = &never_lived });
}

static void do_hand(struct pool_io *io, const struct pool_action *action)
{
        struct process *p = action->runner->process;
        struct pool_task *const *batch = io->actions.batch + action->first;
        struct ring_task one = { 0 };
        struct ring_task *tasks = &one;
        uint64_t ticket = 0;
        if (action->count > 1)
                tasks = memory_zero(action->count, sizeof(*tasks));
        for (uint32_t i = 0; i < action->count; i++)
                tasks[i] = batch[i]->task;
        int r = ring_host_submit(&p->ring, tasks, (void *const *)batch, action->count, &ticket);
        for (uint32_t i = 0; r == 0 && i < action->count; i++)
                batch[i]->ticket = ticket + i, batch[i]->pid = (int32_t)p->pid;
        if (tasks != &one)
                free(tasks);
        if (r == 0) {
                io->pools->latest = p;
                return;
        }
        static const struct ring_reply too_large = { .outcome = OUTCOME_REJECT,
                .error = "the task is larger than this handler's limit" };
        if (r == -EBADMSG)
                defer(io, &(struct pool_event){ .kind = POOL_BROKEN, .runner = action->runner });
        for (uint32_t i = action->count; i-- > 0;) {
                bool is_too_large = r == -EMSGSIZE && ring_task_size(&batch[i]->task) > io->shape.task_bytes_max;
                if (is_too_large)
                        defer(io, &(struct pool_event){ .kind = POOL_ANSWERED, .task = batch[i], .reply = &too_large });
                else
                        defer(io, &(struct pool_event){ .kind = r == -EAGAIN ? POOL_FULL : POOL_TAKEN_BACK,
                                          .runner = action->runner,
                                          .task = batch[i] });
        }
}

static void do_stop(const struct pool_action *action)
{
        struct process *p = action->runner->process;
        struct ring_view s;
        for (uint32_t cursor = 0; ring_host_each(&p->ring, &cursor, &s);) {
                if (s.owner != action->task)
                        continue;
                /* A batch is stopped by its first ticket, which the seat shows.  If the seat shows a ticket that cannot
                 * belong to the same batch, it is on another task, and the flag has no effect. */
                struct ring_seat_view seat;
                ring_host_seat(&p->ring, s.seat, &seat);
                bool is_batch = seat.ticket < s.ticket && s.ticket - seat.ticket < p->ring.map.shape.entries;
                ring_host_stop(&p->ring, s.seat, is_batch && seat.ticket ? seat.ticket : s.ticket);
        }
}

static void do_settle(struct pool_io *io, const struct pool_action *action, uint64_t now_ns)
{
        struct settled settled = { .outcome = action->outcome,
                .is_suspect = action->is_suspect,
                .never_started = action->never_started,
                .why = action->why,
                .reply = action->reply,
                .error = "",
                .at_ns = now_ns };
        char text[BLAME_TEXT_MAX];
        if (!action->reply && io->ending && action->death == &io->ending->death) {
                pool_io_keep_settled(io, action);
                return;
        }
        if (action->reply) {
                settled.error = action->reply->error;
                settled.checkpoint = action->reply->has_checkpoint ? action->reply->checkpoint : NULL;
                settled.checkpoint_size = action->reply->checkpoint_size;
        } else {
                settled.error = blame_text(text, sizeof(text), action->why, action->seat, 0, action->death);
        }
        io->events->settled(io->owner, action->task, &settled);
}

static void do_quarantine(struct pool_io *io)
{
        char text[ERROR_TEXT_MAX + POOL_IO_WORDS_MAX];
        (void)snprintf(text, sizeof(text),
                "handler %s: %u runners in a row failed before they answered a task; no more are started until a "
                "reload (quiver reload)%s%s",
                io->start.handler, io->pool.failures, *io->last_words ? "; the last error: " : "", io->last_words);
        io->events->quarantined(io->owner, text);
}

static struct process *process_of(const struct pool_action *action)
{
        return action->runner->process;
}

static void perform(struct pool_io *io, const struct pool_action *action, uint64_t now_ns)
{
        switch (action->kind) {
        case ACTION_SPAWN:
                do_spawn(io, action->runner);
                break;
        case ACTION_HAND:
                do_hand(io, action);
                break;
        case ACTION_TAKE_BACK:
                if (ring_host_take_back(&process_of(action)->ring, action->task->ticket))
                        defer(io, &(struct pool_event){ .kind = POOL_TAKEN_BACK, .task = action->task });
                break;
        case ACTION_LOOK:
                defer(io, &(struct pool_event){ .kind = POOL_SEEN, .runner = action->runner });
                break;
        case ACTION_STOP:
                do_stop(action);
                break;
        case ACTION_ABORT:
                process_kill(process_of(action), SIGABRT);
                break;
        case ACTION_KILL:
                process_kill(process_of(action), SIGKILL);
                break;
        case ACTION_RETIRE:
                ring_host_retire(&process_of(action)->ring);
                break;
        case ACTION_SETTLE:
                do_settle(io, action, now_ns);
                break;
        case ACTION_QUARANTINE:
                do_quarantine(io);
                break;
        }
}

static void step(struct pool_io *io, const struct pool_event *event, uint64_t now_ns)
{
        uint64_t now_ms = now_ns / NS_PER_MS;
        struct pool_event seen;
        struct pool_view *views = NULL;
        if (event->kind == POOL_SEEN) {
                /* The process may have ended since ACTION_LOOK. */
                if (!event->runner->process)
                        return;
                bool is_broken;
                seen = *event;
                views = pool_io_look(event->runner->process, now_ms, &seen.views_count, &is_broken);
                seen.views = views;
                if (is_broken)
                        seen.kind = POOL_BROKEN;
                event = &seen;
        }
        pool_step(&io->pool, event, now_ms, &io->actions);
        free(views);
        for (size_t i = 0; i < io->actions.count; i++)
                perform(io, &io->actions.list[i], now_ns);
}

void pool_io_post(struct pool_io *io, const struct pool_event *event)
{
        pool_io_post_at(io, event, clock_boot_ns());
}

void pool_io_post_at(struct pool_io *io, const struct pool_event *event, uint64_t now_ns)
{
        if (io->is_stepping) {
                defer(io, event);
                return;
        }
        io->is_stepping = true;
        step(io, event, now_ns);
        while (io->queue_at < io->queue_count) {
                struct pool_event next = io->queue[io->queue_at++];
                step(io, &next, now_ns);
        }
        io->queue_at = io->queue_count = 0;
        io->is_stepping = false;
        pool_io_check_stopped(io);
}

void pool_io_check_stopped(struct pool_io *io)
{
        if (!io->is_stopping || io->has_stopped || io->is_stepping || io->ending || io->endings ||
                !pool_is_empty(&io->pool))
                return;
        io->has_stopped = true;
        io->events->stopped(io->owner);
}
