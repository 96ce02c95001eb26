/* explainer.h: makes backtraces readable (backtrace/backtrace.h) in processes of their own, so that the loop never
 * waits.
 *
 * Answers are cached.  If a process takes too long, it is killed and the backtrace stays as the runner wrote it; the
 * same happens if too many are asked for at once. */
#ifndef QUIVER_HOST_POOL_EXPLAINER_H
#define QUIVER_HOST_POOL_EXPLAINER_H

#include <stdbool.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/span.h"

#define EXPLAINER_CACHE 32

struct explainer_job;

/* A cached request with its answer; both are owned. */
struct explained {
        struct buffer request, answer;
        uint64_t used; /* time stamp of the last use: the oldest entry is replaced */
};

/* One per loop.  Initialise with zeroes and `loop`. */
struct explainer {
        uv_loop_t *loop;
        struct explainer_job *jobs; /* running processes */
        unsigned jobs_count;
        struct explained cache[EXPLAINER_CACHE];
        uint64_t uses;
};

/* The cached answer to a request; empty: not cached.  Valid until the next call. */
struct span explainer_find(struct explainer *e, const struct buffer *request);

/* `answer` is empty if the process failed. */
typedef void explainer_fn(void *arg, struct span answer);

/* Starts a process for the request.  True: takes the contents of `request`, and `done` is called once, from the loop.
 * False: it cannot be started now. */
bool explainer_ask(struct explainer *e, struct buffer *request, explainer_fn *done, void *arg);

/* Calls `done` of every job with this argument at once, without an answer. */
void explainer_forget(struct explainer *e, void *arg);

/* Kills the running processes without calling `done`, and frees the cache.  Run the loop once more before freeing the
 * memory. */
void explainer_close(struct explainer *e);

#endif
