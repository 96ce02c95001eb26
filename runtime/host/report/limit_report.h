/* limit_report.h: what a host's status document says of the app's limits (view/limits.h shows it). */
#ifndef QUIVER_HOST_REPORT_LIMIT_REPORT_H
#define QUIVER_HOST_REPORT_LIMIT_REPORT_H

#include <jansson.h>

#include "host/handler/handlers.h"
#include "host/limit/limit.h"

/* So many are in a document, which is small. */
#define LIMIT_REPORT_MAX 32u

/* How much has started under each in the last `ms`. */
void limit_report_measure(struct limits *limits, uint64_t ms);
/* Adds `limits` to the document, if there are any. */
void limit_report_put(json_t *document, const struct handlers *all, uint64_t now_ms);

#endif
