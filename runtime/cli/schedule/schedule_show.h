/* schedule_show.h: schedules for people: a table of all, one with its next times. */
#ifndef QUIVER_CLI_SCHEDULE_SCHEDULE_SHOW_H
#define QUIVER_CLI_SCHEDULE_SCHEDULE_SHOW_H

#include <jansson.h>

#include "cli/open.h"
#include "client/schedules.h"
#include "schedule/schedule.h"

/* The next times after `after_ms`, a line each, by the schedule's zone and by UTC. */
void schedule_put_times(struct buffer *to, const struct schedule *schedule, struct span name, uint64_t after_ms,
        uint64_t fired, uint32_t count);
json_t *schedule_times_as_json(
        const struct schedule *schedule, struct span name, uint64_t after_ms, uint64_t fired, uint32_t count);

/* An exit code: one whose definition cannot be read is shown as far as it goes, and is a failure. */
int schedule_show(struct cli_store *s, const struct kept_schedule *kept, uint32_t times, bool has_json);
void schedules_show(const struct kept_schedules *kept);

#endif
