/* words.h: a schedule as people write it, on a command line and in a configuration. */
#ifndef QUIVER_SCHEDULE_WORDS_H
#define QUIVER_SCHEDULE_WORDS_H

#include "schedule/schedule.h"

/* NULL and 0: not given.  The texts are borrowed from the caller. */
struct schedule_words {
        const char *cron, *zone, *handler, *key;
        const char *at, *start, *end; /* as time_parse() reads them, in the zone's local time */
        struct span payload;
        uint64_t every_ms, catchup_ms, jitter_ms, runs_max;
        enum schedule_overlap overlap;
        enum schedule_catchup catchup;
        enum lane lane;
        const char *from; /* "file" or "command" */
};

/* Makes the schedule and reads its zone from a file.  0: schedule_free() it; or -EINVAL with a text that names the
 * field. */
int schedule_make(const struct schedule_words *words, struct schedule *ret, struct error *error);

#endif
