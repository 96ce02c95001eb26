/* schedule_act.h: finds a schedule by its name, changes it, and submits its tasks.
 *
 * A look (look.h): it decides without I/O, so that commands and HTTP do the same.  A schedule's record is in the shard
 * of its task's key, which only the record names: the shard of the default key is asked first, then the others. */
#ifndef QUIVER_LOOK_SCHEDULE_ACT_H
#define QUIVER_LOOK_SCHEDULE_ACT_H

#include "look/look.h"
#include "schedule/record.h"

#define SCHEDULE_BACKFILL_STEP STORE_SUBMIT_TASKS /* most tasks of one backfill */

enum schedule_act_kind {
        SCHEDULE_ACT_SHOW,
        SCHEDULE_ACT_SET,
        SCHEDULE_ACT_PAUSE,
        SCHEDULE_ACT_RESUME,
        SCHEDULE_ACT_DELETE,
        SCHEDULE_ACT_RUN,     /* submits its task now, in addition to its times */
        SCHEDULE_ACT_BACKFILL /* submits the tasks of past times, each once even if it is repeated */
};

struct schedule_submissions;

struct schedule_copy {
        struct store_schedule stored; /* its texts are copies */
        uint32_t shard;
};

/* Zero it, then call schedule_act_init(); free it with schedule_act_free(). */
struct schedule_act {
        struct look look;
        enum schedule_act_kind kind;
        struct span name;                /* borrowed; schedule_name_check() must have accepted it */
        const struct schedule *wanted;   /* SET: with its zone; borrowed */
        uint64_t now_ms;                 /* wall clock */
        const char *from_text, *to_text; /* BACKFILL: from (inclusive) and to (exclusive), by the clock of the zone */
        uint32_t tasks_max;              /* BACKFILL: ≤ SCHEDULE_BACKFILL_STEP */
        bool is_dry;                     /* BACKFILL: only count */
        bool is_forced;                  /* DELETE: even if a configuration contains it */

        /* The result. status -ENOENT: no such schedule; -EEXIST: a configuration contains it; -EINVAL: a time or its
         * definition is invalid; -EAGAIN: somebody else changed it at the same time; for RUN and BACKFILL also the
         * status of a submission.  The text is set. */
        int status;
        struct error error;
        struct store_schedule found; /* SHOW, SET: the schedule afterwards; its texts belong to the act */
        uint32_t shard;
        bool is_changed;          /* PAUSE, RESUME, DELETE: the state has changed */
        char id[TASK_ID_MAX + 1]; /* RUN: the new task's id */
        uint32_t tasks;           /* BACKFILL: submitted now or by an earlier run */
        uint64_t more_ms;         /* BACKFILL: there are more from this time on; 0: no more */

        /* private */
        unsigned step;
        uint32_t at;                   /* the next shard to ask, in their order; or the next record to change */
        struct schedule_copy *records; /* records of that name: one, unless a change of its key was interrupted */
        uint32_t records_count;
        char *definition;
        uint64_t version;
        struct schedule_submissions *submissions;
};

void schedule_act_init(struct schedule_act *act);
void schedule_act_free(struct schedule_act *act);

#endif
