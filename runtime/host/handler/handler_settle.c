/* handler_settle.c: judges a task whose start has ended in a runner, at a worker or on another host's seat; counts,
 * logs and traces it, and passes the outcome to its shard. */
#include "host/handler/handler_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/numbers.h"
#include "host/handler/handlers.h"
#include "host/handler/task_trace.h"
#include "host/shard/retry.h"
#include "task/note.h"

#define CRASH_LOGGED    3000 /* bytes of the crash report that go to the log */
#define HOST_NAME_SHOWN 255  /* the longest host name, in bytes */
/* A longer wait comes from a wrong submission time. */
#define WAIT_MAX_NS (UINT64_C(365 * 86400) * NS_PER_S)

static double random_fraction(struct handlers *all)
{
        all->random = all->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (double)(all->random >> 11) / 9007199254740992.0;
}

/* A task that failed before says nothing about the version that fails it now. */
static bool is_fresh(const struct claimed *c)
{
        return !c->attempts && !c->crashes;
}

/* Whether the outcome counts for or against the version of the handler.  A task that answers RETRY repeatedly counts
 * once. */
static bool tells_of_version(const struct claimed *c, enum outcome outcome)
{
        if (outcome == OUTCOME_RETRY)
                return is_fresh(c) && !c->interruptions;
        return outcome == OUTCOME_DONE || is_fresh(c);
}

/* The pool does the pausing; this only logs it. */
static void note_outage(
        struct handler *handler, const struct generation *generation, const struct settled *settled, uint64_t now_ms)
{
        struct outage *o = &handler->outage;
        uint64_t lasted_ms = 0;
        if (settled->outcome == OUTCOME_UNAVAILABLE) {
                if (!outage_goes_on(o, settled->error, now_ms))
                        return;
                log_event(LEVEL_WARN, "unavailable",
                        "handler=%s generation=%" PRIu32 " since_ms=%" PRIu64 " outages=%" PRIu32 " error=%s hint=%s",
                        handler->name, generation->version.number, now_ms - o->since_ms, o->untold,
                        LOG_QUOTE(settled->error),
                        LOG_QUOTE("its tasks wait at no cost; it is tried again with pauses"));
                outage_told(o, now_ms);
        } else if (generation == handler_current(handler) && generation->pool_io.pool.state == POOL_OPEN &&
                   outage_over(o, now_ms, &lasted_ms)) {
                log_event(LEVEL_INFO, "available", "handler=%s generation=%" PRIu32 " after_ms=%" PRIu64, handler->name,
                        generation->version.number, lasted_ms);
        }
}

static void count(struct outcome_counts *counts, enum outcome outcome)
{
        switch (outcome) {
        case OUTCOME_DONE:
                counts->done++;
                break;
        case OUTCOME_RETRY:
                counts->retried++;
                break;
        case OUTCOME_LATER:
        case OUTCOME_LIMITED:
                counts->later++;
                break;
        case OUTCOME_REJECT:
                counts->rejected++;
                break;
        case OUTCOME_CRASHED:
                counts->crashed++;
                break;
        case OUTCOME_TIMED_OUT:
                counts->timed_out++;
                break;
        case OUTCOME_UNAVAILABLE:
                counts->unavailable++;
                break;
        case OUTCOME_INTERRUPTED:
                counts->interrupted++;
                break;
        }
}

/* When a start began and ended. */
struct start_times {
        uint64_t started_ns, ended_ns; /* 0: it never started */
};

/* A runner's times are input: they are clamped to what is possible.  Without an answer the host's own times are
 * used. */
static struct start_times times_of(const struct claimed *c, const struct settled *settled, uint64_t now_ns)
{
        const struct ring_reply *reply = settled->reply;
        if (settled->never_started || (reply && !reply->started_ns))
                return (struct start_times){ 0 };
        uint64_t started_ns = min_u64(max_u64(reply ? reply->started_ns : 0, c->started_ms * NS_PER_MS), now_ns);
        return (struct start_times){ started_ns,
                max_u64(min_u64(reply ? reply->ended_ns : now_ns, now_ns), started_ns) };
}

/* Returns how long the task ran; 0: it never started. */
static uint64_t measure(struct handler *handler, const struct claimed *c, const struct start_times *times)
{
        uint64_t started_ns = times->started_ns;
        uint64_t ran_ns = times->ended_ns - started_ns;
        if (!started_ns)
                return 0;
        histogram_add(&handler->times.run, ran_ns);
        if (!is_fresh(c) || c->interruptions || c->laters)
                return ran_ns;
        uint64_t arrived_ms = c->submitted_ms ? c->submitted_ms - handler->all->wall_ahead_ms : c->claimed_ms;
        uint64_t waited_ns = started_ns - arrived_ms * NS_PER_MS;
        /* A producer's clock may be ahead of ours. */
        histogram_add(&handler->times.wait, waited_ns <= WAIT_MAX_NS ? waited_ns : 0);
        return ran_ns;
}

