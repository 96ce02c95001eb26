#include "cli/plugin_probe.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "host/pool/blame.h"
#include "host/pool/process.h"

struct probe {
        const struct plugin_probe_request *request;
        struct plugin_report *report;
        uv_loop_t loop;
        uv_timer_t timer;
        struct leases leases;
        struct process *process;
        bool is_late;
};

/* The first thing that goes wrong is the cause of the rest. */
__attribute__((format(printf, 2, 3))) static void complain(struct probe *probe, const char *format, ...)
{
        char *text = probe->report->error;
        va_list args;
        if (*text)
                return;
        int n = snprintf(text, PLUGIN_REPORT_MAX, "plugin %s: ", probe->request->start->label);
        va_start(args, format);
        (void)vsnprintf(text + n, PLUGIN_REPORT_MAX - (size_t)n, format, args);
        va_end(args);
}

/* --- what the runner says ---------------------------------------------------------------------------------------- */

static void on_late(uv_timer_t *timer)
{
        struct probe *probe = timer->data;
        char limit[UNITS_TEXT_MAX];
        probe->is_late = true;
        if (probe->report->is_ready)
                complain(probe, "close did not return within %s", units_format_ms(limit, probe->request->close_ms));
        else
                complain(probe, "it was not ready within %s: a constructor or init hangs",
                        units_format_ms(limit, probe->request->init_ms));
        process_kill(probe->process, SIGKILL);
}

static void on_ready(struct process *p, const struct runner_ready *ready)
{
        struct probe *probe = p->owner;
        struct plugin_report *report = probe->report;
        if (report->is_ready || probe->is_late)
                return;
        report->is_ready = true;
        report->flags = ready->flags;
        report->has_many = ready->has_many;
        report->rehearsal = ready->rehearsal;
        (void)snprintf(report->name, sizeof(report->name), "%s", ready->name);
        (void)snprintf(report->version, sizeof(report->version), "%s", ready->version);
        (void)snprintf(report->unread, sizeof(report->unread), "%s", ready->unread);
        (void)snprintf(report->notes, sizeof(report->notes), "%s", ready->notes);
        (void)uv_timer_start(&probe->timer, on_late, probe->request->close_ms, 0);
        ring_host_retire(&p->ring);
}

static void on_refused(struct process *p, const char *text)
{
        struct probe *probe = p->owner;
        if (!*probe->report->error)
                (void)snprintf(probe->report->error, PLUGIN_REPORT_MAX, "%s", text);
}

static void on_log(struct process *p, const struct runner_log *log)
{
        (void)p;
        (void)log;
}

static void answer_calls(struct probe *probe, struct process *p)
{
        const struct plugin_probe_request *q = probe->request;
        for (uint32_t seat = 0; seat < q->start->seats; seat++) {
                struct ring_call_view call;
                if (!ring_host_call(&p->ring, seat, &call))
                        continue;
                uint64_t number = call.number;
                int status = -ENOTSUP;
                if (q->call && call.service <= SERVICE_UNLOCK && (q->start->can_call & 1u << call.service))
                        status = q->call(q->owner, (enum ring_service)call.service, seat, call.name, &number);
                ring_host_reply(&p->ring, seat, &call, status, number);
        }
}

/* No task is ever handed over: whatever the bell means, it is a service call. */
static void on_rang(struct process *p)
{
        do
                if (ring_host_has_attention(&p->ring))
                        answer_calls(p->owner, p);
        while (!ring_host_sleep(&p->ring));
}

static void describe_death(struct probe *probe, struct process *p)
{
        char text[PLUGIN_REPORT_MAX];
        struct ring_fault_view fault = { .kind = FAULT_NONE };
        for (uint32_t i = 0; i < probe->request->start->seats && fault.kind == FAULT_NONE; i++)
                ring_host_fault(&p->ring, i, &fault);
        struct death death = {
                .exit_status = (int)p->exit_status, .signal = p->term_signal, .seats = 1, .faults = &fault
        };
        complain(probe, "%s: %s", probe->report->is_ready ? "close" : "its constructor or init",
                blame_text(text, sizeof(text), BLAME_CRASH, 0, &death));
}

static void on_gone(struct process *p)
{
        struct probe *probe = p->owner;
        bool has_ended_well = !p->term_signal && !p->exit_status && probe->report->is_ready;
        if (!has_ended_well)
                describe_death(probe, p);
        probe->report->is_whole = has_ended_well && !*probe->report->error;
        process_close(p);
        uv_close((uv_handle_t *)&probe->timer, NULL);
}

static const struct process_events process_events = {
        .ready = on_ready,
        .refused = on_refused,
        .log = on_log,
        .rang = on_rang,
        .gone = on_gone,
};

/* --- the run ----------------------------------------------------------------------------------------------------- */

static int start(struct probe *probe, struct error *error)
{
        const struct plugin_probe_request *q = probe->request;
        /* Nothing but init and close runs, so the ring may be small. */
        struct ring_shape shape = {
                .seats = q->start->seats, .entries = 16, .task_bytes_max = 4096, .answer_bytes_max = 4096
        };
        int r = leases_create(&probe->leases, 1);
        if (r < 0)
                return error_set(error, r, "cannot make the lease page: %s", strerror(-r));
        r = process_start(
                &probe->loop, &shape, &probe->leases, q->start, &process_events, probe, &probe->process, error);
        if (r < 0)
                return r;
        on_rang(probe->process); /* it may have asked already, and nobody was asleep to be rung */
        (void)uv_timer_start(&probe->timer, on_late, q->init_ms, 0);
        return 0;
}

void plugin_probe_run(const struct plugin_probe_request *request, struct plugin_report *ret)
{
        struct probe probe = { .request = request, .report = ret };
        struct error error = { "" };
        *ret = (struct plugin_report){ 0 };
        (void)uv_loop_init(&probe.loop);
        (void)uv_timer_init(&probe.loop, &probe.timer);
        probe.timer.data = &probe;
        if (start(&probe, &error) < 0) {
                complain(&probe, "%s", error.text);
                uv_close((uv_handle_t *)&probe.timer, NULL);
        }
        (void)uv_run(&probe.loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&probe.loop);
        leases_free(&probe.leases);
}
