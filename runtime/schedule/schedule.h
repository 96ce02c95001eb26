/* schedule.h: the meaning of a schedule's definition: its times, its task, and what happens to times that were missed
 * or that come while the last task is not over.
 *
 * A definition is a small JSON object; the store keeps its bytes without reading them (store/schedules.h).  Readers
 * check it, because anybody may have written it.  Plain data, no clock; times are unix milliseconds. */
#ifndef QUIVER_SCHEDULE_SCHEDULE_H
#define QUIVER_SCHEDULE_SCHEDULE_H

#include "schedule/cron.h"
#include "task/envelope.h"

#define SCHEDULE_NEVER      UINT64_MAX
#define SCHEDULE_LATE_MS    60000u            /* a time is missed if it is later than this */
#define SCHEDULE_CATCHUP_MS UINT64_C(3600000) /* default: times missed longer ago are skipped */
#define SCHEDULE_COUNT_MAX  10000u            /* missed times that are counted one by one */

/* What to do while the task of the last time is still queued, parked or running. */
enum schedule_overlap {
        OVERLAP_SKIP,      /* skip this time */
        OVERLAP_QUEUE_ONE, /* one may wait while one runs */
        OVERLAP_QUEUE_ALL, /* each waits for its turn */
        OVERLAP_REPLACE,   /* cancel the last task */
        OVERLAP_ALLOW      /* run them side by side: the tasks have no key */
};

/* What to do about times that passed while no host was there. */
enum schedule_catchup {
        CATCHUP_LAST, /* the latest of them fires */
        CATCHUP_ALL,  /* all of them fire, in order */
        CATCHUP_NONE  /* none fires */
};

struct schedule {
        char *cron; /* its text; NULL: no pattern */
        struct cron pattern;
        char zone_name[ZONE_NAME_MAX + 1]; /* "": UTC */
        struct zone zone;                  /* read by schedule_read_zone() */
        uint64_t every_ms;                 /* 0: no interval */
        uint64_t at_ms;                    /* once, at this time; 0: not set */
        enum schedule_overlap overlap;
        enum schedule_catchup catchup;
        uint64_t catchup_ms;       /* times missed longer ago than this are skipped */
        uint64_t jitter_ms;        /* each time is later by up to this, always the same for a name */
        uint64_t start_ms, end_ms; /* 0: no bound */
        uint64_t runs_max;         /* 0: no limit */
        char *handler, *key;       /* key NULL: the schedule's name */
        struct span payload;       /* owned by the schedule */
        enum lane lane;
        char *from; /* "file": a configuration contains it, and removes it when it no longer does; or "command" */
};

bool schedule_is_of_file(const struct schedule *schedule);

/* The words used in definitions, settings and options. */
extern const char *const schedule_overlaps[], *const schedule_catchups[];

/* Parses and checks a definition; does not read the zone.  0, or -EINVAL with a text that names the field. */
int schedule_parse(struct schedule *schedule, struct span definition, struct error *error);
/* Parses a definition that a client sends: unknown fields are refused, and it counts as set by command. */
int schedule_parse_new(struct schedule *schedule, struct span definition, struct error *error);
/* The canonical text of a definition; the caller frees it. */
char *schedule_text(const struct schedule *schedule);
void schedule_free(struct schedule *schedule);
/* Checks everything except the zone. */
int schedule_check(struct schedule *schedule, struct error *error);
/* Does I/O: zone_read(). */
int schedule_read_zone(struct schedule *schedule, struct error *error);

/* The key of the schedule's tasks; its record is in the shard of that key. */
struct span schedule_key(const struct schedule *schedule, struct span name);

/* The first time after `after_ms`, or SCHEDULE_NEVER.  `fired` is the number of tasks submitted so far. */
uint64_t schedule_next_ms(const struct schedule *schedule, struct span name, uint64_t after_ms, uint64_t fired);

/* What to do about a time that has come. */
struct schedule_plan {
        bool has_task;
        uint64_t next_ms;
        uint32_t passed; /* times between this one and the next that are skipped */
};
/* `expected_ms` ≤ `now_ms` is the stored time. */
void schedule_plan(const struct schedule *schedule, struct span name, uint64_t expected_ms, uint64_t fired,
        uint64_t now_ms, struct schedule_plan *ret_plan);

#endif
