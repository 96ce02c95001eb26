/* schedules.h: records that submit tasks at given times.
 *
 * A schedule stands in the shard of its task's key.  What it means (cron, zone, overlap, the task) is in its
 * definition, which the store does not read; the store knows when it fires next.  Times are unix milliseconds by the
 * hosts' wall clock, in whole seconds: the store never compares them with its own.
 *
 * Firing is a numbered call of the shard's owner.  The store compares the time that is expected with the one that is
 * stored, appends the task and sets the next time, in one step: each time fires once, whoever owns the shard, whatever
 * answer was lost.  The owner learns of its schedules at acquire (next_schedule_ms), and of changes by a control
 * (CONTROL_SCHEDULES) that its next advance returns. */
#ifndef QUIVER_STORE_SCHEDULES_H
#define QUIVER_STORE_SCHEDULES_H

#include "store/store.h"

#define STORE_SCHEDULE_NAME_MAX   40u   /* as a handler's, but shorter: it is part of the ids */
#define STORE_SCHEDULE_DEFINITION 4096u /* bytes */
#define STORE_SCHEDULES_MAX       256u  /* of one shard, with those that were deleted */
#define STORE_CALL_FIRES          16u

enum store_schedule_state {
        SCHEDULE_ACTIVE,
        SCHEDULE_PAUSED,
        SCHEDULE_DELETED, /* kept for its version: an older definition does not bring it back */
};

struct store_schedule {
        struct span name;
        enum store_schedule_state state;
        uint64_t version;  /* of the definition, from 1 */
        uint64_t next_ms;  /* STORE_NEVER: not again */
        uint64_t last_ms;  /* the time that fired last; 0: none has */
        uint64_t last_seq; /* its task; 0: none was appended */
        uint64_t fired;    /* tasks that were appended */
        uint64_t skipped;  /* times that passed without one */
        struct span definition;
};

enum store_schedule_verb {
        /* Makes it, or replaces an older definition and its next time; the same definition keeps the time that is
         * stored, which may be due.  Paused stays paused. */
        SCHEDULE_PUT,
        SCHEDULE_PAUSE,  /* fires no more */
        SCHEDULE_RESUME, /* from next_ms on */
        SCHEDULE_DELETE,
        SCHEDULE_LOAD /* as PUT, of one that another store had: its state, last time and counts come with it */
};

enum store_schedule_change {
        SCHEDULE_CHANGED,
        SCHEDULE_SAME,  /* it was so already */
        SCHEDULE_STALE, /* a newer version is there, or another definition of the same: nothing was changed */
        SCHEDULE_GONE   /* private to the drivers: -ENOENT */
};

/* PUT, LOAD and DELETE compare `version`: the newest wins.  Any process may; the owner is told.  -ENOENT: PAUSE and
 * RESUME of what is not there; -E2BIG: the shard has too many; -ENOTSUP: the feature "schedules" is not switched on.
 * SQLite: 2 rows.  Redis: one script. */
struct store_schedule_set {
        struct store_request request;
        enum store_schedule_verb verb;
        uint32_t shard; /* of the task's key */
        struct span name;
        uint64_t version;                /* PUT, LOAD, DELETE */
        struct span definition;          /* PUT, LOAD */
        uint64_t next_ms;                /* PUT, LOAD, RESUME */
        enum store_schedule_state state; /* LOAD: ACTIVE or PAUSED */
        uint64_t last_ms;                /* LOAD, and what follows; the task of that time is not known here */
        uint64_t fired;
        uint64_t skipped;

        enum store_schedule_change change;
};
void store_schedule_set(struct store *store, struct store_schedule_set *set);

/* The schedules of a shard, by name; those that were deleted are left out, unless they are asked for.  SQLite: page
 * rows.  Redis: HGETALL of the shard's, which are bounded. */
struct store_schedule_list {
        struct store_request request;
        uint32_t shard;
        struct span name; /* only this one; empty: all */
        bool has_deleted; /* also those that were deleted and are remembered still */

        struct store_schedule *schedules;
        uint32_t schedules_count; /* ≤ STORE_SCHEDULES_MAX */
        uint32_t unreadable;      /* records that no Quiver wrote: they are left out, and fsck names them */
};
void store_schedule_list(struct store *store, struct store_schedule_list *list);

enum store_fired {
        STORE_FIRED,        /* the task is appended, the next time is set */
        STORE_FIRE_SKIPPED, /* the next time is set, without a task: none was given, or the last one is not over */
        STORE_FIRE_STALE    /* another time or version is stored, or it is not active: nothing was changed */
};

struct store_fire {
        struct span name;
        uint64_t version;     /* of the definition that the owner read */
        uint64_t expected_ms; /* the time that fires */
        uint64_t next_ms;     /* STORE_NEVER: none after it */
        uint32_t passed;      /* times besides this one that pass without a task: they are counted as skipped */
        bool has_task;
        bool unless_alive;    /* skip, if the task of the last time is queued, in flight or parked */
        struct envelope task; /* with a key of this shard, or without one; its id is made: NAME.UNIX-SHARD */

        enum store_fired fired;
        struct store_schedule stored; /* after this call; without a definition.  STALE: look again */
};

/* A numbered call, fenced as an advance; a repeat changes nothing and answers the same.  Tasks are exempt from the
 * limit of the backlog.  Claims nothing, and does not renew the lease.
 * SQLite: per fire 2 rows + the shard's.  Redis: one script, 3 commands per fire. */
struct store_fires {
        struct store_request request;
        struct store_lease lease;
        uint64_t call;
        struct store_fire *fires; /* the answers are written here */
        uint32_t fires_count;     /* ≤ STORE_CALL_FIRES; each name once */

        enum store_verdict verdict;

        struct store_prepared *prepared; /* private: one per fire */
};
void store_fires(struct store *store, struct store_fires *fires);

#endif
