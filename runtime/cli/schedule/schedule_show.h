/* schedule_show.h: schedules for people: a table of all, one with its next times. */
#ifndef QUIVER_CLI_SCHEDULE_SCHEDULE_SHOW_H
#define QUIVER_CLI_SCHEDULE_SCHEDULE_SHOW_H

#include "cli/open.h"
#include "client/schedules.h"
#include "schedule/record.h"

/* "0 3 * * * Europe/Berlin" */
void schedule_put_when(struct buffer *to, const struct schedule *schedule);
/* A line each, by the schedule's zone and by UTC; if there are fewer than `asked`, it says that it ends. */
void schedule_put_times(
        struct buffer *to, const struct schedule *schedule, const uint64_t *times, uint32_t count, uint32_t asked);

/* An exit code: one whose definition cannot be read is shown as far as it goes, and is a failure. */
int schedule_show(
        struct cli_store *s, const struct store_schedule *stored, uint32_t shard, uint32_t times, bool has_json);
void schedules_show(const struct kept_schedules *kept);

#endif
