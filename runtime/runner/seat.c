#include "runner/seat.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "runner/fault.h"
#include "runner/services.h"

static _Thread_local const struct seat *mine;

bool seat_is_mine(const struct seat *s)
{
        return mine == s;
}

/* The element of s->tasks that holds `task`, its first member; UINT32_MAX if it points into the middle of one. */
static uint32_t index_of(const struct seat *s, const struct qv_task *task)
{
        uintptr_t distance = (uintptr_t)task - (uintptr_t)s->tasks;
        return distance % sizeof(*s->tasks) ? UINT32_MAX : (uint32_t)(distance / sizeof(*s->tasks));
}

struct seat_task *seat_find_work(struct seat *s, const struct qv_task *task)
{
        if (!seat_is_mine(s) || (uintptr_t)task < (uintptr_t)s->tasks ||
                (uintptr_t)task >= (uintptr_t)(s->tasks + s->active))
                return NULL;
        uint32_t index = index_of(s, task);
        return index < s->active ? &s->tasks[index] : NULL;
}

/* --- one task ---------------------------------------------------------------------------------------------------- */

/* The reason why the task must not start; NULL if it may. */
static const char *reason_not_to_start(const struct seat *s, uint32_t index, uint64_t now_ns)
{
        const struct ring_task *task = &s->taken[index].task;
        if (!leases_allow(&s->runner->leases, task->lease, task->fence_epoch, now_ns))
                return "not started: the lease of its shard had run out";
        if (qv_stop(&s->tasks[index].task))
                return "not started: it was stopped before its start";
        return NULL;
}

static void send_answer(struct seat *s, uint32_t index, struct ring_reply *reply)
{
        struct seat_task *w = &s->tasks[index];
        if (ring_answer(&s->runner->ring, &s->taken[index], reply) == -EMSGSIZE) {
                seat_task_set_error(w, "the answer was larger than the ring allows");
                *reply = (struct ring_reply){ .ticket = w->ticket,
                        .outcome = OUTCOME_RETRY,
                        .started_ns = reply->started_ns,
                        .ended_ns = reply->ended_ns,
                        .error = w->error };
                (void)ring_answer(&s->runner->ring, &s->taken[index], reply);
        }
        seat_task_end(w);
}

static void answer_unstarted(struct seat *s, uint32_t index, const char *why)
{
        struct ring_reply reply;
        seat_task_set_error(&s->tasks[index], why);
        seat_task_reply(&s->tasks[index], OUTCOME_INTERRUPTED, &reply);
        send_answer(s, index, &reply);
}

/* A handler must not return one of our own outcomes, such as CRASHED (16): every unknown number becomes RETRY. */
static int32_t known_outcome(struct seat_task *w, int32_t outcome)
{
        char text[QV_ERROR_MAX];
        if ((outcome >= QV_DONE && outcome <= QV_UNAVAILABLE) || outcome == QV_LATER || outcome == QV_LIMITED)
                return outcome;
        if (outcome == QV_PENDING)
                (void)snprintf(text, sizeof(text), "the handler returned QV_PENDING (%d), which is reserved", outcome);
        else
                (void)snprintf(text, sizeof(text), "the handler returned %d, which is no outcome", outcome);
        seat_task_set_error(w, text);
        return OUTCOME_RETRY;
}

static void answer(struct seat *s, uint32_t index, int32_t outcome, uint64_t started_ns, uint64_t ended_ns)
{
        struct seat_task *w = &s->tasks[index];
        struct ring_reply reply;
        seat_task_reply(w, known_outcome(w, outcome), &reply);
        reply.started_ns = started_ns;
        reply.ended_ns = ended_ns;
        send_answer(s, index, &reply);
}

/* If a handler forks and its child returns from handle() too, only the parent may answer. */
static void end_if_forked(void)
{
        if (fault_is_forked())
                _exit(EXIT_FAILURE);
}

static void serve_one(struct seat *s, uint32_t index)
{
        uint64_t started_ns = clock_boot_ns();
        const char *why = reason_not_to_start(s, index, started_ns);
        if (why) {
                answer_unstarted(s, index, why);
                return;
        }
        s->ticket = s->taken[index].ticket;
        int32_t outcome = s->runner->plugin.handle(s->self, &s->tasks[index].task);
        end_if_forked();
        s->ticket = 0;
        answer(s, index, outcome, started_ns, clock_boot_ns());
}

/* --- a batch ----------------------------------------------------------------------------------------------------- */

/* Whether the task follows another one of its key: in a batch, tasks of one key stand side by side, in order. */
static bool follows(const struct seat *s, uint32_t index)
{
        return index && strcmp(s->taken[index].task.key, s->taken[index - 1].task.key) == 0;
}

