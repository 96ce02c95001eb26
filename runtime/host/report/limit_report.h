/* limit_report.h: the app's limits in a host's status document (view/limits.h shows them). */
#ifndef QUIVER_HOST_REPORT_LIMIT_REPORT_H
#define QUIVER_HOST_REPORT_LIMIT_REPORT_H

#include <jansson.h>

#include "host/handler/handlers.h"
#include "host/limit/limit.h"

/* Limits in a document, whose size is bounded. */
#define LIMIT_REPORT_MAX 32u

/* Measures the starts per second under each limit over the last `ms`. */
void limit_report_measure(struct limits *limits, uint64_t ms);
/* Adds `limits` to the document, if there are any. */
void limit_report_put(json_t *document, const struct handlers *all, uint64_t now_ms);

#endif
