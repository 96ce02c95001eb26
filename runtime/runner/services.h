/* services.h: the table of functions that a plugin gets as `struct qv_host`.  Their contracts are in
 * quiver/plugin.h. */
#ifndef QUIVER_RUNNER_SERVICES_H
#define QUIVER_RUNNER_SERVICES_H

#include "runner/seat.h"

/* Fills in s->host; s->runner and s->number must be set. */
void services_fill(struct seat *s);

#endif
