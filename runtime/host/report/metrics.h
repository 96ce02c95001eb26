/* metrics.h: writes a host's metrics (view/metrics.h).
 *
 * Counters cover this process since its start.  The owner of a shard exports what belongs to the shard, until its own
 * deadline of the lease; the leader exports shards that no member holds.  So a sum over all hosts counts everything
 * once. */
#ifndef QUIVER_HOST_REPORT_METRICS_H
#define QUIVER_HOST_REPORT_METRICS_H

#include "base/histogram.h"
#include "host/handler/handlers.h"
#include "host/handler/reload.h"
#include "host/membership/membership.h"
#include "host/report/backlog.h"
#include "host/report/survey.h"
#include "host/shard/shard_io.h"
#include "trace/traces.h"
#include "view/metrics.h"

/* The parts that the metrics are read from. */
struct host_metrics {
        const struct membership *membership;
        const struct shards *shards;
        const struct handlers *handlers;
        const struct backlog *backlog;
        const struct reload *reload;
        const struct traces *traces;
        const struct histogram *loop_busy;
        uint64_t loop_idle_ns;
        uint64_t started_ms; /* wall time */
};

/* Writes all families except those of the HTTP server; `survey` is scratch space.  Takes time proportional to the
 * shards, the handlers, and the tasks in the windows of this host. */
void host_metrics_put(const struct host_metrics *from, struct survey *survey, struct metrics *to);

#endif
