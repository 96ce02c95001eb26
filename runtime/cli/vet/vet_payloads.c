/* vet_payloads.c: what random payloads do to a plugin, as findings. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <quiver/plugin.h>

#include "base/units.h"
#include "cli/vet/vet.h"
#include "cli/vet/vet_random.h"

#define SEATS 4
#define BATCH 16

/* One way to run them. */
struct variant {
        const char *check;
        uint32_t seats, batch_max;
};

/* What the variants have in common. */
struct stops {
        uint64_t obeyed, ignored, obeyed_ms_max;
};

static void put_outcomes(const struct random_tasks *random_tasks, struct buffer *to)
{
        static const enum outcome all[] = { OUTCOME_DONE, OUTCOME_RETRY, OUTCOME_REJECT, OUTCOME_UNAVAILABLE,
                OUTCOME_CRASHED, OUTCOME_TIMED_OUT, OUTCOME_INTERRUPTED };
        const char *comma = "";
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                if (!random_tasks->outcomes[all[i]])
                        continue;
                buffer_printf(to, "%s%" PRIu64 " %s", comma, random_tasks->outcomes[all[i]], outcome_name(all[i]));
                comma = ", ";
        }
}

static void put_reproduction(
        const struct vet_request *request, const char *more, const struct random_tasks_case *c, struct buffer *to)
{
        buffer_printf(to, "see it again: ");
        int r = vet_put_command(request, more, c->number, &c->payload, to);
        if (r < 0)
                buffer_printf(to, "quiver vet … --seed %" PRIu64 " (the payload could not be saved here: %s)",
                        request->seed, strerror(-r));
}

static void report_crash(const struct vet_request *request, const struct variant *v, const struct random_tasks_case *c,
        struct vet_report *report)
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
        vet_find(report, VET_ERROR, v->check, buffer_text(&hint), "payload %" PRIu64 " (%zu bytes) %s", c->number,
                c->payload.size, c->error);
        buffer_free(&hint);
}

static void report_deaf(const struct vet_request *request, const struct random_tasks_case *c, struct vet_report *report)
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

static void report_crowd(const struct vet_request *request, const struct variant *v,
        const struct random_tasks *random_tasks, struct vet_report *report)
{
        struct buffer outcomes = { 0 };
        for (size_t i = 0; i < random_tasks->crashes_count; i++)
                report_crash(request, v, &random_tasks->crashes[i], report);
        if (random_tasks->suspects && !random_tasks->crashes_count)
                vet_find(report, VET_ERROR, v->check, "a race between its threads? build it with -fsanitize=thread",
                        "the process died while %" PRIu64 " tasks ran, and none of them does it alone",
                        random_tasks->suspects);
        if (random_tasks->deaf.error)
                report_deaf(request, &random_tasks->deaf, report);
        if (random_tasks->refusal)
                vet_find(report, VET_ERROR, v->check, NULL, "a runner did not get ready: %s", random_tasks->refusal);
        if (random_tasks->is_unavailable)
                vet_find(report, VET_WARNING, v->check,
                        "start what it needs, and say where it is with --set or --config",
                        "each of the first %d was UNAVAILABLE, so the rest was not tried", CROWD_IDLE_MAX);
        if (random_tasks->is_late)
                vet_find(report, VET_NOTE, v->check, "--payloads N asks for fewer",
                        "time is up: %" PRIu64 " of %" PRIu64 " payloads in %ds", random_tasks->settled,
                        request->payloads, CROWD_MS / 1000);
        put_outcomes(random_tasks, &outcomes);
        vet_find(report,
                random_tasks->crashes_count || random_tasks->suspects || random_tasks->refusal ? VET_NOTE : VET_OK,
                v->check, NULL, "%" PRIu64 " random payloads, seed %" PRIu64 ": %s", random_tasks->settled,
                request->seed, buffer_text(&outcomes));
        buffer_free(&outcomes);
}

static void run_variant(
        const struct vet_request *request, const struct variant *v, struct stops *stops, struct vet_report *report)
{
        struct random_tasks random_tasks;
        struct error error;
        if (random_tasks_run(request, v->seats, v->batch_max, &random_tasks, &error) < 0)
                vet_find(report, VET_ERROR, v->check, NULL, "%s", error.text);
        else
                report_crowd(request, v, &random_tasks, report);
        stops->obeyed += random_tasks.obeyed;
        stops->ignored += random_tasks.ignored;
        if (random_tasks.obeyed_ms_max > stops->obeyed_ms_max)
                stops->obeyed_ms_max = random_tasks.obeyed_ms_max;
        random_tasks_free(&random_tasks);
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

void vet_payloads(const struct vet_request *request, const struct plugin_report *probe, struct vet_report *report)
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
