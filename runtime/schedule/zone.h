/* zone.h: a time zone: its offset from UTC, and when that changes.
 *
 * Parsed from the bytes of a TZif file (RFC 9636): its list of transitions, and after the last of them the rule in its
 * footer. libc's mktime() is not used, because for a time that occurs twice it returns one or the other.
 *
 * Plain data, no clock.  The bytes are input, and checked. */
#ifndef QUIVER_SCHEDULE_ZONE_H
#define QUIVER_SCHEDULE_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

#define ZONE_BYTES_MAX       ((size_t)64 * 1024)
#define ZONE_NAME_MAX        64u
#define ZONE_TRANSITIONS_MAX 4096u

/* Local time of the zone: seconds since 1970 as if its clock showed UTC. */
typedef int64_t zone_local;

/* One of the two days of a year when a rule changes the offset. */
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
        int32_t *offset; /* the offset from then on */
        uint32_t count;
        int32_t first; /* the offset before the first transition */
        bool has_rule; /* for times after the last transition */
        struct zone_rule rule;
};

/* Parses the bytes of a TZif file.  0, or -EINVAL with the text set.  A zero-initialised zone is UTC. */
int zone_parse(struct zone *zone, const char *name, struct span bytes, struct error *error);
void zone_free(struct zone *zone);

/* Whether it may be the name of a zone ("Europe/Berlin"): a file below the zone folder, and nowhere else. */
bool zone_name_is_good(const char *name);

/* The offset at that moment, and the moment until which it holds (INT64_MAX: for ever). */
int64_t zone_offset(const struct zone *zone, int64_t utc, int64_t *ret_until);

/* When the zone's clock shows `local`.  A time that the clocks skip: the moment of the skip.  One that they show twice:
 * the first. */
int64_t zone_from_local(const struct zone *zone, zone_local local);

/* zone_io.c: reads the zone from $TZDIR or /usr/share/zoneinfo. "" and "UTC" need no file.  0, or -errno with a text
 * that says what to do. */
int zone_read(struct zone *zone, const char *name, struct error *error);

#endif
