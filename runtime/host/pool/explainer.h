/* explainer.h: makes backtraces readable (backtrace/backtrace.h) in processes of their own, so that the loop never
 * waits.
 *
 * What was asked before is answered from memory.  A process that takes too long is killed, and then the trace stays as
 * the runner wrote it; so it does if too many are asked for at once. */
#ifndef QUIVER_HOST_POOL_EXPLAINER_H
#define QUIVER_HOST_POOL_EXPLAINER_H

#include <stdbool.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/span.h"

#define EXPLAINER_CACHE 32

struct explainer_job;

/* What was asked and what the answer was; both are owned. */
struct explained {
        struct buffer request, answer;
        uint64_t used; /* grows with each use: the smallest is replaced first */
};

/* Of one loop.  Initialise with zeroes and `loop`. */
struct explainer {
        uv_loop_t *loop;
        struct explainer_job *jobs; /* that run */
        unsigned jobs_count;
        struct explained cache[EXPLAINER_CACHE];
        uint64_t uses;
};

/* The answer to a request that was made before; empty: there is none.  Valid until the next call. */
struct span explainer_find(struct explainer *e, const struct buffer *request);

/* `answer` is empty if there is none. */
typedef void explainer_fn(void *arg, struct span answer);

/* Asks.  Takes what `request` holds if it returns true; then `done` is called once, from the loop.  False: it cannot be
 * asked now. */
bool explainer_ask(struct explainer *e, struct buffer *request, explainer_fn *done, void *arg);

/* Calls `done` of every job with this argument at once, without an answer. */
void explainer_forget(struct explainer *e, void *arg);

/* Kills what runs, without calling anybody, and frees what is remembered.  Run the loop once more before freeing the
 * memory. */
void explainer_close(struct explainer *e);

#endif
