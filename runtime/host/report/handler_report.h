/* handler_report.h: what a host's status document says of one handler: its state, what it holds, how its tasks ended,
 * how fast and how long they run, and what became of its latest versions.
 *
 * No I/O; the caller tells the time. */
#ifndef QUIVER_HOST_REPORT_HANDLER_REPORT_H
#define QUIVER_HOST_REPORT_HANDLER_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "host/handler/handlers.h"
#include "host/report/survey.h"

/* Durations are told of the last one to two of these. */
#define HANDLER_REPORT_MS 60000u
/* Versions of one handler that are told, the latest first. */
#define HANDLER_VERSIONS 8u

/* Zero-initialised is one of which nothing was measured yet. */
struct handler_report {
        char name[NAME_HANDLER_MAX + 1]; /* whose it is: a slot may get another handler */
        struct outcome_counts counts;    /* at the last measurement */
        uint64_t counted_ms, turned_ms;  /* boot time */
        double done_rate, failed_rate;   /* per second, between the last two measurements */
        struct histogram before, middle; /* how long tasks had run until the last two turns */
        double run_p50_ms, run_p99_ms;   /* 0: none has ended lately */
};

/* Takes what has been counted since the last time. */
void handler_report_measure(struct handler_report *report, const struct handler *handler, uint64_t now_ms);

/* Its part of the document.  Without `has_ages` what changes although nothing happens is left out.  The caller's. */
json_t *handler_report_make(const struct handler_report *report, const struct handler *handler,
        const struct survey_handler *held, bool has_ages);

#endif
