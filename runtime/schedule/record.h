/* record.h: a schedule's record in the store (store/schedules.h) as commands and HTTP show it. */
#ifndef QUIVER_SCHEDULE_RECORD_H
#define QUIVER_SCHEDULE_RECORD_H

#include <jansson.h>

#include "schedule/schedule.h"
#include "store/schedules.h"

#define SCHEDULE_TIMES_SHOWN 10u
#define SCHEDULE_TIMES_MAX   1000u

/* 0, or -EINVAL with the text set. */
int schedule_name_check(const char *name, struct error *error);

/* The definition is included as an object, or as a text if it is not one. */
json_t *schedule_as_json(const struct store_schedule *stored, uint32_t shard);

/* Parses the definition and reads its zone.  0, or -errno with the text set; then there is nothing to free. */
int schedule_read(const struct store_schedule *stored, struct schedule *ret, struct error *error);

/* The next times after `after_ms`, in unix milliseconds; fewer if the schedule ends.  Returns how many. */
uint32_t schedule_times(const struct schedule *schedule, struct span name, uint64_t after_ms, uint64_t fired,
        uint32_t count, uint64_t *ret_times);
json_t *schedule_times_as_json(const uint64_t *times, uint32_t count);
/* The next times of a record.  The first is the stored one, which may have passed: it fires as soon as a host is there.
 * None if the schedule is not active. */
uint32_t schedule_stored_times(const struct schedule *schedule, const struct store_schedule *stored, uint64_t now_ms,
        uint32_t count, uint64_t *ret_times);

/* Adds `times`, the same in local time of its zone as `local_times`, and a warning about its pattern as `doubt`.  An
 * unreadable record gets `error` instead. */
json_t *schedule_as_json_with_times(
        const struct store_schedule *stored, uint32_t shard, uint64_t now_ms, uint32_t count);

#endif
