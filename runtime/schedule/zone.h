/* zone.h: a time zone: how far its clocks are from UTC, and when that changes.
 *
 * Read from the bytes of a TZif file (RFC 9636): the transitions that it lists, and behind the last of them the rule in
 * its footer.  libc's mktime() is not used: of a time that occurs twice it returns now one, now the other.
 *
 * Plain data, no clock.  What the bytes say is checked: they may come from anywhere. */
#ifndef QUIVER_SCHEDULE_ZONE_H
#define QUIVER_SCHEDULE_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

#define ZONE_BYTES_MAX       ((size_t)64 * 1024)
#define ZONE_NAME_MAX        64u
#define ZONE_TRANSITIONS_MAX 4096u

/* Seconds since 1970 by the clock on the wall of that zone: as if it were UTC. */
typedef int64_t zone_local;

/* One of the two days of a year when a rule changes. */
struct zone_day {
        enum { ZONE_DAY_JULIAN, ZONE_DAY_ZERO, ZONE_DAY_WEEK } kind; /* J1–J365 without 29 February; 0–365; Mm.w.d */
        int day, week, month;
        int64_t at; /* seconds after midnight by the clock before the change; may be negative or beyond a day */
};

struct zone_rule {
        bool has_summer;
        int64_t standard, summer;   /* offsets */
        struct zone_day begin, end; /* of summer time */
};

struct zone {
        char name[ZONE_NAME_MAX + 1];
        int64_t *at;     /* when each transition happens, ascending */
        int32_t *offset; /* from then on */
        uint32_t count;
        int32_t first; /* the offset before the first transition */
        bool has_rule; /* for what comes after the last transition */
        struct zone_rule rule;
};

/* UTC itself: zero-initialised.  Reads the bytes of a TZif file.  0, or -EINVAL with the text set. */
int zone_parse(struct zone *zone, const char *name, struct span bytes, struct error *error);
void zone_free(struct zone *zone);

/* May it be the name of a zone ("Europe/Berlin")?  It names a file below a folder, and no other. */
bool zone_name_is_good(const char *name);

/* The offset at that moment, and the moment from which on it is another (INT64_MAX: none). */
int64_t zone_offset(const struct zone *zone, int64_t utc, int64_t *ret_until);

/* When the clock on the wall shows `local`.  A time that the clocks skip: the moment when they skip it.  One that they
 * show twice: the first. */
int64_t zone_from_local(const struct zone *zone, zone_local local);

/* zone_io.c: reads the zone from $TZDIR or /usr/share/zoneinfo.  "" and "UTC" need no file.  0, or -errno with a text
 * that says what to do. */
int zone_read(struct zone *zone, const char *name, struct error *error);

#endif