static void serve_together(struct seat *s, uint32_t count)
{
        uint64_t started_ns = clock_boot_ns();
        uint32_t allowed = 0;
        const char *why = NULL; /* set if the task before was not started */
        for (uint32_t i = 0; i < count; i++) {
                if (!why || !follows(s, i))
                        why = reason_not_to_start(s, i, started_ns);
                if (why) {
                        answer_unstarted(s, i, why);
                        continue;
                }
                s->outcomes[allowed] = QV_RETRY;
                s->together[allowed++] = &s->tasks[i].task;
        }
        if (!allowed)
                return;
        s->ticket = s->taken[index_of(s, s->together[0])].ticket;
        s->runner->plugin.handle_many(s->self, s->together, allowed, s->outcomes);
        end_if_forked();
        s->ticket = 0;
        uint64_t ended_ns = clock_boot_ns();
        bool is_over = false; /* a task of this key was not done, so its next ones are not run */
        for (uint32_t i = 0; i < allowed; i++) {
                uint32_t index = index_of(s, s->together[i]);
                is_over &= follows(s, index);
                if (is_over)
                        answer_unstarted(s, index, "not started: the task of its key before it was not done");
                else
                        answer(s, index, s->outcomes[i], started_ns, ended_ns);
                is_over |= s->outcomes[i] != QV_DONE;
        }
}

static void begin(struct seat *s, uint32_t count)
{
        /* The host measures a task's time from the seat's started_ns, and stops a batch by its first ticket. */
        uint64_t started_ns = atomic_load_explicit(&s->shown->started_ns, memory_order_relaxed);
        uint32_t stop_value = RING_STOP(s->taken[0].ticket);
        for (uint32_t i = 0; i < count; i++) {
                struct seat_task *w = &s->tasks[i];
                uint64_t timeout_ms = s->taken[i].task.timeout_ms;
                seat_task_begin(w, &s->taken[i]);
                w->task.host = &s->host;
                w->task.stop_word = (const uint32_t *)&s->shown->stop;
                w->task.stop_value = stop_value;
                w->task.deadline_ns = timeout_ms ? started_ns + timeout_ms * NS_PER_MS : 0;
        }
        s->active = count;
}

void seat_serve(struct seat *s)
{
        struct ring_runner *ring = &s->runner->ring;
        uint32_t count;
        while ((count = ring_take(ring, s->number, s->taken, s->room)) > 0) {
                begin(s, count);
                if (count > 1 && s->runner->plugin.handle_many)
                        serve_together(s, count);
                else
                        for (uint32_t i = 0; i < count; i++)
                                serve_one(s, i);
                s->active = 0;
                ring_seat_idle(ring, s->number);
                if (atomic_load_explicit(&ring->bell_is_lost, memory_order_relaxed))
                        fault_give_up("the handler closed the runner's own descriptors");
        }
}

/* --- opening and closing ----------------------------------------------------------------------------------------- */

static void prepare(struct seat *s, struct runner *runner, uint32_t number)
{
        uint32_t room = runner->start.batch_max ? runner->start.batch_max : 1;
        *s = (struct seat){
                .runner = runner,
                .number = number,
                .shown = &runner->ring.map.seats[number],
                .room = room,
                .tasks = memory_zero(room, sizeof(*s->tasks)),
                .taken = memory_zero(room, sizeof(*s->taken)),
                .together = memory_zero(room, sizeof(const struct qv_task *)),
                .outcomes = memory_zero(room, sizeof(*s->outcomes)),
        };
        services_fill(s);
        mine = s;
}

/* The services for load(): those of a seat without a task. */
static struct seat loader;

int seat_load(struct runner *runner, struct error *error)
{
        const char *label = runner->start.label;
        if (!runner->plugin.load)
                return 0;
        prepare(&loader, runner, 0);
        int32_t status = runner->plugin.load(&loader.host);
        end_if_forked();
        mine = NULL;
        if (status == 0)
                return 0;
        if (loader.init_error[0])
                return error_set(error, -ECANCELED, "plugin %s: load: %s", label, loader.init_error);
        return error_set(error, -ECANCELED, "plugin %s: load returned %d and did not say why", label, status);
}

void seat_unload(struct runner *runner)
{
        if (runner->plugin.unload)
                runner->plugin.unload();
        end_if_forked();
        seat_free(&loader);
}

int seat_open(struct seat *s, struct runner *runner, uint32_t number, struct error *error)
{
        const char *label = runner->start.label;
        prepare(s, runner, number);
        int r = fault_begin(s->shown, number);
        if (r < 0)
                return error_set(error, r, "plugin %s: no memory for seat %u", label, number);
        int32_t status = runner->plugin.init ? runner->plugin.init(&s->host, &s->self) : 0;
        end_if_forked();
        if (status != 0) {
                fault_end();
                if (s->init_error[0])
                        return error_set(error, -ECANCELED, "plugin %s: init: %s", label, s->init_error);
                return error_set(error, -ECANCELED, "plugin %s: init returned %d and did not say why", label, status);
        }
        atomic_store(&s->shown->phase, SEAT_IDLE);
        return 0;
}

void seat_close(struct seat *s)
{
        if (s->runner->plugin.close)
                s->runner->plugin.close(s->self);
        end_if_forked();
        atomic_store(&s->shown->phase, SEAT_CLOSED);
        fault_end();
}

void seat_free(struct seat *s)
{
        if (!s)
                return;
        for (uint32_t i = 0; s->tasks && i < s->room; i++)
                seat_task_free(&s->tasks[i]);
        free(s->tasks);
        free(s->taken);
        free((void *)s->together);
        free(s->outcomes);
        if (mine == s)
                mine = NULL;
        *s = (struct seat){ 0 };
}
