/* routes.h: which pool serves a task name, and whether the pool's calls are short.
 *
 * Plain data.  dispatch.c fills it from the handlers; the shards look up each task that they claim. */
#ifndef QUIVER_HOST_SHARD_ROUTES_H
#define QUIVER_HOST_SHARD_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "base/strings.h"
#include "config/names.h"

#define ROUTES_NONE         UINT32_MAX
#define ROUTES_UNSERVED_MAX 32
/* A call that takes longer than this is long. */
#define ROUTES_MOMENT_MS UINT64_C(200)

/* How many of a pool's tasks the shards keep in their windows. */
enum route_state {
        ROUTE_OPEN, /* all */
        ROUTE_DOWN, /* the pool is down: its tasks may fill half of a window, the rest is for other pools */
        ROUTE_SHUT, /* none: a person has paused the handler */
};

struct route {
        uint32_t pool;
        uint32_t size;
        char name[NAME_HANDLER_MAX + 1];
};

/* How a task finished.  All but FINISHED_DONE mean that it is dead. */
enum finished {
        FINISHED_DONE,
        FINISHED_REJECTED,
        FINISHED_EXHAUSTED,
        FINISHED_CRASHED,
        FINISHED_TIMED_OUT,
        FINISHED_CANCELLED,
        FINISHED_KINDS
};

struct finished_counts {
        uint64_t counts[FINISHED_KINDS];
};

struct limits;

/* Zero-initialised is empty. */
struct routes {
        struct route *list; /* sorted by pool; of two pools that serve a name, the lower one gets its tasks */
        size_t count;
        enum route_state *states;         /* per pool */
        uint32_t *long_calls;             /* per pool, a bit for each of the last 32 calls; set: long, or no call yet */
        struct finished_counts *finished; /* per pool: tasks whose end is durable */
        uint32_t *per_key; /* per pool: tasks of one key that it wants in a window; 0: no wish of its own */
        uint32_t pools;
        struct limits *limits; /* the app's limits on the pools' tasks; NULL: none; borrowed */
        char unserved[ROUTES_UNSERVED_MAX][NAME_HANDLER_MAX + 1]; /* names looked up without a pool, each once */
        uint32_t unserved_count;
        uint32_t unserved_told; /* how many of them were logged */
};

void routes_free(struct routes *r);
/* Adds a pool that serves nothing yet; returns its number. */
uint32_t routes_add_pool(struct routes *r);
/* From now on the pool serves exactly these names (NULL: none).  Also calls routes_forget_unserved(). */
void routes_serve(struct routes *r, uint32_t pool, const struct strings *names);
/* Empties the list of unserved names, so that they are logged again. */
void routes_forget_unserved(struct routes *r);

/* The pool that serves the name.  ROUTES_NONE: no pool does, and the name is added to the unserved ones. */
uint32_t routes_find(struct routes *r, struct span name);
/* Like routes_find(), but changes nothing. */
uint32_t routes_look(const struct routes *r, struct span name);
/* Notes how long a call of the pool took. */
void routes_call_ended(struct routes *r, uint32_t pool, uint64_t took_ms);
/* Counts a task of the pool whose end is durable: done, or dead with that reason. */
void routes_task_finished(struct routes *r, uint32_t pool, bool is_done, struct span reason);
/* The pool's number now belongs to another handler: clears its call times and counts. */
void routes_forget_calls(struct routes *r, uint32_t pool);
/* Whether nearly all recent calls of the pool were short; whether any pool is like that. */
bool routes_is_short(const struct routes *r, uint32_t pool);
bool routes_has_short(const struct routes *r);
bool routes_serves(const struct routes *r, uint32_t pool, struct span name);

#endif