/* The plugin version as one word for a task's history; "" if it does not fit the form. */
static const char *plain_version(const struct generation *generation)
{
        struct span version = span_of_text(generation->plugin_version);
        return version.size <= NOTE_VERSION_MAX && note_holder_is_good(version) ? version.data : "";
}

/* How many bytes of the text to keep so that it fits into `room`: whole lines, if it has several. */
static size_t whole_lines(const char *text, size_t room)
{
        size_t size = strlen(text);
        if (size <= room)
                return size;
        const char *newline = memrchr(text, '\n', room);
        return newline ? (size_t)(newline - text) : room;
}

/* The error text for the history, followed by the place where the start ran. */
static const char *with_place(char text[NOTE_TEXT_MAX + 1], const struct generation *generation,
        const struct pool_task *task, const struct settled *settled)
{
        char place[HOST_NAME_SHOWN + NOTE_VERSION_MAX + 128];
        const char *version = plain_version(generation);
        const char *host = generation->handler->all->host;
        if (settled->outcome == OUTCOME_DONE || settled->never_started || !task->pid || !host)
                return settled->error;
        (void)snprintf(place, sizeof(place), NOTE_WHERE_FORMAT "%s", host, (int)task->pid, generation->version.number,
                (uint32_t)(generation->copy.hash >> 32), *version ? NOTE_WHERE_VERSION : "", version,
                task->is_borrowed ? NOTE_WHERE_SEAT : "");
        size_t size = whole_lines(settled->error, NOTE_TEXT_MAX - strlen(place));
        (void)snprintf(text, NOTE_TEXT_MAX + 1, "%.*s%s", (int)size, settled->error, place);
        return text;
}

/* Logs first: shard_ended() may free the task. */
static void end_start(struct handler *handler, struct shard *shard, struct claimed *c, struct pending_outcome *pending,
        const char *error, uint64_t now_ms)
{
        if (pending->outcome.kind != STORE_DONE) {
                struct task_log_line line = { handler->name, c, TASK_TRACE_LOGGED(handler->all->traces, c), error };
                task_log_outcome(&handler->task_log, &line, pending, now_ms);
        }
        shard_ended(shard, c, pending, now_ms);
}

/* The handler answered LIMITED: closes the limits of the task, on all hosts. */
static bool close_limits(struct handler *handler, const struct handler_config *settings, const struct claimed *c,
        const struct settled *settled, uint64_t now_ms)
{
        struct limit_task task = { .pool = handler->slot, .key = c->key, .headers = c->headers };
        const struct ring_reply *reply = settled->reply;
        uint64_t close_ms = reply && reply->has_retry_after ? reply->retry_after_ms : settings->later.wait_ms;
        if (settled->outcome != OUTCOME_LIMITED ||
                !limits_close(handler->all->dispatch->routes.limits, &task, close_ms, now_ms))
                return false;
        log_event(LEVEL_INFO, "limit-closed", "handler=%s task=%s key=%s%s for_ms=%" PRIu64 " error=%s", handler->name,
                c->id.data, LOG_QUOTE(c->key.data), TASK_TRACE_LOGGED(handler->all->traces, c), close_ms,
                LOG_QUOTE(settled->error));
        return true;
}

static void log_crash(const struct generation *generation, const struct pool_task *task, const struct settled *settled)
{
        if (settled->outcome != OUTCOME_CRASHED && settled->outcome != OUTCOME_TIMED_OUT && !settled->is_suspect)
                return;
        log_event(LEVEL_WARN, "crash",
                "handler=%s generation=%" PRIu32 " pid=%d plugin=%s version=%s hash=%08" PRIx32
                " task=%s key=%s%s outcome=%s error=%s",
                generation->handler->name, generation->version.number, (int)task->pid,
                LOG_QUOTE(generation->copy.label), LOG_QUOTE(generation->plugin_version),
                (uint32_t)(generation->copy.hash >> 32), task->task.id, LOG_QUOTE(task->task.key),
                task_trace_field_packed((char[TASK_TRACE_FIELD]){ 0 }, &task->task), outcome_name(settled->outcome),
                log_quote((char[CRASH_LOGGED]){ 0 }, CRASH_LOGGED, settled->error));
}

