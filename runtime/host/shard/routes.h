/* routes.h: which pool serves a task name.
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

/* Zero-initialised is empty. */
struct routes {
        struct route *list; /* by pool: if two serve a name, the lower one gets it */
        size_t count;
        enum route_state *states; /* of each pool */
        uint32_t pools;
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
bool routes_serves(const struct routes *r, uint32_t pool, struct span name);

#endif
