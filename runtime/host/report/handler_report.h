/* handler_report.h: one handler in a host's status document: its state, its tasks, their outcomes, rates and durations,
 * and what became of its latest versions.
 *
 * No I/O; the caller passes the time. */
#ifndef QUIVER_HOST_REPORT_HANDLER_REPORT_H
#define QUIVER_HOST_REPORT_HANDLER_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "host/handler/handlers.h"
#include "host/report/survey.h"

/* Percentiles cover the last one to two of these intervals. */
#define HANDLER_REPORT_MS 60000u
/* Versions of one handler in the document, the latest first. */
#define HANDLER_VERSIONS 8u

/* Zero-initialised: nothing was measured yet. */
struct handler_report {
        char name[NAME_HANDLER_MAX + 1]; /* the handler; its slot may get another one */
        struct outcome_counts counts;    /* at the last measurement */
        uint64_t counted_ms, turned_ms;  /* boot time */
        double done_rate, failed_rate;   /* per second, between the last two measurements */
        struct histogram before, middle; /* run times up to the last two turns of the interval */
        double run_p50_ms, run_p99_ms;   /* 0: no task has ended lately */
};

/* Measures rates and percentiles since the last call. */
void handler_report_measure(struct handler_report *report, const struct handler *handler, uint64_t now_ms);

/* The handler's part of the document.  Without `has_ages` it leaves out values that change while nothing happens.  The
 * caller owns it. */
json_t *handler_report_make(const struct handler_report *report, const struct handler *handler,
        const struct survey_handler *held, bool has_ages);

#endif
