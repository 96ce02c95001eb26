/* limit_private.h: what limit.c (tasks and buckets), limit_pass.c (who may go on) and limit_calls.c (what is asked for)
 * share. */
#ifndef QUIVER_HOST_LIMIT_LIMIT_PRIVATE_H
#define QUIVER_HOST_LIMIT_LIMIT_PRIVATE_H

#include "host/limit/limit.h"

/* A task that cannot start for longer than this waits in the store. */
#define LIMIT_AWAY_MS UINT64_C(1000)
/* A share is kept for a task that lacks another if that one may come within this time. */
#define LIMIT_SOON_MS UINT64_C(100)
/* So long starts are counted before it is said how many there are. */
#define LIMIT_LATELY_MS UINT64_C(100)
/* A share that nothing uses is given back after this long. */
#define LIMIT_SPARE_MS UINT64_C(100)

static inline bool limit_is_rate(const struct limit *limit)
{
        return limit->store.rate > 0;
}

/* More run than there are shares: some of them have ended. */
static inline bool limit_is_lost(const struct limit_bucket *b)
{
        return !limit_is_rate(b->of) && b->in_use > b->granted + b->stopping + b->adopted + b->passed_on;
}

/* Its counts are of this pass from now on. */
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

/* How many of a bucket's tasks may wait in windows: what it lets start until more of them are woken, which takes a few
 * calls to the store, but never many.  A rate says how many that are; of a concurrency it depends on how long they
 * take.
 */
uint32_t limit_window(const struct limit_bucket *b);
struct limit_bucket *limit_bucket_find(const struct limit *limit, struct span value);
struct limit_bucket *limit_bucket_ensure(struct limits *l, struct limit *limit, const struct limit_task *task);
void limit_bucket_drop(struct limits *l, struct limit_bucket *b);
/* Shares that are to be had now. */
uint64_t limit_available(const struct limit_bucket *b, const struct limit_task *task, uint64_t now_ms);

#endif
