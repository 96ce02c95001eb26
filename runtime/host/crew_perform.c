/* crew_perform.c: what the pool wants done, done. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "host/crew_parts.h"

static void defer(struct crew *crew, const struct pool_event *event)
{
        if (crew->queue_count == crew->queue_room) {
                size_t room = crew->queue_room ? crew->queue_room * 2 : 64;
                struct pool_event *queue = realloc(crew->queue, room * sizeof(*queue));
                if (!queue)
                        abort();
                crew->queue = queue;
                crew->queue_room = room;
        }
        crew->queue[crew->queue_count++] = *event;
}

static void do_spawn(struct crew *crew, struct pool_runner *runner)
{
        struct error error = { "" };
        struct process *p = NULL;
        *crew->last_words = 0;
        if (process_start(crew->loop, &crew->shape, crew->leases, &crew->start, &crew_process_events, crew, &p,
                    &error) == 0) {
                runner->process = p;
                if (crew->events->spawned)
                        crew->events->spawned(crew->owner, p->pid);
                return;
        }
        (void)snprintf(crew->last_words, sizeof(crew->last_words), "%s", error.text);
        crew->events->refused(crew->owner, error.text);
        static const struct death never_lived = { .exit_status = 1 };
        defer(crew, &(struct pool_event){ .kind = POOL_GONE, .runner = runner, .death = &never_lived });
}

static void do_hand(struct crew *crew, const struct pool_action *action)
{
        struct process *p = action->runner->process;
        struct pool_task *const *batch = crew->actions.batch + action->first;
        struct ring_task one = { 0 };
        struct ring_task *tasks = &one;
        uint64_t ticket = 0;
        if (action->count > 1 && !(tasks = calloc(action->count, sizeof(*tasks))))
                abort();
        for (uint32_t i = 0; i < action->count; i++)
                tasks[i] = batch[i]->task;
        int r = ring_host_submit(&p->ring, tasks, (void *const *)batch, action->count, &ticket);
        for (uint32_t i = 0; r == 0 && i < action->count; i++)
                batch[i]->ticket = ticket + i;
        if (tasks != &one)
                free(tasks);
        if (r == 0)
                return;
        static const struct ring_reply too_large = { .outcome = OUTCOME_REJECT,
                .error = "the task is larger than this handler's limit" };
        if (r == -EBADMSG)
                defer(crew, &(struct pool_event){ .kind = POOL_BROKEN, .runner = action->runner });
        for (uint32_t i = action->count; i-- > 0;) {
                bool is_too_large = r == -EMSGSIZE && ring_task_size(&batch[i]->task) > crew->shape.task_bytes_max;
                if (is_too_large)
                        defer(crew,
                                &(struct pool_event){ .kind = POOL_ANSWERED, .task = batch[i], .reply = &too_large });
                else
                        defer(crew, &(struct pool_event){ .kind = r == -EAGAIN ? POOL_FULL : POOL_TAKEN_BACK,
                                            .runner = action->runner,
                                            .task = batch[i] });
        }
}

static void do_stop(const struct pool_action *action)
{
        struct process *p = action->runner->process;
        struct ring_sight s;
        for (uint32_t cursor = 0; ring_host_each(&p->ring, &cursor, &s);) {
                if (s.owner != action->task)
                        continue;
                /* A batch is stopped by its first ticket, which the seat shows; a seat that shows an older one is on
                 * something else by now. */
                struct ring_seat_sight seat;
                ring_host_seat(&p->ring, s.seat, &seat);
                bool is_batch = seat.ticket < s.ticket && s.ticket - seat.ticket < p->ring.map.shape.entries;
                ring_host_stop(&p->ring, s.seat, is_batch && seat.ticket ? seat.ticket : s.ticket);
        }
}

static void do_settle(struct crew *crew, const struct pool_action *action)
{
        char text[QV_ERROR_MAX + RING_FAULT_TEXT];
        uint8_t checkpoint[QV_CHECKPOINT_MAX];
        struct settled settled = { .outcome = action->outcome,
                .is_suspect = action->is_suspect,
                .never_started = action->never_started,
                .why = action->why,
                .reply = action->reply,
                .error = "" };
        if (action->reply) {
                settled.error = action->reply->error;
                settled.checkpoint = action->reply->has_checkpoint ? action->reply->checkpoint : NULL;
                settled.checkpoint_size = action->reply->checkpoint_size;
        } else {
                settled.error = blame_text(text, sizeof(text), action->why, action->seat, action->death);
        }
        struct process *p = action->runner ? action->runner->process : NULL;
        if (!action->reply && p && action->ticket) {
                uint32_t version;
                int size = ring_host_checkpoint(&p->ring, action->seat, action->ticket, checkpoint, &version);
                settled.checkpoint = size >= 0 ? checkpoint : NULL;
                settled.checkpoint_size = size >= 0 ? (size_t)size : 0;
        }
        crew->events->settled(crew->owner, action->task, &settled);
}

static void do_quarantine(struct crew *crew)
{
        char text[2 * ERROR_TEXT_MAX];
        (void)snprintf(text, sizeof(text),
                "handler %s: %u runners in a row failed before they had answered a single task; nothing more is "
                "started until the host is told to reload%s%s",
                crew->start.handler, crew->pool.failures, *crew->last_words ? "; the last one said: " : "",
                crew->last_words);
        crew->events->quarantined(crew->owner, text);
}

static struct process *process_of(const struct pool_action *action)
{
        return action->runner->process;
}

static void perform(struct crew *crew, const struct pool_action *action)
{
        switch (action->kind) {
        case ACTION_SPAWN:
                do_spawn(crew, action->runner);
                break;
        case ACTION_HAND:
                do_hand(crew, action);
                break;
        case ACTION_TAKE_BACK:
                if (ring_host_take_back(&process_of(action)->ring, action->task->ticket))
                        defer(crew, &(struct pool_event){ .kind = POOL_TAKEN_BACK, .task = action->task });
                break;
        case ACTION_LOOK:
                defer(crew, &(struct pool_event){ .kind = POOL_SEEN, .runner = action->runner });
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
                do_settle(crew, action);
                break;
        case ACTION_QUARANTINE:
                do_quarantine(crew);
                break;
        }
}

static void step(struct crew *crew, const struct pool_event *event)
{
        uint64_t now_ms = clock_boot_ms();
        struct pool_event seen = *event;
        struct pool_sight *sights = NULL;
        if (event->kind == POOL_SEEN) {
                /* The process may have ended since the look was asked for. */
                if (!event->runner->process)
                        return;
                bool is_broken;
                sights = crew_look(event->runner->process, now_ms, &seen.sights_count, &is_broken);
                seen.sights = sights;
                if (is_broken)
                        seen.kind = POOL_BROKEN;
        }
        pool_step(&crew->pool, &seen, now_ms, &crew->actions);
        free(sights);
        for (size_t i = 0; i < crew->actions.count; i++)
                perform(crew, &crew->actions.list[i]);
}

void crew_post(struct crew *crew, const struct pool_event *event)
{
        if (crew->is_stepping) {
                defer(crew, event);
                return;
        }
        crew->is_stepping = true;
        step(crew, event);
        while (crew->queue_at < crew->queue_count) {
                struct pool_event next = crew->queue[crew->queue_at++];
                step(crew, &next);
        }
        crew->queue_at = crew->queue_count = 0;
        crew->is_stepping = false;
        if (crew->is_stopping && !crew->has_stopped && pool_is_empty(&crew->pool)) {
                crew->has_stopped = true;
                crew->events->stopped(crew->owner);
        }
}