/* Another host's task: its owner judges it.  It still counts for our version of the handler. */
static void settle_borrowed(struct generation *generation, struct pool_task *task, const struct settled *settled)
{
        struct handler *handler = generation->handler;
        struct handlers *all = handler->all;
        struct settled told = *settled;
        char error[NOTE_TEXT_MAX + 1];
        bool is_first = task->task.attempt == 1 && !task->task.crashes;
        note_outage(handler, generation, settled, settled->at_ns / NS_PER_MS);
        log_crash(generation, task, settled);
        told.error = with_place(error, generation, task, settled);
        told.is_excused = is_first && rollout_excuses(&handler->rollout, &generation->version, settled->outcome);
        if (settled->outcome == OUTCOME_DONE || is_first)
                handler_task_ended(handler, generation, settled->outcome);
        all->events->borrowed_settled(all->self, task, generation, &told);
}

/* The trace that the task's follow-ups join; NULL: there is no trace or no follow-up. */
static const struct trace_headers *follow_up_trace(const struct traces *traces, const struct task_start *start,
        const struct settled *settled, struct task_trace *room)
{
        if (!settled->reply || !settled->reply->submits_count ||
                (!traces_is_on(traces) && !start->claimed->headers.size))
                return NULL;
        task_trace_of(traces, start, room);
        return room->is_known ? &room->attempt : NULL;
}

static void record_attempt(struct handler *handler, const struct task_start *start, struct task_attempt *attempt,
        const struct start_times *times)
{
        uint64_t now_ns = clock_boot_ns();
        attempt->started_ns = times->started_ns;
        attempt->ended_ns = times->ended_ns;
        attempt->wall_ahead_ns = clock_wall_ns() - now_ns;
        task_trace_record(handler->all->traces, start, attempt, now_ns / NS_PER_MS);
}

void handler_on_settled(void *owner, struct pool_task *task, const struct settled *settled)
{
        struct generation *generation = owner;
        struct handler *handler = generation->handler;
        struct shard *shard = task->owner;
        struct claimed *c = (struct claimed *)task;
        struct pending_outcome *pending = NULL;
        uint64_t now_ns = settled->at_ns;
        if (settled->reply && settled->reply->ticket)
                handler->all->events->answered(handler->all->self, task->pid, settled->reply->ticket);
        if (task->is_borrowed) {
                settle_borrowed(generation, task, settled);
                return;
        }
        if (settled->reply && shard_refuse_answer(shard, c, now_ns / NS_PER_MS))
                return;
        if (!settled->never_started)
                count(&handler->counts, settled->outcome);
        if (settled->reply && settled->reply->ended_ns > settled->reply->started_ns)
                c->ran_ms = (settled->reply->ended_ns - settled->reply->started_ns) / NS_PER_MS;
        struct start_times times = times_of(c, settled, now_ns);
        uint64_t ran_ns = measure(handler, c, &times);
        if (!settled->never_started)
                shard_load_add(&shard->load, settled->reply ? settled->reply->started_ns : now_ns, ran_ns);
        note_outage(handler, generation, settled, now_ns / NS_PER_MS);
        if (settled->checkpoint) {
                buffer_clear(&c->checkpoint);
                buffer_put(&c->checkpoint, settled->checkpoint, settled->checkpoint_size);
                c->has_saved = true;
        }
        log_crash(generation, task, settled);
        struct settled judged = *settled;
        char error[NOTE_TEXT_MAX + 1];
        judged.error = with_place(error, generation, task, settled);
        judged.is_later_off = !handler->all->has_later;
        judged.is_limit_closed = close_limits(handler, generation->settings, c, settled, now_ns / NS_PER_MS);
        judged.is_excused = is_fresh(c) && rollout_excuses(&handler->rollout, &generation->version, settled->outcome);
        if (tells_of_version(c, settled->outcome))
                handler_task_ended(handler, generation, settled->outcome);
        struct task_start start = { c, task->task.fence_epoch, task->task.fence_start };
        struct task_trace trace;
        judged.trace = follow_up_trace(handler->all->traces, &start, settled, &trace);
        enum retry_verdict verdict =
                retry_judge(generation->settings, c, &judged, random_fraction(handler->all), &pending);
        if (times.started_ns && traces_is_on(handler->all->traces)) {
                struct task_attempt attempt = { .shard = shard,
                        .handler = handler->name,
                        .host = handler->all->host,
                        .generation = generation->plugin_version,
                        .settled = settled,
                        .pending = pending };
                record_attempt(handler, &start, &attempt, &times);
        }
        if (verdict == VERDICT_AGAIN)
                shard_again(shard, c, now_ns / NS_PER_MS);
        else
                end_start(handler, shard, c, pending, settled->error, now_ns / NS_PER_MS);
}

