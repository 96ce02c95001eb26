/* pool_endings.c: handles a runner that has ended: has its backtraces made readable, and then settles its tasks.
 *
 * The pool learns of the end at once, so other tasks do not wait; only tasks that the runner was running keep their
 * place until the explanation is there.  A runner that was never ready has no tasks; its end is reported with the
 * explanation. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "host/pool/pool_io_private.h"

void pool_io_keep_settled(struct pool_io *io, const struct pool_action *action)
{
        uint8_t checkpoint[QV_CHECKPOINT_MAX];
        uint32_t version;
        struct process *p = action->runner ? action->runner->process : NULL;
        struct ending_task *t = ending_add_task(io->ending);
        t->task = action->task;
        t->outcome = action->outcome;
        t->why = action->why;
        t->is_suspect = action->is_suspect;
        t->seat = action->seat;
        t->since_ms = action->since_ms;
        t->task->is_ending = true;
        int size = p && action->ticket
                           ? ring_host_checkpoint(&p->ring, action->seat, action->ticket, checkpoint, &version)
                           : -1;
        t->has_checkpoint = size >= 0;
        if (size > 0)
                buffer_put(&t->checkpoint, checkpoint, (size_t)size);
}

static void settle(struct pool_io *io, const struct ending *e, const struct ending_task *t)
{
        char text[BLAME_TEXT_MAX];
        struct settled settled = { .outcome = t->outcome,
                .is_suspect = t->is_suspect,
                .why = t->why,
                .error = blame_text(text, sizeof(text), t->why, t->seat, t->since_ms, &e->death),
                .checkpoint = !t->has_checkpoint   ? NULL
                              : t->checkpoint.size ? (const void *)t->checkpoint.data
                                                   : "",
                .checkpoint_size = t->checkpoint.size,
                .at_ns = clock_boot_ns() };
        t->task->is_ending = false;
        io->events->settled(io->owner, t->task, &settled);
}

/* Reports a runner that died before READY without sending a reason. */
static void report_failed_start(struct pool_io *io, const struct ending *e)
{
        char text[BLAME_TEXT_MAX];
        uint32_t seat = 0;
        while (seat < e->death.seats && e->faults[seat].kind == FAULT_NONE)
                seat++;
        if (e->is_init_timeout)
                (void)snprintf(io->last_words, sizeof(io->last_words),
                        "plugin %s: it was not ready within %llu ms (constructor or init)", io->start.label,
                        (unsigned long long)io->pool.policy.init_ms);
        else
                (void)snprintf(io->last_words, sizeof(io->last_words),
                        "plugin %s: it crashed before it was ready (constructor or init)%s", io->start.label,
                        blame_text(text, sizeof(text), BLAME_CRASH, seat, 0, &e->death) + strlen("crashed"));
        io->events->refused(io->owner, io->last_words);
}

static struct pool_runner *runner_of(struct pool_io *io, const struct process *p)
{
        for (uint32_t i = 0; i < io->pool.runners_count; i++)
                if (io->pool.runners[i].process == p)
                        return &io->pool.runners[i];
        return NULL;
}

/* Posts POOL_GONE.  do_settle() keeps the tasks that it settles in the ending. */
static void post_gone(struct pool_io *io, struct ending *e, struct process *p)
{
        struct pool_runner *runner = runner_of(io, p);
        size_t count;
        bool is_broken;
        struct pool_view *views = pool_io_look(p, clock_boot_ms(), &count, &is_broken);
        io->ending = e;
        pool_io_post(io, &(struct pool_event){ .kind = POOL_GONE,
                                 .runner = runner,
                                 .views = views,
                                 .views_count = count,
                                 .death = &e->death });
        io->ending = NULL;
        free(views);
        if (runner->process == p)
                runner->process = NULL;
        if (io->pools->latest == p)
                io->pools->latest = NULL;
        process_close(p);
}

static void tell(struct pool_io *io, struct ending *e)
{
        if (e->process) {
                report_failed_start(io, e);
                post_gone(io, e, e->process);
        }
        for (size_t i = 0; i < e->tasks_count; i++)
                settle(io, e, &e->tasks[i]);
        ending_free(e);
        pool_io_check_stopped(io);
}

static void on_explained(void *arg, struct span answer)
{
        struct ending *e = arg;
        struct pool_io *io = e->owner;
        ending_explain(e, answer);
        DL_DELETE(io->endings, e);
        tell(io, e);
}

/* Whether the backtraces will appear in a task's history or a report. */
static bool is_worth_explaining(const struct ending *e)
{
        bool is_worth = e->process && !e->is_init_timeout;
        for (size_t i = 0; i < e->tasks_count; i++) {
                enum blame_why why = e->tasks[i].why;
                is_worth |= why == BLAME_CRASH || why == BLAME_TIMEOUT || why == BLAME_STALL || why == BLAME_UNSURE;
        }
        return is_worth;
}

static void explain_and_tell(struct pool_io *io, struct ending *e)
{
        struct explainer *explainer = &io->pools->explainer;
        struct buffer request = { 0 };
        bool can_ask = !io->is_cut && is_worth_explaining(e) && ending_put_request(e, io->start.plugin, &request);
        struct span known = can_ask ? explainer_find(explainer, &request) : (struct span){ 0 };
        if (known.size)
                ending_explain(e, known);
        if (can_ask && !known.size && explainer_ask(explainer, &request, on_explained, e)) {
                e->owner = io;
                DL_APPEND(io->endings, e);
                return;
        }
        buffer_free(&request);
        tell(io, e);
}

void pool_io_end(struct pool_io *io, struct pool_runner *runner, struct process *p)
{
        struct ending *e = ending_new(p, io->shape.seats, &io->start);
        bool was_never_ready = runner->state == RUNNER_STARTING || runner->why == BLAME_INIT;
        if (was_never_ready && !*io->last_words) {
                e->process = p;
                e->is_init_timeout = runner->why == BLAME_INIT;
        } else {
                post_gone(io, e, p);
        }
        explain_and_tell(io, e);
}

void pool_io_tell_endings(struct pool_io *io)
{
        while (io->endings)
                explainer_forget(&io->pools->explainer, io->endings);
}
