/* routes.h: which pool serves a task name, and whether its calls are short.
 *
 * Plain data.  What the handlers serve goes in (dispatch.c); the shards look up each task that they claim. */
#ifndef QUIVER_HOST_SHARD_ROUTES_H
#define QUIVER_HOST_SHARD_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "base/strings.h"
#include "config/names.h"

#define ROUTES_NONE         UINT32_MAX
#define ROUTES_UNSERVED_MAX 32
/* A call that takes longer than this is a long one. */
#define ROUTES_MOMENT_MS UINT64_C(200)

/* How many of its tasks a pool wants in the windows. */
enum route_state {
        ROUTE_OPEN, /* All. */
        ROUTE_DOWN, /* It starts none for now.  They may fill half of a window, the rest is for others. */
        ROUTE_SHUT, /* None: a person has paused it. */
};

struct route {
        uint32_t pool;
        uint32_t size;
        char name[NAME_HANDLER_MAX + 1];
};

/* How a task came to its end.  All but the first are dead ones. */
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
        struct route *list; /* by pool: if two serve a name, the lower one gets it */
        size_t count;
        enum route_state *states; /* of each pool */
        uint32_t *long_calls;     /* of each pool: its last 32 calls, a bit each; set: a long one, or none yet */
        struct finished_counts *finished; /* of each pool: what the store has recorded of its tasks */
        uint32_t *per_key; /* of each pool: so many tasks of a key it wants in a window; 0: as many as others */
        uint32_t pools;
        struct limits *limits; /* what the pools' tasks are under; NULL: nothing.  Not owned */
        char unserved[ROUTES_UNSERVED_MAX][NAME_HANDLER_MAX + 1]; /* names that were looked up in vain, each once */
        uint32_t unserved_count;
        uint32_t unserved_told; /* of these, are in the log */
};

void routes_free(struct routes *r);
/* One more pool, which serves nothing yet; its number. */
uint32_t routes_add_pool(struct routes *r);
/* The pool serves these names (NULL: none), and no others any more.  It forgets the unserved ones, too. */
void routes_serve(struct routes *r, uint32_t pool, const struct strings *names);
/* Names that were looked up in vain are news again. */
void routes_forget_unserved(struct routes *r);

/* The pool that serves such tasks.  ROUTES_NONE: none does, which is noted. */
uint32_t routes_find(struct routes *r, struct span name);
/* The same, without a note. */
uint32_t routes_look(const struct routes *r, struct span name);
/* A call of that pool took so long. */
void routes_call_ended(struct routes *r, uint32_t pool, uint64_t took_ms);
/* The store has recorded that a task of that pool is done, or dead for that reason. */
void routes_task_finished(struct routes *r, uint32_t pool, bool is_done, struct span reason);
/* Another handler has the pool now: nothing is known of its calls, and none of its tasks has finished here. */
void routes_forget_calls(struct routes *r, uint32_t pool);
/* Hardly any of the pool's recent calls was a long one; whether there is such a pool. */
bool routes_is_short(const struct routes *r, uint32_t pool);
bool routes_has_short(const struct routes *r);
bool routes_serves(const struct routes *r, uint32_t pool, struct span name);

#endif
