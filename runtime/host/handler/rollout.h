/* rollout.h: decides which version of a handler serves, and what becomes of the others.
 *
 * A generation is one version of a handler at work: the bytes of its plugin and the settings that its runners were
 * started with.  A rollout is all generations of one handler.  A machine without I/O: events and the time go in,
 * actions come out; rollout_io.c performs them.
 *
 *         waiting → candidate → current → draining → stopping → ending → gone
 *                        ↘ refused  ↖──── resting (the last good one, while its successor is on probation)
 *
 * A candidate serves nothing until all of its first runners are ready.  After its promotion nothing starts on the old
 * generation.  A new generation is on probation: if it only fails, the last good one replaces it, and its version is
 * not tried again. */
#ifndef QUIVER_HOST_HANDLER_ROLLOUT_H
#define QUIVER_HOST_HANDLER_ROLLOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/pack.h"

enum generation_state {
        GENERATION_WAITING,   /* for its turn */
        GENERATION_CANDIDATE, /* its runners start */
        GENERATION_CURRENT,   /* serves */
        GENERATION_DRAINING,  /* starts nothing; running tasks may end */
        GENERATION_STOPPING,  /* starts nothing; running tasks were told to stop */
        GENERATION_ENDING,    /* its runners are being killed */
        GENERATION_RESTING,   /* has no process; kept for a rollback */
};

/* Two generations with equal ids are the same version. */
struct generation_id {
        uint64_t file_hash;
        uint64_t settings_hash;
};

/* Embedded in the caller's struct generation. */
struct rollout_version {
        struct rollout_version *older;
        uint32_t number; /* counted from 1 for each handler */
        struct generation_id id;
        enum generation_state state;
        uint64_t since_ms;         /* entered this state */
        uint32_t runners_wanted;   /* valid for CANDIDATE: runners that must be ready */
        uint32_t runners_ready;    /* valid for CANDIDATE: runners that are ready */
        uint64_t watched_until_ms; /* valid for CURRENT: end of its probation; 0: it is trusted */
        /* Counts of task outcomes while on probation. */
        uint32_t done, failed, crashed, rejected, unavailable;
};

struct rollout_policy {
        uint64_t drain_ms;        /* time for running tasks to end after their generation was replaced */
        uint64_t grace_ms;        /* time for running tasks to end after they were told to stop */
        uint64_t probation_ms;    /* 0: none */
        uint32_t probation_tasks; /* probation ends early after this many done tasks */
        uint32_t crashes_max;     /* rolled back at this many crashes, if more than one per ten done tasks */
        uint32_t failures_max;    /* rolled back at this many failures and none done; 0: only at the end */
        uint32_t live_max;        /* generations with processes; further ones wait.  A rollback may exceed it by one */
};

struct rollout {
        struct rollout_policy policy;
        struct rollout_version *newest;
        struct rollout_version *current;   /* NULL: nothing serves */
        struct rollout_version *candidate; /* NULL: none */
        struct rollout_version *fallback;  /* the last good version, while the current one is on probation */
        uint32_t numbers;                  /* the last number given */
        bool has_bad;
        struct generation_id bad; /* the version that was rolled back, not to be tried again */
};

enum rollout_event_kind {
        ROLLOUT_PROPOSED,  /* generation, with id and runners_wanted set: a new version */
        ROLLOUT_READY,     /* generation: one of its runners is ready */
        ROLLOUT_FAILED,    /* generation: one of its runners could not start */
        ROLLOUT_STUCK,     /* generation: quarantined, because too many of its runners died */
        ROLLOUT_ENDED,     /* generation, outcome: one of its tasks has ended */
        ROLLOUT_EMPTY,     /* generation: no process is left */
        ROLLOUT_WITHDRAWN, /* the handler was removed */
        ROLLOUT_CUT,       /* the handler was removed, and its running tasks are not waited for */
        ROLLOUT_TICK,
};

struct rollout_event {
        enum rollout_event_kind kind;
        struct rollout_version *version;
        enum outcome outcome;
};

enum rollout_news {
        NEWS_PROMOTED,
        NEWS_REFUSED,
        NEWS_SUPERSEDED,  /* a newer version came before this one was started */
        NEWS_ROLLED_BACK, /* `other` serves again */
        NEWS_GOOD,        /* probation is over */
        NEWS_UNPROVEN,    /* probation is over, but it got no task meanwhile */
        NEWS_WITHDRAWN,
};

enum rollout_action_kind {
        ROLLOUT_START,     /* start runners_wanted runners; READY or FAILED follows for each */
        ROLLOUT_SERVE,     /* tasks go here from now on */
        ROLLOUT_RETREAT,   /* take back tasks that have not started; EMPTY follows when the rest has ended */
        ROLLOUT_INTERRUPT, /* tell running tasks to stop */
        ROLLOUT_KILL,      /* kill its runners; EMPTY follows */
        ROLLOUT_FORGET,    /* the caller may free it */
        ROLLOUT_TELL,      /* report `news` (and `other`) to people */
};

struct rollout_action {
        enum rollout_action_kind kind;
        struct rollout_version *version;
        enum rollout_news news;
        const struct rollout_version *other;
};

#define ROLLOUT_ACTIONS_MAX 128
#define ROLLOUT_LIVE_MAX    16 /* upper bound of live_max, which bounds the actions of one step */

struct rollout_actions {
        struct rollout_action list[ROLLOUT_ACTIONS_MAX];
        size_t count;
};

/* The first generation of a host that starts: serves at once and without probation, for there is nothing to roll back
 * to. */
void rollout_found(struct rollout *r, struct rollout_version *version, uint64_t now_ms);

/* Replaces the content of `actions`. */
void rollout_step(
        struct rollout *r, const struct rollout_event *event, uint64_t now_ms, struct rollout_actions *actions);
/* When ROLLOUT_TICK is due next; UINT64_MAX: never. */
uint64_t rollout_due_ms(const struct rollout *r);

/* The version that will serve if all goes well: the newest that waits or is tried, else the current one; NULL: none. */
const struct rollout_version *rollout_target(const struct rollout *r);
/* Whether that version was rolled back and is unchanged since. */
bool rollout_is_bad(const struct rollout *r, const struct generation_id *id);
/* Whether the outcomes of its tasks decide if it stays. */
bool rollout_is_on_probation(const struct rollout_version *version);
/* Whether the fate of that generation is known: it neither waits, nor is tried, nor is on probation. */
bool rollout_is_decided(const struct rollout *r, uint32_t number);
/* Whether this outcome costs the task nothing: the generation has not done a single task yet or was rolled back, so it
 * is the suspect and not the task. */
bool rollout_excuses(const struct rollout *r, const struct rollout_version *version, enum outcome outcome);

bool generation_is_same(const struct generation_id *a, const struct generation_id *b);
/* "waiting", "candidate", … */
const char *generation_state_name(enum generation_state state);

#endif
