#include "cli/plugin_session.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "runner/load.h"

#define LEASES      1
#define PAYLOAD_MAX (UINT64_C(1) << 20)
#define LOG_RATE    10000

int plugin_session_open(
        struct plugin_session *s, const char *plugin, enum plugin_copy_source source, struct error *error)
{
        *s = (struct plugin_session){ 0 };
        int r = plugin_copy_make_temporary(plugin, source, &s->copy, error);
        if (r < 0)
                return r;
        r = leases_create(&s->leases, LEASES);
        if (r < 0) {
                plugin_copy_remove_temporary(&s->copy);
                return error_set(error, r, "cannot make the shared memory for leases: %s", strerror(-r));
        }
        /* Nobody can take this lease away. */
        leases_set(&s->leases, 0, 1, UINT64_MAX);
        (void)uv_loop_init(&s->loop);
        s->start = (struct runner_start){ .has_all_variables = true,
                .plugin = s->copy.path,
                .label = s->copy.label,
                .seats = 1,
                .batch_max = 1,
                .log_level = LEVEL_DEBUG,
                .log_rate = LOG_RATE,
                .result_max = PAYLOAD_MAX,
                .payload_max = PAYLOAD_MAX,
                .can_call = TRY_SERVICES,
                .user = "" };
        return 0;
}

void plugin_session_preload(const char *plugin)
{
        char name[128];
        char both[4096];
        const char *old = getenv("LD_PRELOAD");
        load_find_sanitizer(plugin, name, sizeof(name));
        if (!*name || (old && strstr(old, name)))
                return;
        (void)snprintf(both, sizeof(both), "%s%s%s", name, old && *old ? ":" : "", old ? old : "");
        (void)setenv("LD_PRELOAD", both, 1);
}

void plugin_session_close(struct plugin_session *s)
{
        (void)uv_run(&s->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&s->loop);
        leases_free(&s->leases);
        plugin_copy_remove_temporary(&s->copy);
}

/* --- load, init, close --- */

struct probe {
        struct plugin_session *session;
        struct plugin_report *report;
        uint64_t init_ms, close_ms;
        uv_timer_t timer;
        struct process *process;
        bool is_late;
        struct explainer explainer;
        struct ending *ending; /* of the process */
};

/* The first thing that goes wrong is the cause of the rest. */
__attribute__((format(printf, 2, 3))) static void complain(struct probe *probe, const char *format, ...)
{
        char *text = probe->report->error;
        va_list args;
        if (*text)
                return;
        int n = snprintf(text, PLUGIN_REPORT_MAX, "plugin %s: ", probe->session->start.label);
        va_start(args, format);
        (void)vsnprintf(text + n, PLUGIN_REPORT_MAX - (size_t)n, format, args);
        va_end(args);
}

static void on_late(uv_timer_t *timer)
{
        struct probe *probe = timer->data;
        char limit[UNITS_TEXT_MAX];
        probe->is_late = true;
        if (probe->report->is_ready)
                complain(probe, "close did not return within %s", units_format_ms(limit, probe->close_ms));
        else
                complain(probe, "it was not ready within %s: a constructor or init hangs",
                        units_format_ms(limit, probe->init_ms));
        process_kill(probe->process, SIGKILL);
}

static void on_probe_ready(struct process *p, const struct runner_ready *ready)
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
        (void)uv_timer_start(&probe->timer, on_late, probe->close_ms, 0);
        ring_host_retire(&p->ring);
}

static void on_probe_refused(struct process *p, const char *text)
{
        struct probe *probe = p->owner;
        if (!*probe->report->error)
                (void)snprintf(probe->report->error, PLUGIN_REPORT_MAX, "%s", text);
}

static void on_probe_log(struct process *p, const struct runner_log *log)
{
        (void)p;
        (void)log;
}

/* No task is handed over: what there may be is a service that init calls. */
static void on_probe_rang(struct process *p)
{
        struct probe *probe = p->owner;
        do
                try_services_serve(&probe->session->services, &p->ring, (uint64_t)p->pid, clock_boot_ms());
        while (!ring_host_sleep(&p->ring));
}

