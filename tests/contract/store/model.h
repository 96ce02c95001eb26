/* model.h: the contract once more, as plain arrays.  What a store of one shard must do, without durability, pages or
 * speed: the random test compares a driver with it step by step. */
#ifndef QUIVER_TESTS_CONTRACT_MODEL_H
#define QUIVER_TESTS_CONTRACT_MODEL_H

#include "store/admin.h"
#include "store/results.h"
#include "store/store.h"

#define MODEL_KEYS  12
#define MODEL_TASKS 4096 /* alive at once */
#define MODEL_MERGE 4    /* so many are merged by one outcome, at most */

enum model_state { MODEL_QUEUED, MODEL_DELAYED, MODEL_FLIGHT, MODEL_PARKED, MODEL_DEAD };

struct model_task {
        unsigned number;  /* part of its id, which no other task has */
        unsigned payload; /* its number, or that of the last one that was merged into it */
        unsigned key;
        enum lane lane;
        enum model_state state;
        uint64_t order; /* within the lane's log */
        uint64_t due_ms;
        uint64_t arrival; /* among the delayed, or the dead */
        unsigned attempts;
        unsigned interruptions;
        unsigned holder;   /* who its recorded start is of; 0: none */
        uint64_t until_ms; /* until when nobody else may start it */
        bool may_merge;
        bool is_debounced;    /* it has waited once for others to join it */
        uint64_t debounce_ms; /* as the last one that was merged into it says */
        unsigned merged;      /* so many were merged into it */
        bool has_reply;       /* somebody waits for its outcome, or for that of one that was merged into it */
};

/* What the store says of a task whose outcome somebody asked for. */
struct model_reply {
        enum store_reply_state state;
        unsigned number; /* MERGED: into which one; else whose outcome it is */
        unsigned merged; /* into that one, when it ended */
};

struct model_key {
        enum store_key_state state;
        uint64_t due_ms;
        unsigned name;     /* NAMED: what it waits for */
        uint64_t since_ms; /* NAMED */
};

struct model_control {
        enum store_control_verb verb;
        unsigned key;
        unsigned number;
};

struct model {
        uint64_t now_ms;
        struct model_task tasks[MODEL_TASKS];
        unsigned count;
        struct model_key keys[MODEL_KEYS];
        uint64_t next;
        unsigned submitted, done, dropped, merged;
        struct model_reply *replies; /* by number; allocated */
        unsigned replies_count;
        struct { /* the latest */
                unsigned number, into;
        } merges[STORE_MERGED_KEPT];

        bool is_held;
        unsigned holder;
        uint64_t epoch, call, until_ms;

        struct model_control controls[256];
        unsigned controls_count;

        /* what the last call returned */
        unsigned last[2 * STORE_CALL_TASKS];
        unsigned last_count;
        unsigned last_gone;
        struct model_control last_controls[STORE_CALL_CONTROLS];
        unsigned last_controls_count;
};

struct model_outcome {
        enum store_outcome_kind kind;
        unsigned number;
        uint64_t delay_ms;
        unsigned name;     /* DIVERT: what its key waits for; 0: a time */
        unsigned holder;   /* START */
        uint64_t until_ms; /* START: from now; 0: no such time */
        unsigned refill;
        unsigned follow_up;           /* DONE: a new task of the same key with this number; 0: none */
        bool is_debounce;             /* DIVERT */
        bool is_interruption;         /* DIVERT: an earlier owner may have started it */
        unsigned merged[MODEL_MERGE]; /* MERGE, in order */
        unsigned merged_count;
        bool is_one_gone; /* MERGE: one of them is not in flight, so nothing happens */
};

struct model_task *model_submit(struct model *m, unsigned number, unsigned key, enum lane lane, uint64_t delay_ms);
enum store_grant model_acquire(struct model *m, unsigned host, uint64_t epoch, uint64_t ttl_ms);
/* What it returned is in m->last; FENCED: nothing. */
enum store_verdict model_advance(struct model *m, unsigned host, uint64_t epoch, uint64_t call, uint64_t ttl_ms,
        const struct model_outcome *outcomes, unsigned count, const unsigned want[LANES]);
/* Returns what it woke, and whether there are more of them. */
enum store_verdict model_wake(struct model *m, unsigned host, uint64_t epoch, uint64_t call, unsigned name,
        unsigned max, unsigned *ret_woken, bool *ret_has_more);
enum store_verdict model_release(struct model *m, unsigned host, uint64_t epoch, uint64_t call);
/* 0, -ENOENT, -EALREADY. */
int model_cancel(struct model *m, unsigned number);
int model_key_act(struct model *m, enum store_control_verb verb, unsigned key);
bool model_requeue(struct model *m, unsigned number);
bool model_drop(struct model *m, unsigned number);

/* The next task of the key, if an owner may merge it into this one now; 0: it may not. */
unsigned model_next_to_merge(struct model *m, unsigned number);
/* What somebody is told who waits for the outcome of a task. */
struct model_reply model_reply(const struct model *m, unsigned number);
/* Into which one a task was merged, if that is remembered; 0: it is not. */
unsigned model_merged_into(const struct model *m, unsigned number);

struct model_task *model_find(struct model *m, unsigned number);
unsigned model_count(const struct model *m, enum model_state state);
/* In-flight tasks by seq; how many. */
unsigned model_flight(struct model *m, unsigned *numbers);
unsigned model_keys(const struct model *m);
/* A task in flight that is not to be started: its key waits, or one of it that comes before does. */
bool model_is_waiting(struct model *m, unsigned number);

#endif
