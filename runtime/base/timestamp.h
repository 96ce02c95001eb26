/* timestamp.h: a point in time as people write it. */
#ifndef QUIVER_BASE_TIMESTAMP_H
#define QUIVER_BASE_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Reads RFC 3339 ("2026-11-20T09:00:00Z", "2026-11-20 09:00+01:00"; seconds and their fraction may be missing) into
 * unix milliseconds.  With `may_be_local` also a time without a zone, in the zone of this process, and a time of day
 * alone ("09:00"), the next one after `now_ms`.  0, or -EINVAL with the text set, also for a local time that the clock
 * skips or shows twice at a change of summer time. */
int timestamp_parse(const char *text, bool may_be_local, uint64_t now_ms, uint64_t *ret_ms, struct error *error);

#endif
