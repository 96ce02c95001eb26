/* time_text.h: moments as people write them: 2026-12-01T03:00:00Z, 2026-12-01 03:00 (in the local time of a zone). */
#ifndef QUIVER_SCHEDULE_TIME_TEXT_H
#define QUIVER_SCHEDULE_TIME_TEXT_H

#include "base/buffer.h"
#include "schedule/zone.h"

/* Parses a date, or a date and a time to the minute or second; with Z or +HH:MM, else in the zone's local time: a time
 * that the clock skips is the moment of the skip, one that it shows twice is the first.  0, or -EINVAL with the text
 * set. */
int time_parse(const char *text, const struct zone *zone, uint64_t *ret_ms, struct error *error);

/* "2026-12-01 03:00:00 +01:00"; in UTC with a Z. */
void time_put(struct buffer *to, uint64_t ms, const struct zone *zone);

#endif
