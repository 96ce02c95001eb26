#include "host/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Answers taken from one runner before the others and the loop get their turn. */
#define ANSWERS_A_TURN 1024

static void post(struct crew *crew, const struct pool_event *event);

static struct pool_runner *runner_of(struct process *p)
{
        struct crew *crew = p->owner;
        for (uint32_t i = 0; i < crew->pool.runners_count; i++)
                if (crew->pool.runners[i].process == p)
                        return &crew->pool.runners[i];
        return NULL;
}

/* --- what a runner's memory shows ------------------------------------------------------------------------------------
 */

static int by_ticket(const void *a, const void *b)
{
        const struct pool_sight *x = a;
        const struct pool_sight *y = b;
        return x->task->ticket < y->task->ticket ? -1 : x->task->ticket > y->task->ticket;
}

/* What the seat claims about times is only believed where it is possible. */
static uint64_t plausible_ms(uint64_t ns, uint64_t not_before_ms, uint64_t now_ms)
{
        uint64_t ms = ns / NS_PER_MS;
        return ms < not_before_ms ? not_before_ms : ms > now_ms ? now_ms : ms;
}

/* Everything the runner holds, in the order it was handed over; *ret_is_broken if that memory was written over.
 * Caller frees. */
static struct pool_sight *look(struct process *p, uint64_t now_ms, size_t *ret_count, bool *ret_is_broken)
{
        struct pool_sight *sights = calloc(p->ring.in_flight + 1, sizeof(*sights));
        if (!sights)
                abort();
        size_t count = 0;
        uint32_t cursor = 0;
        struct ring_sight s;
        *ret_is_broken = false;
        while (ring_host_each(&p->ring, &cursor, &s)) {
                struct pool_task *task = s.owner;
                *ret_is_broken |= s.is_broken;
                struct ring_seat_sight seat;
                ring_host_seat(&p->ring, s.seat, &seat);
                sights[count++] = (struct pool_sight){ .task = task,
                        .is_started = s.is_started,
                        .seat = s.seat,
                        .started_ms = plausible_ms(seat.started_ns, task->handed_ms, now_ms),
                        .progressed_ms = plausible_ms(seat.progressed_ns, task->handed_ms, now_ms) };
        }
        qsort(sights, count, sizeof(*sights), by_ticket);
        *ret_count = count;
        return sights;
}

/* --- what the processes say ------------------------------------------------------------------------------------------
 */

/* The task a log line belongs to, if it is still in flight. */
static struct pool_task *task_by_ticket(struct process *p, uint64_t ticket)
{
        struct ring_sight s;
        for (uint32_t cursor = 0; ticket && ring_host_each(&p->ring, &cursor, &s);)
                if (s.ticket == ticket)
                        return s.owner;
        return NULL;
}

static void on_ready(struct process *p, const struct runner_ready *ready)
{
        struct crew *crew = p->owner;
        struct pool_runner *runner = runner_of(p);
        /* Said twice, or by one that we are about to kill: not news. */
        if (runner->state != RUNNER_STARTING)
                return;
        crew->events->ready(crew->owner, ready, p->pid);
        post(crew, &(struct pool_event){ .kind = POOL_READY, .runner = runner, .has_many = ready->has_many });
}

static void on_refused(struct process *p, const char *text)
{
        struct crew *crew = p->owner;
        (void)snprintf(crew->last_words, sizeof(crew->last_words), "%s", text);
        crew->events->refused(crew->owner, text);
}

static void on_log(struct process *p, const struct runner_log *log)
{
        struct crew *crew = p->owner;
        crew->events->log(crew->owner, log, task_by_ticket(p, log->ticket));
}

static void answer_calls(struct crew *crew, struct process *p)
{
        if (!ring_host_has_attention(&p->ring))
                return;
        for (uint32_t seat = 0; seat < crew->shape.seats; seat++) {
                struct ring_call_sight call;
                if (!ring_host_call(&p->ring, seat, &call))
                        continue;
                uint64_t number = call.number;
                uint64_t holder = (uint64_t)p->pid << 16 | seat;
                int status = -ENOTSUP;
                if (call.service <= SERVICE_UNLOCK && (crew->start.can_call & 1u << call.service))
                        status = crew->events->call(
                                crew->owner, (enum ring_service)call.service, holder, call.name, &number);
                ring_host_reply(&p->ring, seat, &call, status, number);
        }
}

/* Posts the answers that are there; false if there may be more. */
static bool drain(struct crew *crew, struct process *p)
{
        struct ring_reply reply;
        void *task;
        answer_calls(crew, p);
        for (int i = 0; i < ANSWERS_A_TURN; i++) {
                int r = ring_host_next(&p->ring, &reply, &task);
                if (r == 0)
                        return true;
                if (r < 0) {
                        post(crew, &(struct pool_event){ .kind = POOL_BROKEN, .runner = runner_of(p) });
                        return true;
                }
                post(crew, &(struct pool_event){ .kind = POOL_ANSWERED, .task = task, .reply = &reply });
        }
        return false;
}

static void on_rang(struct process *p)
{
        ring_host_awake(&p->ring);
}

