/* survey.h: the tasks that a host holds at a moment: waiting in its windows and running, by handler and by shard.
 *
 * It walks the windows and the runners' rings, so it is made for a document and not in every turn of the loop.  A
 * ring's content is a runner's claim: times are clamped to what is possible. */
#ifndef QUIVER_HOST_REPORT_SURVEY_H
#define QUIVER_HOST_REPORT_SURVEY_H

#include <jansson.h>
#include <stdint.h>

#include "host/handler/handlers.h"
#include "host/shard/shard_io.h"
#include "store/app.h"

/* Shorter tasks are not in the document of running tasks: they would have ended before anybody reads it. */
#define SURVEY_LONG_MS 1000u

/* How often a host may write the documents of running and of done tasks.  In a large fleet each host writes less often,
 * to bound the load on the store. */
#define SURVEY_PACE_MS 2000u
#define SURVEY_HOSTS   100u
static inline uint32_t survey_rarer(uint64_t hosts)
{
        return hosts > SURVEY_HOSTS ? (uint32_t)((hosts + SURVEY_HOSTS - 1) / SURVEY_HOSTS) : 1;
}

struct survey_handler {
        uint64_t waiting; /* claimed and not started */
        uint64_t running;
        uint64_t seated; /* tasks on seats here: includes borrowed tasks, excludes lent ones */
        /* By lane.  `waiting_lanes` counts only shards before our own deadline of their lease: afterwards another host
         * may count them. */
        uint64_t waiting_lanes[LANES], running_lanes[LANES];
        uint64_t longest_ms; /* how long the longest has been running; 0: none runs */
        uint64_t age_ms;     /* of the oldest task, since its submission, or else its claim; 0: none */
};

struct survey_running {
        const struct claimed *task;
        const struct handler *handler;
        uint32_t generation;
        uint64_t file_hash;
        int32_t pid;                            /* 0: a worker has the task */
        const char *worker;                     /* NULL: a runner has the task */
        bool is_seat;                           /* `worker` is a host, on whose seat the task runs */
        uint64_t until_ms;                      /* of a worker: boot time of its deadline */
        uint64_t started_ms;                    /* boot time */
        uint64_t progress_done, progress_total; /* both 0: not reported */
};

/* Zero-initialise before the first survey_take(), which reuses the memory. */
struct survey {
        struct survey_handler *handlers; /* by slot */
        uint32_t handlers_count;
        uint32_t *running; /* by shard: running tasks */
        uint32_t shards;
        uint64_t taken_ms;           /* boot time */
        uint64_t created_ms;         /* set by the caller: creation time of the app, which bounds ages; 0: unknown */
        struct survey_running *list; /* tasks that have been running for SURVEY_LONG_MS, the longest first */
        size_t list_count, list_room;
};

void survey_take(struct survey *survey, const struct handlers *handlers, const struct shards *shards, uint64_t now_ms,
        uint64_t wall_ms);
void survey_free(struct survey *survey);

/* An array of pairs of shard and count, for shards with running tasks. */
json_t *survey_running_by_shard(const struct survey *survey);
/* The document of running tasks as text of at most `max` bytes: the longest first, the rest as a count.  Reads only
 * `list`, so it must be made before the loop continues.  `offset_ms` is how far the wall clock is ahead of boot time;
 * it must be the same in every call, or unchanged times would look changed.  The caller frees it. */
char *survey_document(const struct survey *survey, const char *host, uint64_t offset_ms, size_t max);

#endif
