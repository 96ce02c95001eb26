/* metrics.h: writes metrics as text, for Prometheus.
 *
 *         struct metrics m = { .is_open = … };
 *         metrics_begin(&m, METRIC_ATTEMPTS);
 *         metrics_put(&m, 12, "mail", "retry");      the labels of the family, in its order
 *         metrics_end(&m);                           the text is in m.text
 *
 * Two formats: the text format 0.0.4, and OpenMetrics 1.0.0.  No I/O and no clock. */
#ifndef QUIVER_VIEW_METRICS_H
#define QUIVER_VIEW_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/histogram.h"
#include "view/metrics_table.h"

#define METRICS_TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_TYPE_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Zero-initialised is empty. */
struct metrics {
        bool is_open; /* OpenMetrics */
        struct buffer text;
        const struct metric_family *family; /* being written */
};

/* Begins a family; its samples follow. */
void metrics_begin(struct metrics *m, enum metric metric);
/* Writes a sample with a value for each label of the family, in its order; NULL or "": the label is omitted. */
void metrics_put(struct metrics *m, double value, ...);
void metrics_put_histogram(struct metrics *m, const struct histogram *h, const char *label);
/* Writes a family without labels, and its one sample. */
void metrics_put_one(struct metrics *m, enum metric metric, double value);
/* Call after the last family. */
void metrics_end(struct metrics *m);
void metrics_free(struct metrics *m);

#endif