static void tell_end(struct probe *probe)
{
        struct plugin_report *report = probe->report;
        const struct death *death = &probe->ending->death;
        char text[BLAME_TEXT_MAX];
        uint32_t seat = 0;
        while (seat < death->seats && death->faults[seat].kind == FAULT_NONE)
                seat++;
        if (!report->is_whole)
                complain(probe, "%s %s", report->is_ready ? "close" : "its constructor or init",
                        blame_text(text, sizeof(text), BLAME_CRASH, seat, 0, death));
        report->is_whole = report->is_whole && !*report->error;
        ending_free(probe->ending);
        explainer_close(&probe->explainer);
        uv_close((uv_handle_t *)&probe->timer, NULL);
}

static void on_explained(void *arg, struct span answer)
{
        struct probe *probe = arg;
        ending_explain(probe->ending, answer);
        tell_end(probe);
}

static void on_probe_gone(struct process *p)
{
        struct probe *probe = p->owner;
        struct buffer request = { 0 };
        (void)uv_timer_stop(&probe->timer);
        probe->report->is_whole = !p->term_signal && !p->exit_status && probe->report->is_ready;
        probe->ending = ending_new(p, probe->session->start.seats, &probe->session->start);
        process_close(p);
        bool can_ask = !probe->report->is_whole && !*probe->report->error &&
                       ending_put_request(probe->ending, probe->session->start.plugin, &request);
        if (can_ask && explainer_ask(&probe->explainer, &request, on_explained, probe))
                return;
        buffer_free(&request);
        tell_end(probe);
}

void plugin_session_probe(struct plugin_session *s, uint64_t init_ms, uint64_t close_ms, struct plugin_report *ret)
{
        static const struct process_events events = {
                .ready = on_probe_ready,
                .refused = on_probe_refused,
                .log = on_probe_log,
                .rang = on_probe_rang,
                .gone = on_probe_gone,
        };
        /* Nothing but init and close runs, so the ring may be small. */
        struct ring_shape shape = {
                .seats = s->start.seats, .entries = 16, .task_bytes_max = 4096, .answer_bytes_max = 4096
        };
        struct probe probe = {
                .session = s, .report = ret, .init_ms = init_ms, .close_ms = close_ms, .explainer = { .loop = &s->loop }
        };
        static const struct process_host host = { .alive_fd = -1 };
        struct error error = { "" };
        *ret = (struct plugin_report){ 0 };
        s->start.leases = LEASES;
        (void)uv_timer_init(&s->loop, &probe.timer);
        probe.timer.data = &probe;
        int r = process_start(&s->loop, &shape, &s->leases, &host, &s->start, &events, &probe, &probe.process, &error);
        if (r == 0) {
                s->services = (struct try_services){ 0 };
                on_probe_rang(probe.process);
                (void)uv_timer_start(&probe.timer, on_late, init_ms, 0);
        } else {
                complain(&probe, "%s", error.text);
                uv_close((uv_handle_t *)&probe.timer, NULL);
        }
        (void)uv_run(&s->loop, UV_RUN_DEFAULT);
}

/* --- tasks --- */

static void on_settled(void *owner, struct pool_task *task, const struct settled *settled)
{
        struct plugin_session *s = owner;
        if (settled->reply && settled->reply->ticket)
                try_services_ended(&s->services, (uint64_t)task->pid, settled->reply->ticket);
        s->events->settled(s->owner, task, settled);
}

static void on_log(void *owner, const struct runner_log *log, const struct pool_task *task)
{
        const struct plugin_session *s = owner;
        if (s->events->log)
                s->events->log(s->owner, log, task);
}

static void on_ready(void *owner, const struct runner_ready *ready, pid_t pid)
{
        const struct plugin_session *s = owner;
        if (s->events->ready)
                s->events->ready(s->owner, ready, pid);
}

static void on_refused(void *owner, const char *text)
{
        const struct plugin_session *s = owner;
        s->events->refused(s->owner, text);
}

/* A person is watching: the runner's own words, shown already, say more. */
static void on_quarantined(void *owner, const char *text)
{
        (void)text;
        plugin_session_cut(owner);
}

static void on_stopped(void *owner)
{
        struct plugin_session *s = owner;
        uv_stop(&s->loop);
}

