#include "host/report/handler_report.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* --- measuring --- */

static double per_second(uint64_t now, uint64_t before, uint64_t ms)
{
        return ms && now > before ? (double)(now - before) * 1000 / (double)ms : 0;
}

static uint64_t failures(const struct outcome_counts *c)
{
        return c->retried + c->rejected + c->crashed + c->timed_out;
}

void handler_report_measure(struct handler_report *report, const struct handler *handler, uint64_t now_ms)
{
        if (strcmp(report->name, handler->name) != 0) {
                *report = (struct handler_report){ .counts = handler->counts,
                        .counted_ms = now_ms,
                        .turned_ms = now_ms,
                        .before = handler->times.run,
                        .middle = handler->times.run };
                (void)snprintf(report->name, sizeof(report->name), "%s", handler->name);
                return;
        }
        uint64_t ms = now_ms - report->counted_ms;
        report->done_rate = per_second(handler->counts.done, report->counts.done, ms);
        report->failed_rate = per_second(failures(&handler->counts), failures(&report->counts), ms);
        report->counts = handler->counts;
        report->counted_ms = now_ms;
        struct histogram lately = histogram_since(&handler->times.run, &report->before);
        report->run_p50_ms = histogram_quantile(&lately, 0.5) * 1000;
        report->run_p99_ms = histogram_quantile(&lately, 0.99) * 1000;
        if (now_ms - report->turned_ms < HANDLER_REPORT_MS)
                return;
        report->before = report->middle;
        report->middle = handler->times.run;
        report->turned_ms = now_ms;
}

/* --- the document --- */

static json_t *text(const char *bytes)
{
        json_t *json = json_string(bytes);
        return json ? json : json_string("(not UTF-8)");
}

static void put_number(json_t *o, const char *name, uint64_t value)
{
        (void)json_object_set_new(o, name, json_integer((json_int_t)value));
}

static void put_counts(json_t *o, const struct outcome_counts *counts)
{
        put_number(o, "done", counts->done);
        put_number(o, "retried", counts->retried);
        put_number(o, "later", counts->later);
        put_number(o, "rejected", counts->rejected);
        put_number(o, "crashed", counts->crashed);
        put_number(o, "timed_out", counts->timed_out);
        put_number(o, "merged", counts->merged);
        put_number(o, "lent", counts->lent);
        put_number(o, "borrowed", counts->borrowed);
}

/* The outcomes of its latest versions.  Left out on a host that never reloaded. */
static void put_versions(json_t *o, const struct handler *handler)
{
        json_t *versions = history_versions(&handler->all->history, handler->name, HANDLER_VERSIONS);
        if (json_array_size(versions) > 1)
                (void)json_object_set(o, "versions", versions);
        json_decref(versions);
}

json_t *handler_report_make(const struct handler_report *report, const struct handler *handler,
        const struct survey_handler *held, bool has_ages)
{
        const struct generation *current = handler_current(handler);
        char hash[17];
        json_t *o = json_object();
        (void)json_object_set_new(o, "name", json_string(handler->name));
        (void)json_object_set_new(o, "plugin", text(current ? current->settings->plugin : ""));
        (void)json_object_set_new(o, "version", text(current ? current->plugin_version : ""));
        put_number(o, "generation", current ? current->version.number : 0);
        (void)snprintf(hash, sizeof(hash), "%016llx", current ? (unsigned long long)current->copy.hash : 0);
        (void)json_object_set_new(o, "hash", json_string(current ? hash : ""));
        (void)json_object_set_new(o, "state", json_string(handler_state_name(handler)));
        put_number(o, "waiting", held->waiting);
        put_number(o, "running", held->running);
        put_number(o, "seats", handler_seats(handler));
        put_counts(o, &handler->counts);
        (void)json_object_set_new(o, "done_rate", json_real(report->done_rate));
        (void)json_object_set_new(o, "failed_rate", json_real(report->failed_rate));
        (void)json_object_set_new(o, "run_p50_ms", json_real(has_ages ? report->run_p50_ms : 0));
        (void)json_object_set_new(o, "run_p99_ms", json_real(has_ages ? report->run_p99_ms : 0));
        put_number(o, "oldest_ms", has_ages ? held->age_ms : 0);
        if (handler->outage.is_on && !strcmp(handler_state_name(handler), "unavailable")) {
                (void)json_object_set_new(o, "unavailable", text(handler->outage.text));
                put_number(o, "unavailable_ms", has_ages ? clock_boot_ms() - handler->outage.since_ms : 0);
        }
        if (current && handler_is_remote(current->settings))
                put_number(o, "polls", handler->remote.polls_count);
        if (*handler->refused)
                (void)json_object_set_new(o, "refused", text(handler->refused));
        put_versions(o, handler);
        return o;
}
