/* vet_payloads.c: what random payloads do to a plugin, as findings.
 *
 * A crash is tried again, alone in a fresh runner: one that happens there too is the payload's, one that does not is
 * what went before.  A run ends early once enough is known, or the time is over. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quiver/plugin.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/units.h"
#include "cli/progress.h"
#include "cli/vet/vet.h"

#define SEATS             4
#define BATCH             16
#define CRASHES_MAX       3 /* that differ; more say nothing new */
#define CRASHES_TOTAL_MAX 10
#define STOP_MS           1000 /* a task that runs so long is told to stop, and has as long again to obey */
#define IDLE_MAX          20   /* answers in a row, from the first on, that the service behind it is not there */

/* One way to run them. */
struct variant {
        const char *check;
        uint32_t seats, batch_max;
};

/* What the variants have in common. */
struct stops {
        uint64_t obeyed, ignored, obeyed_ms_max;
};

struct random_task {
        struct pool_task pool;
        uint64_t number;
        char id[32];
        struct buffer payload;
        char *crash; /* what its first crash said; NULL: none yet */
};

/* One task that went wrong. */
struct bad_task {
        uint64_t number;
        struct buffer payload;
        char *error;   /* NULL: there is none */
        bool is_alone; /* it happens in a fresh runner too */
        uint64_t more; /* others that went wrong in the same way */
};

struct random_run {
        struct vet_request *request;
        uint64_t made;
        uint64_t until_ms;
        bool has_enough; /* offer nothing more */

        uint64_t outcomes[OUTCOME_INTERRUPTED + 1];
        uint64_t settled;
        struct cli_progress progress;
        struct vet_growth growth;
        struct bad_task crashes[CRASHES_MAX];
        size_t crashes_count;
        uint64_t crashes_total;
        uint64_t suspects;    /* that ran while a process died, and nobody knows whose fault it was */
        struct bad_task deaf; /* the first that went on when it was told to stop */
        struct stops stops;
        bool is_late, is_unavailable;
        char *leak;    /* what a sanitizer said about memory that was never freed; NULL: nothing */
        char *refusal; /* why a later runner did not get ready; NULL: all did */
};

/* --- tasks -------------------------------------------------------------------------------------------------------- */

static struct pool_task *next_task(void *owner, bool *ret_is_end)
{
        struct random_run *run = owner;
        run->is_late |= clock_boot_ms() >= run->until_ms && run->made < run->request->payloads && !run->has_enough;
        *ret_is_end = run->is_late || run->has_enough || run->made == run->request->payloads;
        if (*ret_is_end)
                return NULL;
        struct random_task *task = memory_zero(1, sizeof(*task));
        task->number = run->made++;
        (void)snprintf(task->id, sizeof(task->id), "vet-%" PRIu64, task->number);
        vet_generate(run->request->seed, task->number, &run->request->corpus, &task->payload);
        task->pool.owner = task;
        task->pool.task = (struct ring_task){
                .id = task->id,
                .key = task->id,
                .handler = run->request->args.handler,
                .attempt = 1,
                .attempts_max = 4,
                .submitted_ms = clock_wall_ms(),
                .fence_epoch = 1,
                .fence_start = run->made,
                .timeout_ms = STOP_MS,
                .payload = task->payload.size ? (const char *)task->payload.data : "",
                .payload_size = task->payload.size,
        };
        return &task->pool;
}

static void free_task(struct random_task *task)
{
        buffer_free(&task->payload);
        free(task->crash);
        free(task);
}

static void keep_bad(struct bad_task *bad, const struct random_task *task, const char *error, bool is_alone)
{
        bad->number = task->number;
        buffer_put(&bad->payload, task->payload.data, task->payload.size);
        bad->error = text_copy(error);
        bad->is_alone = is_alone;
}