/* A handler that was removed no longer judges: DONE counts, every other task waits for the next handler of its name. */
static struct pending_outcome *judge_lent(
        struct handler *handler, const struct generation *generation, struct lent *lent, struct settled *settled)
{
        struct claimed *c = lent->claimed;
        struct pending_outcome *pending = NULL;
        struct error error = { "" };
        if (!generation && settled->outcome == OUTCOME_DONE && settled->reply)
                pending = pending_outcome_done(settled->reply, settled->trace, &error);
        else if (generation && retry_judge(generation->settings, c, settled, random_fraction(handler->all), &pending) ==
                                       VERDICT_OUTCOME)
                return pending;
        /* A task that runs again at once needs an outcome too, because the record of its start must be removed. */
        return pending ? pending : pending_outcome_new(STORE_INTERRUPTED, COST_NONE, settled->error);
}

void handler_settle_lent(struct handler *handler, struct lent *lent, struct settled *settled)
{
        struct claimed *c = lent->claimed;
        struct generation *generation = handler_current(handler);
        char place[HOST_NAME_SHOWN + WORKER_NAME_MAX + 32];
        char text[NOTE_TEXT_MAX + 1];
        const char *error = settled->error;
        settled->why = lent->is_cancelled ? BLAME_CANCEL : settled->why;
        settled->is_later_off = !handler->all->has_later;
        settled->is_limit_closed =
                generation && close_limits(handler, generation->settings, c, settled, clock_boot_ms());
        if (settled->checkpoint) {
                buffer_clear(&c->checkpoint);
                buffer_put(&c->checkpoint, settled->checkpoint, settled->checkpoint_size);
                c->has_saved = true;
        }
        /* A host names the place itself, unless the seat's time ran out without an answer. */
        if (settled->outcome != OUTCOME_DONE && lent->is_handed && !(lent->is_seat && strstr(error, "\n@"))) {
                if (lent->is_seat)
                        (void)snprintf(place, sizeof(place), "\n@%s" NOTE_WHERE_SEAT, lent->worker);
                else
                        (void)snprintf(place, sizeof(place), NOTE_WHERE_WORKER_FORMAT, lent->worker,
                                handler->all->host ? handler->all->host : "a host");
                (void)snprintf(text, sizeof(text), "%.*s%s", (int)min_u64(strlen(error), NOTE_TEXT_MAX - strlen(place)),
                        error, place);
                settled->error = text;
        }
        struct start_times times = times_of(c, settled, clock_boot_ns());
        if (lent->is_handed) {
                count(&handler->counts, settled->outcome);
                (void)measure(handler, c, &times);
        }
        c->ran_ms = clock_boot_ms() - lent->started_ms;
        if (settled->reply && settled->reply->ended_ns > settled->reply->started_ns)
                c->ran_ms = (settled->reply->ended_ns - settled->reply->started_ns) / NS_PER_MS;
        /* The outcome on a borrowed seat concerns the other host's version of the handler. */
        if (generation && !lent->is_seat) {
                c->generation = generation->version.number;
                struct settled told = *settled;
                told.error = error;
                note_outage(handler, generation, &told, clock_boot_ms());
                settled->is_excused =
                        is_fresh(c) && rollout_excuses(&handler->rollout, &generation->version, settled->outcome);
                if (tells_of_version(c, settled->outcome))
                        handler_task_ended(handler, generation, settled->outcome);
        }
        struct task_start start = { c, lent->fence.epoch, lent->fence.start };
        struct task_trace trace;
        settled->trace = follow_up_trace(handler->all->traces, &start, settled, &trace);
        struct pending_outcome *pending = judge_lent(handler, generation, lent, settled);
        if (lent->is_handed && times.started_ns && traces_is_on(handler->all->traces)) {
                struct task_attempt attempt = { .shard = lent->shard,
                        .handler = handler->name,
                        .host = lent->is_seat ? lent->worker : handler->all->host,
                        .worker = lent->is_seat ? NULL : lent->worker,
                        .generation = "",
                        .is_borrowed = lent->is_seat,
                        .settled = settled,
                        .pending = pending };
                record_attempt(handler, &start, &attempt, &times);
        }
        end_start(handler, lent->shard, c, pending, error, clock_boot_ms());
}