/* A runner that died on its way to READY without a word: say what is known. */
static void report_failed_start(struct crew *crew, const struct pool_runner *runner, const struct process *p)
{
        char text[ERROR_TEXT_MAX];
        if (runner->why == BLAME_INIT)
                (void)snprintf(text, sizeof(text), "plugin %s: it was not ready within %llu ms (constructor or init)",
                        crew->start.label, (unsigned long long)crew->pool.policy.init_ms);
        else if (p->term_signal)
                (void)snprintf(text, sizeof(text),
                        "plugin %s: killed by SIG%s before it was ready (constructor or init)", crew->start.label,
                        sigabbrev_np(p->term_signal));
        else
                (void)snprintf(text, sizeof(text), "plugin %s: exited with status %d before it was ready",
                        crew->start.label, (int)p->exit_status);
        struct ring_fault_sight fault;
        for (uint32_t i = 0; i < crew->shape.seats; i++) {
                ring_host_fault(&p->ring, i, &fault);
                if (fault.kind == FAULT_NONE || !*fault.text)
                        continue;
                size_t n = strlen(text);
                (void)snprintf(text + n, sizeof(text) - n, "\n%.*s", (int)(sizeof(text) - n - 2), fault.text);
                break;
        }
        (void)snprintf(crew->last_words, sizeof(crew->last_words), "%s", text);
        crew->events->refused(crew->owner, text);
}

static void on_gone(struct process *p)
{
        struct crew *crew = p->owner;
        struct pool_runner *runner = runner_of(p);
        while (runner->why != BLAME_SCRIBBLE && !drain(crew, p))
                ;
        if (runner->state == RUNNER_STARTING || runner->why == BLAME_INIT)
                if (!*crew->last_words)
                        report_failed_start(crew, runner, p);
        struct ring_fault_sight *faults = calloc(crew->shape.seats, sizeof(*faults));
        if (!faults)
                abort();
        for (uint32_t i = 0; i < crew->shape.seats; i++)
                ring_host_fault(&p->ring, i, &faults[i]);
        struct death death = { .exit_status = (int)p->exit_status,
                .signal = p->term_signal,
                .seats = crew->shape.seats,
                .faults = faults };
        size_t count;
        bool is_broken;
        struct pool_sight *sights = look(p, clock_boot_ms(), &count, &is_broken);
        post(crew, &(struct pool_event){ .kind = POOL_GONE,
                           .runner = runner,
                           .sights = sights,
                           .sights_count = count,
                           .death = &death });
        free(sights);
        free(faults);
        if (runner->process == p)
                runner->process = NULL;
        process_close(p);
}

static const struct process_events process_events = {
        .ready = on_ready,
        .refused = on_refused,
        .log = on_log,
        .rang = on_rang,
        .gone = on_gone,
};

/* --- what the pool wants ---------------------------------------------------------------------------------------------
 */

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
        if (process_start(crew->loop, &crew->shape, crew->leases, &crew->start, &process_events, crew, &p, &error) ==
                0) {
                runner->process = p;
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
                "started "
                "until the plugin or its settings change and the host is told to reload%s%s",
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
                sights = look(event->runner->process, now_ms, &seen.sights_count, &is_broken);
                seen.sights = sights;
                if (is_broken)
                        seen.kind = POOL_BROKEN;
        }
        pool_step(&crew->pool, &seen, now_ms, &crew->actions);
        free(sights);
        for (size_t i = 0; i < crew->actions.count; i++)
                perform(crew, &crew->actions.list[i]);
}

/* One event and all that follow from it.  Actions may cause events; those wait until the list is done. */
static void post(struct crew *crew, const struct pool_event *event)
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

/* --- the loop --------------------------------------------------------------------------------------------------------
 */

static void on_busy(uv_idle_t *idle)
{
        (void)idle;
}

static void on_timer(uv_timer_t *timer)
{
        struct crew *crew = timer->data;
        crew->timer_ms = UINT64_MAX;
        post(crew, &(struct pool_event){ .kind = POOL_TICK });
}

static void set_timer(struct crew *crew, uint64_t now_ms)
{
        uint64_t due_ms = pool_due_ms(&crew->pool);
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
                (void)drain(crew, p);
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
        crew->generation.number = 1;
        pool_add_generation(&crew->pool, &crew->generation);
        (void)uv_prepare_init(loop, &crew->prepare);
        (void)uv_check_init(loop, &crew->check);
        (void)uv_idle_init(loop, &crew->busy);
        (void)uv_timer_init(loop, &crew->timer);
        crew->prepare.data = crew->check.data = crew->busy.data = crew->timer.data = crew;
        (void)uv_prepare_start(&crew->prepare, on_prepare);
        (void)uv_check_start(&crew->check, on_check);
        return 0;
}

bool crew_has_room(const struct crew *crew)
{
        return pool_has_room(&crew->pool);
}

void crew_offer(struct crew *crew, struct pool_task *task)
{
        post(crew, &(struct pool_event){ .kind = POOL_OFFERED, .task = task });
}

void crew_cancel(struct crew *crew, struct pool_task *task)
{
        post(crew, &(struct pool_event){ .kind = POOL_CANCELLED, .task = task });
}

void crew_cancel_all(struct crew *crew)
{
        struct pool *pool = &crew->pool;
        while (pool->waiting)
                crew_cancel(crew, pool->waiting);
        while (pool->suspects)
                crew_cancel(crew, pool->suspects);
        for (uint32_t i = 0; i < pool->runners_count; i++)
                for (struct pool_task *task = pool->runners[i].handed, *next; task; task = next) {
                        next = task->next;
                        crew_cancel(crew, task);
                }
}

void crew_stop(struct crew *crew)
{
        crew->is_stopping = true;
        crew->pool.is_draining = true;
        post(crew, &(struct pool_event){ .kind = POOL_TICK });
}

void crew_cut(struct crew *crew)
{
        crew->is_stopping = true;
        post(crew, &(struct pool_event){ .kind = POOL_CUT });
}

void crew_close(struct crew *crew)
{
        uv_close((uv_handle_t *)&crew->prepare, on_handle_closed);
        uv_close((uv_handle_t *)&crew->check, on_handle_closed);
        uv_close((uv_handle_t *)&crew->busy, on_handle_closed);
        uv_close((uv_handle_t *)&crew->timer, on_handle_closed);
}
