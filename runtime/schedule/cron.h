/* cron.h: times given as a pattern: "30 6 * * mon-fri", "@daily" (the Open Cron Pattern Specification 1.0).
 *
 * Five fields: minute, hour, day of the month, month, day of the week (0 and 7: Sunday), each a list of numbers, names,
 * ranges and steps.  If both day fields are restricted, a match of either is enough.
 *
 * When clocks change: a pattern of fixed times (no * in minute and hour) runs once a day at each of them; a time that
 * the clocks skip runs right after the skip, one that they show twice runs the first time.  A pattern with a * follows
 * elapsed time.
 *
 * Plain data, no clock. */
#ifndef QUIVER_SCHEDULE_CRON_H
#define QUIVER_SCHEDULE_CRON_H

#include "schedule/zone.h"

#define CRON_NEVER INT64_MAX

/* One bit per value. */
struct cron {
        uint64_t minutes, hours, days, months, weekdays;
        bool has_days, has_weekdays; /* the field is not * */
        bool is_fixed;               /* neither minute nor hour begins with * */
};

/* 0, or -EINVAL with a text that names the field; also for a pattern that never occurs (31 February). */
int cron_parse(struct cron *cron, const char *text, struct error *error);

/* A text if the pattern is valid but hardly intended ("* 0 * * *": every minute of hour 0); else NULL. */
const char *cron_doubt(const struct cron *cron);

/* The first time after `after`; both in seconds since 1970.  CRON_NEVER: none in the next 40 years. */
int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after);

#endif
