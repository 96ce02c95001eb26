/* rollout.h: which version of a handler serves, and what becomes of the others.
 *
 * A generation is one version of a handler at work: the bytes of its plugin and the settings that its runners were
 * started with.  A rollout is all generations of one handler.  A machine without I/O: events and the time go in,
 * actions come out; rollout_io.c performs them.
 *
 *         waiting → candidate → current → draining → stopping → ending → gone
 *                        ↘ refused  ↖──── resting (the last good one, as long as its successor is on probation)
 *
 * A candidate serves nothing until all of its first runners are ready.  From its promotion on nothing starts on the old
 * one any more.  A new generation is on probation: should it only fail, the last good one is put back in its place, and
 * that version is not tried again. */
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
        GENERATION_DRAINING,  /* starts nothing; what runs may end */
        GENERATION_STOPPING,  /* starts nothing; what runs was told to stop */
        GENERATION_ENDING,    /* its runners are being killed */
        GENERATION_RESTING,   /* has no process; kept for a rollback */
};

/* What tells versions apart. */
struct generation_id {
        uint64_t file_hash;
        uint64_t settings_hash;
};

/* Embedded in whatever the caller keeps about it. */
struct rollout_version {
        struct rollout_version *older;
        uint32_t number; /* 1 is the handler's first */
        struct generation_id id;
        enum generation_state state;
        uint64_t since_ms;         /* entered this state */
        uint32_t runners_wanted;   /* CANDIDATE: must be ready */
        uint32_t runners_ready;    /* CANDIDATE: are ready */
        uint64_t watched_until_ms; /* CURRENT: on probation until then; 0: it is good */
        /* On probation: tasks that ended so. */
        uint32_t done, failed, crashed, rejected, unavailable;
};

struct rollout_policy {
        uint64_t drain_ms;        /* what runs gets to end in when its generation is replaced */
        uint64_t grace_ms;        /* what runs gets to end in after it was told to stop */
        uint64_t probation_ms;    /* 0: none */
        uint32_t probation_tasks; /* it ends early when so many were done */
        uint32_t crashes_max;     /* so many crashes, and more than one for ten done: rolled back */
        uint32_t failures_max;    /* so many failed and none was done: rolled back.  0: only at the end */
        uint32_t live_max;        /* generations that have processes; further ones wait.  A rollback may be one more */
};

struct rollout {
        struct rollout_policy policy;
        struct rollout_version *newest;
        struct rollout_version *current;   /* NULL: nothing serves */
        struct rollout_version *candidate; /* NULL: none */
        struct rollout_version *fallback;  /* the last good one, while the current is on probation */
        uint32_t numbers;                  /* given so far */
        bool has_bad;
        struct generation_id bad; /* rolled back: not to be tried again */
};

enum rollout_event_kind {
        ROLLOUT_PROPOSED,  /* generation, with id and runners_wanted: a new version */
        ROLLOUT_READY,     /* generation: one of its runners is ready */
        ROLLOUT_FAILED,    /* generation: one of its runners could not start */
        ROLLOUT_STUCK,     /* generation: so many of them died that no more are started */
        ROLLOUT_ENDED,     /* generation, outcome: a task of it */
        ROLLOUT_EMPTY,     /* generation: no process is left */
        ROLLOUT_WITHDRAWN, /* the handler is not to be served any more */
        ROLLOUT_CUT,       /* the handler is not to be served any more, and what runs is not waited for */
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
        NEWS_SUPERSEDED,  /* a newer version came before its turn did */
        NEWS_ROLLED_BACK, /* `other` serves again */
        NEWS_GOOD,        /* its probation is over */
        NEWS_UNPROVEN,    /* the same, but it got no task meanwhile */
        NEWS_WITHDRAWN,
};

enum rollout_action_kind {
        ROLLOUT_START,     /* start runners_wanted runners; READY or FAILED for each */
        ROLLOUT_SERVE,     /* tasks go here from now on */
        ROLLOUT_RETREAT,   /* take back what has not started; EMPTY once the rest has ended */
        ROLLOUT_INTERRUPT, /* tell what runs to stop */
        ROLLOUT_KILL,      /* EMPTY follows */
        ROLLOUT_FORGET,    /* it is gone; the caller may free it */
        ROLLOUT_TELL,      /* news, other: for people */
};

struct rollout_action {
        enum rollout_action_kind kind;
        struct rollout_version *version;
        enum rollout_news news;
        const struct rollout_version *other;
};

#define ROLLOUT_ACTIONS_MAX 128
#define ROLLOUT_LIVE_MAX    16 /* of live_max: what one step may want is bounded by it */

struct rollout_actions {
        struct rollout_action list[ROLLOUT_ACTIONS_MAX];
        size_t count;
};

/* The first generation of a host that starts: serves at once and counts as good, for there is nothing to go back to. */
void rollout_found(struct rollout *r, struct rollout_version *version, uint64_t now_ms);

/* Actions replace what is in `actions`. */
void rollout_step(
        struct rollout *r, const struct rollout_event *event, uint64_t now_ms, struct rollout_actions *actions);
/* When ROLLOUT_TICK is due next; UINT64_MAX: never. */
uint64_t rollout_due_ms(const struct rollout *r);

/* What will serve if all goes well: the newest that waits or is tried, else the current one; NULL: nothing. */
const struct rollout_version *rollout_target(const struct rollout *r);
/* It was rolled back, and nothing has been changed since. */
bool rollout_is_bad(const struct rollout *r, const struct generation_id *id);
/* How its tasks end decides whether it stays. */
bool rollout_is_on_probation(const struct rollout_version *version);
/* It is known what became of that generation: it neither waits, nor is tried, nor is on probation. */
bool rollout_is_decided(const struct rollout *r, uint32_t number);
/* Whether a task that ends so is excused: the generation has not done a single task yet, or was rolled back, so it is
 * the suspect. */
bool rollout_excuses(const struct rollout *r, const struct rollout_version *version, enum outcome outcome);

bool generation_is_same(const struct generation_id *a, const struct generation_id *b);
/* "waiting", "candidate", … */
const char *generation_state_name(enum generation_state state);

#endif
