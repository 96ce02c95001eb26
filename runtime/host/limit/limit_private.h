/* limit_private.h: shared by limit.c (tasks and buckets), limit_pass.c (passes) and limit_calls.c (calls to the
 * homes). */
#ifndef QUIVER_HOST_LIMIT_LIMIT_PRIVATE_H
#define QUIVER_HOST_LIMIT_LIMIT_PRIVATE_H

#include "host/limit/limit.h"

/* A task that cannot start within this time waits in the store. */
#define LIMIT_AWAY_MS UINT64_C(1000)
/* A task keeps a share while it lacks another one only if that may come within this time. */
#define LIMIT_SOON_MS UINT64_C(100)
/* Starts are counted over this long for `lately`. */
#define LIMIT_LATELY_MS UINT64_C(100)
/* An unused share is given back after this time. */
#define LIMIT_SPARE_MS UINT64_C(100)

static inline bool limit_is_rate(const struct limit *limit)
{
        return limit->store.rate > 0;
}

/* Whether more tasks run than there are shares: some shares have ended. */
static inline bool limit_is_lost(const struct limit_bucket *b)
{
        return !limit_is_rate(b->of) && b->in_use > b->granted + b->stopping + b->adopted + b->passed_on;
}

/* Resets the counts of the bucket if they are of an earlier pass. */
static inline void limit_stamp(const struct limits *l, struct limit_bucket *b)
{
        if (b->pass == l->pass)
                return;
        b->pass = l->pass;
        b->waiting = b->lacking = b->backed = b->promised = 0;
}

static inline bool limit_is_away(const struct limit_bucket *b, uint64_t now_ms)
{
        uint64_t open_ms = b->ask_ms > b->closed_ms ? b->ask_ms : b->closed_ms;
        return open_ms > now_ms + LIMIT_AWAY_MS;
}

/* How many of a bucket's tasks may wait in windows: as many as can start until more are woken, which takes a few calls
 * to the store, but never many.  A rate gives that number; for a concurrency it follows from recent starts. */
uint32_t limit_window(const struct limit_bucket *b);
struct limit_bucket *limit_bucket_find(const struct limit *limit, struct span value);
struct limit_bucket *limit_bucket_ensure(struct limits *l, struct limit *limit, const struct limit_task *task);
void limit_bucket_drop(struct limits *l, struct limit_bucket *b);
/* Free shares that this task could use now. */
uint64_t limit_available(const struct limit_bucket *b, const struct limit_task *task, uint64_t now_ms);

#endif