/* Before the loop sleeps, and so never inside one of the pool's own steps. */
static void offer_more(struct plugin_session *s)
{
        if (s->pool_io.is_stopping)
                return;
        if (s->is_giving_up && !s->has_cancelled) {
                s->has_cancelled = true;
                pool_io_cancel_all(&s->pool_io);
        }
        struct pool_task *task = NULL;
        while (!s->is_exhausted && pool_io_has_room(&s->pool_io) &&
                (task = s->events->next(s->owner, &s->is_exhausted)))
                pool_io_offer(&s->pool_io, task, clock_boot_ms());
        if (s->is_exhausted && pool_io_is_idle(&s->pool_io))
                pool_io_stop(&s->pool_io);
}

static void on_prepare(uv_prepare_t *prepare)
{
        struct plugin_session *s = prepare->data;
        offer_more(s);
        pools_flush(&s->pools);
}

static void on_check(uv_check_t *check)
{
        struct plugin_session *s = check->data;
        pools_collect(&s->pools);
}

static void on_call(void *owner, struct pool_call *call, const struct pool_task *task)
{
        struct plugin_session *s = owner;
        uint64_t numbers[2] = { 0 };
        (void)task;
        int status = try_services_answer(&s->services, call->service, (uint64_t)call->pid, call->ticket, call->name,
                call->number, clock_boot_ms(), numbers);
        (void)pool_call_answer(call, status, numbers[0], numbers[1]);
}

void plugin_session_give_up(struct plugin_session *s)
{
        s->is_exhausted = s->is_giving_up = true;
}

void plugin_session_cut(struct plugin_session *s)
{
        s->is_exhausted = s->is_giving_up = s->has_cancelled = true;
        pool_io_cut(&s->pool_io);
}

int plugin_session_run(struct plugin_session *s, const struct pool_policy *policy,
        const struct plugin_session_events *events, void *owner, struct error *error)
{
        static const struct pool_io_events pool_io_events = {
                .settled = on_settled,
                .log = on_log,
                .ready = on_ready,
                .refused = on_refused,
                .call = on_call,
                .quarantined = on_quarantined,
                .stopped = on_stopped,
        };
        uv_prepare_t prepare;
        uv_check_t check;
        s->events = events;
        s->owner = owner;
        s->services = (struct try_services){ 0 };
        s->is_exhausted = s->is_giving_up = s->has_cancelled = false;
        s->start.leases = LEASES;
        s->start.seats = policy->threads;
        s->start.batch_max = policy->batch_max;
        pools_init(&s->pools, &s->loop);
        int r = pool_io_init(&s->pool_io, &s->pools, policy, &s->start, &s->leases, &pool_io_events, s);
        if (r == 0) {
                (void)uv_prepare_init(&s->loop, &prepare);
                (void)uv_check_init(&s->loop, &check);
                prepare.data = check.data = s;
                (void)uv_prepare_start(&prepare, on_prepare);
                (void)uv_check_start(&check, on_check);
                (void)uv_run(&s->loop, UV_RUN_DEFAULT);
                uv_close((uv_handle_t *)&prepare, NULL);
                uv_close((uv_handle_t *)&check, NULL);
                pool_io_close(&s->pool_io);
        }
        pools_close(&s->pools);
        while (uv_run(&s->loop, UV_RUN_DEFAULT))
                ;
        return r < 0 ? error_set(error, r, "cannot set up the runners: %s", strerror(-r)) : 0;
}

void plugin_session_put_outcomes(
        const uint64_t outcomes[OUTCOME_INTERRUPTED + 1], const char *separator, struct buffer *to)
{
        static const enum outcome all[] = { OUTCOME_DONE, OUTCOME_RETRY, OUTCOME_REJECT, OUTCOME_UNAVAILABLE,
                OUTCOME_LATER, OUTCOME_LIMITED, OUTCOME_CRASHED, OUTCOME_TIMED_OUT, OUTCOME_INTERRUPTED };
        const char *before = "";
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                if (!outcomes[all[i]])
                        continue;
                buffer_printf(to, "%s%" PRIu64 " %s", before, outcomes[all[i]], outcome_name(all[i]));
                before = separator;
        }
}
