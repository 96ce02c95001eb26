/* schedule_act.h: what is asked of a store to find a schedule by its name, to change it, and to submit tasks of it.
 *
 * A look (look.h): it decides and does no I/O, so that commands and HTTP do the same.  A schedule stands in the shard
 * of its task's key, which only its record names: the shard of the default key is asked first, then the others. */
#ifndef QUIVER_LOOK_SCHEDULE_ACT_H
#define QUIVER_LOOK_SCHEDULE_ACT_H

#include "look/look.h"
#include "schedule/record.h"

#define SCHEDULE_BACKFILL_STEP STORE_SUBMIT_TASKS /* tasks that one backfill submits at most */

enum schedule_act_kind {
        SCHEDULE_ACT_SHOW,
        SCHEDULE_ACT_SET,
        SCHEDULE_ACT_PAUSE,
        SCHEDULE_ACT_RESUME,
        SCHEDULE_ACT_DELETE,
        SCHEDULE_ACT_RUN,     /* submits its task now, besides its times */
        SCHEDULE_ACT_BACKFILL /* submits the tasks of times that passed; each once, also if it is repeated */
};

struct schedule_submissions;

struct schedule_copy {
        struct store_schedule stored; /* its texts are copies */
        uint32_t shard;
};

/* Zeroed, then schedule_act_init(); schedule_act_free() after. */
struct schedule_act {
        struct look look;
        enum schedule_act_kind kind;
        struct span name;                /* the caller's; schedule_name_check() has accepted it */
        const struct schedule *wanted;   /* SET: with its zone; the caller's */
        uint64_t now_ms;                 /* by the wall clock */
        const char *from_text, *to_text; /* BACKFILL: from then on, before then; by the clock of the zone */
        uint32_t tasks_max;              /* BACKFILL: ≤ SCHEDULE_BACKFILL_STEP */
        bool is_dry;                     /* BACKFILL: only counts */
        bool is_forced;                  /* DELETE: also one that stands in a configuration */

        /* The answer.  status -ENOENT: there is none; -EEXIST: it stands in a configuration; -EINVAL: a time, or its
         * definition, cannot be read; -EAGAIN: somebody else changed it at the same time; of RUN and BACKFILL also what
         * a submission says.  With the text. */
        int status;
        struct error error;
        struct store_schedule found; /* as it is afterwards; SHOW, SET.  Its texts are the act's */
        uint32_t shard;
        bool is_changed;          /* PAUSE, RESUME, DELETE: it was not so already */
        char id[TASK_ID_MAX + 1]; /* RUN */
        uint32_t tasks;           /* BACKFILL: that were submitted, or were before */
        uint64_t more_ms;         /* BACKFILL: there are more, from then on; 0: no more */

        /* private */
        unsigned step;
        uint32_t at;                   /* the next shard to ask, in their order; or the next record to change */
        struct schedule_copy *records; /* of that name: one, unless somebody was interrupted who gave it another key */
        uint32_t records_count;
        char *definition;
        uint64_t version;
        struct schedule_submissions *submissions;
};

void schedule_act_init(struct schedule_act *act);
void schedule_act_free(struct schedule_act *act);

#endif