/* Whether they differ in nothing but numbers: addresses, process ids, the payload's own. */
static bool is_same_crash(const char *a, const char *b)
{
        while (*a && *b) {
                a += strspn(a, "0123456789abcdef");
                b += strspn(b, "0123456789abcdef");
                if (*a != *b)
                        return false;
                a += *a != 0;
                b += *b != 0;
        }
        return *a == *b;
}

static void keep_crash(struct random_run *run, const struct random_task *task, const char *error, bool is_alone)
{
        run->crashes_total++;
        run->has_enough |= run->crashes_total == CRASHES_TOTAL_MAX;
        for (size_t i = 0; i < run->crashes_count; i++)
                if (run->crashes[i].is_alone == is_alone && is_same_crash(run->crashes[i].error, error)) {
                        run->crashes[i].more++;
                        return;
                }
        if (run->crashes_count < CRASHES_MAX)
                keep_bad(&run->crashes[run->crashes_count++], task, error, is_alone);
        run->has_enough |= run->crashes_count == CRASHES_MAX;
}

/* True: the task is on its way again, alone, and what this was about will be known then. */
static bool try_again(struct random_run *run, struct random_task *task, const struct settled *settled)
{
        struct plugin_session *session = &run->request->session;
        if (session->is_giving_up || task->pool.is_suspect)
                return false;
        if (settled->is_suspect)
                run->suspects++;
        else if (settled->outcome == OUTCOME_CRASHED)
                task->crash = text_copy(settled->error);
        else if (settled->outcome != OUTCOME_INTERRUPTED || settled->why != BLAME_NEIGHBOUR)
                return false;
        task->pool.is_suspect = true;
        pool_io_offer(&session->pool_io, &task->pool, clock_boot_ms());
        return true;
}

static void note_stop(struct random_run *run, const struct random_task *task, const struct settled *settled)
{
        struct stops *stops = &run->stops;
        if (!task->pool.stopped_ms)
                return;
        uint64_t took_ms = clock_boot_ms() - task->pool.stopped_ms;
        if (settled->reply && took_ms <= STOP_MS) {
                stops->obeyed++;
                if (took_ms > stops->obeyed_ms_max)
                        stops->obeyed_ms_max = took_ms;
                return;
        }
        if (!stops->ignored++)
                keep_bad(&run->deaf, task, settled->error, true);
        run->has_enough |= stops->ignored == CRASHES_MAX;
}

static void on_settled(void *owner, struct pool_task *pool_task, const struct settled *settled)
{
        struct random_run *run = owner;
        struct random_task *task = pool_task->owner;
        if (settled->outcome != OUTCOME_CRASHED && settled->outcome != OUTCOME_INTERRUPTED)
                note_stop(run, task, settled);
        if (try_again(run, task, settled))
                return;
        if (!run->request->session.has_cancelled) {
                progress_show(&run->progress, ++run->settled);
                vet_growth_look(&run->growth, run->settled, run->request->payloads);
                run->outcomes[settled->outcome]++;
                if (settled->outcome == OUTCOME_CRASHED)
                        keep_crash(run, task, settled->error, true);
                else if (task->crash)
                        keep_crash(run, task, task->crash, false);
                if (run->settled == IDLE_MAX && run->outcomes[OUTCOME_UNAVAILABLE] == IDLE_MAX) {
                        run->is_unavailable = true;
                        plugin_session_give_up(&run->request->session);
                }
        }
        free_task(task);
}

/* What a sanitizer says when the process ends in order: what was never freed. */
static void on_log(void *owner, const struct runner_log *log, const struct pool_task *task)
{
        struct random_run *run = owner;
        (void)task;
        if (log->source == LOG_STDERR && strstr(log->text, "SUMMARY: ") && strstr(log->text, " leaked ") && !run->leak)
                run->leak = text_copy(log->text);
}

static void on_ready(void *owner, const struct runner_ready *ready, pid_t pid)
{
        struct random_run *run = owner;
        (void)ready;
        vet_growth_start(&run->growth, pid);
}

static void on_refused(void *owner, const char *text)
{
        struct random_run *run = owner;
        if (!run->refusal)
                run->refusal = text_copy(text);
        plugin_session_give_up(&run->request->session);
}

