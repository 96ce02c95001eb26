/* generation.h: which version of a handler serves, and what becomes of the others.
 *
 * A generation is one version of a handler at work: the bytes of its plugin and the settings that its runners were
 * started with.  A lineage is all generations of one handler.  A machine without I/O: events and the time go in,
 * actions come out; station_reload.c performs them.
 *
 *         waiting → candidate → current → draining → stopping → ending → gone
 *                        ↘ refused  ↖──── resting (the last good one, as long as its successor is on probation)
 *
 * A candidate serves nothing until all of its first runners are ready.  From its promotion on nothing starts on the old
 * one any more.  A new generation is on probation: should it only fail, the last good one is put back in its place, and
 * that version is not tried again. */
#ifndef QUIVER_HOST_GENERATION_H
#define QUIVER_HOST_GENERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/pack.h"

enum generation_state {
        GENERATION_WAITING,   /* for its turn */
        GENERATION_CANDIDATE, /* its runners start */
        GENERATION_CURRENT,   /* serves */
        GENERATION_DRAINING,  /* starts nothing; what runs may end */
        GENERATION_STOPPING,  /* … was told to stop */
        GENERATION_ENDING,    /* … is killed */
        GENERATION_RESTING,   /* has no process; kept for a rollback */
};

/* What tells versions apart. */
struct generation_id {
        uint64_t file_hash;
        uint64_t settings_hash;
};

/* Embedded in whatever the caller keeps about it. */
struct generation {
        struct generation *older;
        uint32_t number; /* 1 is the handler's first */
        struct generation_id id;
        enum generation_state state;
        uint64_t since_ms;         /* entered this state */
        uint32_t runners_wanted;   /* CANDIDATE: must be ready */
        uint32_t runners_ready;    /* … are */
        uint64_t watched_until_ms; /* CURRENT: on probation until then; 0: it is good */
        /* On probation: tasks that ended so. */
        uint32_t done, failed, crashed, rejected, unavailable;
};

struct lineage_policy {
        uint64_t drain_ms;        /* what runs gets to end in when its generation is replaced */
        uint64_t grace_ms;        /* … and after it was told to stop */
        uint64_t probation_ms;    /* 0: none */
        uint32_t probation_tasks; /* it ends early when so many were done */
        uint32_t crashes_max;     /* so many crashes, and more than one for ten done: rolled back */
        uint32_t failures_max;    /* so many failed and none was done: rolled back.  0: only at the end */
        uint32_t live_max;        /* generations that have processes; further ones wait.  A rollback may be one more */
};

struct lineage {
        struct lineage_policy policy;
        struct generation *newest;
        struct generation *current;   /* NULL: nothing serves */
        struct generation *candidate; /* NULL: none */
        struct generation *fallback;  /* the last good one, while the current is on probation */
        uint32_t numbers;             /* given so far */
        bool has_bad;
        struct generation_id bad; /* rolled back: not to be tried again */
};

enum lineage_event_kind {
        LINEAGE_PROPOSED,  /* generation, with id and runners_wanted: a new version */
        LINEAGE_READY,     /* generation: one of its runners is ready */
        LINEAGE_FAILED,    /* generation: one of its runners could not start */
        LINEAGE_STUCK,     /* generation: so many of them died that no more are started */
        LINEAGE_ENDED,     /* generation, outcome: a task of it */
        LINEAGE_EMPTY,     /* generation: no process is left */
        LINEAGE_WITHDRAWN, /* the handler is not to be served any more */
        LINEAGE_CUT,       /* … and at once */
        LINEAGE_TICK,
};

struct lineage_event {
        enum lineage_event_kind kind;
        struct generation *generation;
        enum outcome outcome;
};

enum lineage_news {
        NEWS_PROMOTED,
        NEWS_REFUSED,
        NEWS_SUPERSEDED,  /* a newer version came before its turn did */
        NEWS_ROLLED_BACK, /* `other` serves again */
        NEWS_GOOD,        /* its probation is over */
        NEWS_WITHDRAWN,
};

enum lineage_action_kind {
        LINEAGE_START,     /* start runners_wanted runners; READY or FAILED for each */
        LINEAGE_SERVE,     /* tasks go here from now on */
        LINEAGE_RETREAT,   /* take back what has not started; EMPTY once the rest has ended */
        LINEAGE_INTERRUPT, /* tell what runs to stop */
        LINEAGE_KILL,      /* EMPTY follows */
        LINEAGE_FORGET,    /* it is gone; the caller may free it */
        LINEAGE_TELL,      /* news, other: for people */
};

struct lineage_action {
        enum lineage_action_kind kind;
        struct generation *generation;
        enum lineage_news news;
        const struct generation *other;
};

#define LINEAGE_ACTIONS_MAX 128
#define LINEAGE_LIVE_MAX    16 /* of live_max: what one step may want is bounded by it */

struct lineage_actions {
        struct lineage_action list[LINEAGE_ACTIONS_MAX];
        size_t count;
};

/* The first generation of a host that starts: serves at once and counts as good, for there is nothing to go back to. */
void lineage_found(struct lineage *l, struct generation *generation, uint64_t now_ms);

/* Actions replace what is in `actions`. */
void lineage_step(
        struct lineage *l, const struct lineage_event *event, uint64_t now_ms, struct lineage_actions *actions);
/* When LINEAGE_TICK is due next; UINT64_MAX: never. */
uint64_t lineage_due_ms(const struct lineage *l);

/* What will serve if all goes well: the newest that waits or is tried, else the current one; NULL: nothing. */
const struct generation *lineage_target(const struct lineage *l);
/* It was rolled back, and nothing has been changed since. */
bool lineage_is_bad(const struct lineage *l, const struct generation_id *id);
/* Nothing is being tried, waits or is on probation. */
bool lineage_is_settled(const struct lineage *l);
/* Whether a task that ends so is excused: the generation has not done a single task yet, or was rolled back, so it is
 * the suspect. */
bool lineage_excuses(const struct lineage *l, const struct generation *generation, enum outcome outcome);

bool generation_is_same(const struct generation_id *a, const struct generation_id *b);
/* "waiting", "candidate", … */
const char *generation_state_name(enum generation_state state);

#endif
