/* schedule.h: what a schedule's definition means: at which times it fires, with which task, and what becomes of times
 * that were missed or that come while the last task is not over.
 *
 * A definition is a small JSON object; the store keeps its bytes and does not read them (store/schedules.h).  Whoever
 * reads it checks it: it may have been written by anybody.  Plain data, no clock; times are unix milliseconds. */
#ifndef QUIVER_SCHEDULE_SCHEDULE_H
#define QUIVER_SCHEDULE_SCHEDULE_H

#include "schedule/cron.h"
#include "task/envelope.h"

#define SCHEDULE_NEVER      UINT64_MAX
#define SCHEDULE_LATE_MS    60000u            /* A time that is later than this was missed. */
#define SCHEDULE_CATCHUP_MS UINT64_C(3600000) /* Unless somebody says otherwise, what was missed longer ago passes. */
#define SCHEDULE_COUNT_MAX  10000u            /* of missed times that are counted one by one */

/* The task of the last time is still queued, parked or running. */
enum schedule_overlap {
        OVERLAP_SKIP,      /* This time passes. */
        OVERLAP_QUEUE_ONE, /* One may wait while one runs. */
        OVERLAP_QUEUE_ALL, /* Each waits for its turn. */
        OVERLAP_REPLACE,   /* The last is cancelled. */
        OVERLAP_ALLOW      /* They run side by side: the tasks have no key. */
};

/* Times passed while no host was there. */
enum schedule_catchup {
        CATCHUP_LAST, /* The latest of them fires. */
        CATCHUP_ALL,  /* All of them fire, in order. */
        CATCHUP_NONE  /* None does. */
};

struct schedule {
        char *cron; /* its text; NULL: not by a pattern */
        struct cron pattern;
        char zone_name[ZONE_NAME_MAX + 1]; /* "": UTC */
        struct zone zone;                  /* schedule_read_zone() reads it */
        uint64_t every_ms;                 /* 0: not every so often */
        uint64_t at_ms;                    /* once; 0: not */
        enum schedule_overlap overlap;
        enum schedule_catchup catchup;
        uint64_t catchup_ms;       /* Times that were missed longer ago than this pass. */
        uint64_t jitter_ms;        /* Each time is later by up to this; always the same for a name. */
        uint64_t start_ms, end_ms; /* 0: from always, for ever */
        uint64_t runs_max;         /* 0: any number */
        char *handler, *key;       /* key NULL: the schedule's name */
        struct span payload;       /* its bytes are the schedule's */
        enum lane lane;
        char *from; /* "file": it stands in a configuration, and leaves with it; "command" */
};

bool schedule_is_of_file(const struct schedule *schedule);

/* The names in definitions, settings and options. */
extern const char *const schedule_overlaps[], *const schedule_catchups[];

/* Reads and checks a definition; the zone is not read.  0, or -EINVAL with a text that names the field. */
int schedule_parse(struct schedule *schedule, struct span definition, struct error *error);
/* The same of one that somebody sends: fields that are not known are refused, and it counts as set by command. */
int schedule_parse_new(struct schedule *schedule, struct span definition, struct error *error);
/* The canonical text of a definition; free(). */
char *schedule_text(const struct schedule *schedule);
void schedule_free(struct schedule *schedule);
/* All but the reading of zones. */
int schedule_check(struct schedule *schedule, struct error *error);
/* Does I/O: zone_read(). */
int schedule_read_zone(struct schedule *schedule, struct error *error);

/* What order is kept for; the schedule's record stands in the shard of it. */
struct span schedule_key(const struct schedule *schedule, struct span name);

/* The first time after `after_ms`; SCHEDULE_NEVER.  `fired`: so many tasks it has submitted. */
uint64_t schedule_next_ms(const struct schedule *schedule, struct span name, uint64_t after_ms, uint64_t fired);

/* What to do about a time that has come. */
struct schedule_plan {
        bool has_task;
        uint64_t next_ms;
        uint32_t passed; /* times between this one and the next that pass, too */
};
/* `expected_ms` ≤ `now_ms` is the time that is stored. */
void schedule_plan(const struct schedule *schedule, struct span name, uint64_t expected_ms, uint64_t fired,
        uint64_t now_ms, struct schedule_plan *ret_plan);

#endif