/* --- what was found ----------------------------------------------------------------------------------------------- */

static void put_reproduction(
        const struct vet_request *request, const char *more, const struct bad_task *c, struct buffer *to)
{
        buffer_printf(to, "see it again: ");
        vet_put_command(request, more, c->number, &c->payload, to);
}

static void report_crash(
        const struct vet_request *request, const struct variant *v, const struct bad_task *c, struct vet_report *report)
{
        struct buffer hint = { 0 };
        if (c->is_alone)
                put_reproduction(request, "", c, &hint);
        else
                buffer_printf(&hint,
                        "not with this payload alone: an earlier one, or another thread, did the damage\n"
                        "see it again: quiver vet … --seed %" PRIu64 " --payloads %" PRIu64
                        "; build it with -fsanitize=address,undefined to find it",
                        request->seed, c->number + 1);
        char more[64] = "";
        if (c->more)
                (void)snprintf(more, sizeof(more), ", like %" PRIu64 " other%s,", c->more, c->more == 1 ? "" : "s");
        vet_find(report, VET_ERROR, v->check, buffer_text(&hint), "payload %" PRIu64 " (%zu bytes)%s %s", c->number,
                c->payload.size, more, c->error);
        buffer_free(&hint);
}

static void report_deaf(const struct vet_request *request, const struct bad_task *c, struct vet_report *report)
{
        struct buffer hint = { 0 };
        put_reproduction(request, " --timeout 1s --grace 1s", c, &hint);
        buffer_printf(&hint,
                "\nlook at qv_stop(task) in every loop, and bound every wait: the process is killed, with all "
                "that runs in it");
        vet_find(report, VET_ERROR, "stop", buffer_text(&hint),
                "payload %" PRIu64 " (%zu bytes) went on for more than 1s after it was told to stop: %s", c->number,
                c->payload.size, c->error);
        buffer_free(&hint);
}

/* A run in which handle() never got to its work says little about it. */
static void report_fruitless(const struct variant *v, const struct random_run *run, struct vet_report *report)
{
        if (!run->settled || run->is_unavailable || run->crashes_count)
                return;
        if (run->stops.obeyed + run->stops.ignored >= run->settled)
                vet_find(report, VET_WARNING, v->check, "does it wait for something that is not there?",
                        "every task ran into the timeout of 1s, so the rest of handle() was not tried");
        else if (!run->outcomes[OUTCOME_DONE])
                vet_find(report, VET_WARNING, v->check,
                        "random bytes are no valid input for it: --corpus FILE gives it payloads to begin with",
                        "no task was DONE, so what handle() does with a valid payload was not tried");
}

static void report_run(const struct vet_request *request, const struct variant *v, const struct random_run *run,
        struct vet_report *report)
{
        struct buffer outcomes = { 0 };
        char limit[UNITS_TEXT_MAX];
        for (size_t i = 0; i < run->crashes_count; i++)
                report_crash(request, v, &run->crashes[i], report);
        if (run->suspects && !run->crashes_count)
                vet_find(report, VET_ERROR, v->check, "a race between its threads? build it with -fsanitize=thread",
                        "the process died while %" PRIu64 " tasks ran, and none of them does it alone", run->suspects);
        if (run->deaf.error)
                report_deaf(request, &run->deaf, report);
        if (run->leak)
                vet_find(report, VET_ERROR, v->check, "quiver try shows where it was allocated", "%s", run->leak);
        if (run->refusal)
                vet_find(report, VET_ERROR, v->check, NULL, "a runner did not get ready: %s", run->refusal);
        if (run->is_unavailable)
                vet_find(report, VET_WARNING, v->check,
                        "start what it needs, and say where it is with --set or --config",
                        "each of the first %d was UNAVAILABLE, so the rest was not tried", IDLE_MAX);
        if (run->is_late)
                vet_find(report, VET_NOTE, v->check, "--payloads N asks for fewer, --limit TIME allows more time",
                        "time is up: %" PRIu64 " of %" PRIu64 " payloads in %s", run->settled, request->payloads,
                        units_format_ms(limit, request->run_ms));
        plugin_session_put_outcomes(run->outcomes, ", ", &outcomes);
        char kinds[96] = "random payloads";
        if (request->corpus.count)
                (void)snprintf(kinds, sizeof(kinds), "payloads (%zu of the corpus, changes of them, random ones)",
                        request->corpus.count);
        vet_find(report, run->crashes_count || run->suspects || run->refusal ? VET_NOTE : VET_OK, v->check, NULL,
                "%" PRIu64 " %s, seed %" PRIu64 ": %s", run->settled, kinds, request->seed, buffer_text(&outcomes));
        buffer_free(&outcomes);
}

static void free_bad(struct bad_task *bad)
{
        buffer_free(&bad->payload);
        free(bad->error);
}

static void run_variant(
        struct vet_request *request, const struct variant *v, struct stops *stops, struct vet_report *report)
{
        static const struct plugin_session_events events = {
                .next = next_task, .settled = on_settled, .log = on_log, .ready = on_ready, .refused = on_refused
        };
        const struct pool_policy policy = {
                .processes = 1,
                .threads = v->seats,
                .batch_max = v->batch_max,
                .batch_wait_ms = v->batch_max > 1 ? 1 : 0,
                .grace_ms = STOP_MS,
                .abort_ms = 1000,
                .init_ms = request->init_ms,
                .backoff_ms = 1,
                .backoff_max_ms = 10,
                .ring_entries = 256,
        };
        struct random_run run = { .request = request,
                .until_ms = clock_boot_ms() + request->run_ms,
                .progress = { .what = v->check, .unit = "payloads", .all = request->payloads } };
        struct error error;
        int r = plugin_session_run(&request->session, &policy, &events, &run, &error);
        progress_end(&run.progress);
        if (r < 0)
                vet_find(report, VET_ERROR, v->check, NULL, "%s", error.text);
        else
                report_run(request, v, &run, report);
        /* Said once; and what several seats hold at once goes up and down. */
        if (r == 0 && v->seats == 1 && v->batch_max == 1) {
                report_fruitless(v, &run, report);
                vet_growth_report(&run.growth, "growth", request->payloads, report);
        }
        stops->obeyed += run.stops.obeyed;
        stops->ignored += run.stops.ignored;
        if (run.stops.obeyed_ms_max > stops->obeyed_ms_max)
                stops->obeyed_ms_max = run.stops.obeyed_ms_max;
        for (size_t i = 0; i < run.crashes_count; i++)
                free_bad(&run.crashes[i]);
        free_bad(&run.deaf);
        free(run.refusal);
        free(run.leak);
}

static void report_stops(const struct stops *stops, struct vet_report *report)
{
        char slowest[UNITS_TEXT_MAX];
        if (stops->ignored)
                return; /* said where it happened */
        if (stops->obeyed)
                vet_find(report, VET_OK, "stop", NULL,
                        "%" PRIu64 " task%s ran for 1s and ended within %s of being told to", stops->obeyed,
                        stops->obeyed == 1 ? "" : "s", units_format_ms(slowest, stops->obeyed_ms_max));
        else
                vet_find(report, VET_NOTE, "stop", NULL, "no task ran for 1s, so it is not known whether it stops");
}

void vet_payloads(struct vet_request *request, const struct plugin_report *probe, struct vet_report *report)
{
        static const struct variant plain = { "payloads", 1, 1 };
        static const struct variant threads = { "threads", SEATS, 1 };
        static const struct variant batches = { "batches", 1, BATCH };
        struct stops stops = { 0 };
        run_variant(request, &plain, &stops, report);
        if (probe->flags & QV_THREADS)
                run_variant(request, &threads, &stops, report);
        if (probe->has_many)
                run_variant(request, &batches, &stops, report);
        report_stops(&stops, report);
}
