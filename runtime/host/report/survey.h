/* survey.h: what a host holds at a moment: tasks that wait in its windows and tasks that run, by handler and by shard.
 *
 * Walks the windows and the runners' rings, so it is made when a document is written and not at every turn of the loop.
 * What a ring says is a runner's word: times are limited to what is possible. */
#ifndef QUIVER_HOST_REPORT_SURVEY_H
#define QUIVER_HOST_REPORT_SURVEY_H

#include <jansson.h>
#include <stdint.h>

#include "host/handler/handlers.h"
#include "host/shard/shard_io.h"
#include "store/app.h"

/* What runs for less is not in the document of what runs: it would be over before somebody reads it. */
#define SURVEY_LONG_MS 1000u

/* How often a host may write what runs, and what was done, at most: with more hosts each writes less often, so that the
 * store is not busy with it. */
#define SURVEY_PACE_MS 2000u
#define SURVEY_HOSTS   100u
static inline uint32_t survey_rarer(uint64_t hosts)
{
        return hosts > SURVEY_HOSTS ? (uint32_t)((hosts + SURVEY_HOSTS - 1) / SURVEY_HOSTS) : 1;
}

struct survey_handler {
        uint64_t waiting; /* claimed and not started */
        uint64_t running;
        uint64_t seated; /* on seats here: also tasks of other hosts, and none that run elsewhere */
        /* By lane; what waits only in shards before our deadline of their lease: after it another may count it. */
        uint64_t waiting_lanes[LANES], running_lanes[LANES];
        uint64_t longest_ms; /* for how long the longest has been running; 0: none */
        uint64_t age_ms;     /* of the oldest of both, since its submission, or else since it was claimed; 0: none */
};

struct survey_running {
        const struct claimed *task;
        const struct handler *handler;
        uint32_t generation;
        uint64_t file_hash;
        int32_t pid;                            /* 0: a worker has it */
        const char *worker;                     /* NULL: a runner has it */
        bool is_seat;                           /* of a worker: it is a host, on whose seat it runs */
        uint64_t until_ms;                      /* of a worker: boot time; it is the worker's to the end of this */
        uint64_t started_ms;                    /* boot time */
        uint64_t progress_done, progress_total; /* both 0: it said nothing */
};

/* Zeroed before the first survey_take(); its memory is reused. */
struct survey {
        struct survey_handler *handlers; /* by slot */
        uint32_t handlers_count;
        uint32_t *running; /* by shard: how many run */
        uint32_t shards;
        uint64_t taken_ms;           /* boot time */
        uint64_t created_ms;         /* set by the caller: when the app was made, for no task is older; 0: not known */
        struct survey_running *list; /* what has been running for SURVEY_LONG_MS, the longest first */
        size_t list_count, list_room;
};

void survey_take(struct survey *survey, const struct handlers *handlers, const struct shards *shards, uint64_t now_ms,
        uint64_t wall_ms);
void survey_free(struct survey *survey);

/* Pairs of shard and number, of the shards where something runs. */
json_t *survey_running_by_shard(const struct survey *survey);
/* The document of what runs, as text, at most `max` bytes: the longest first, the rest as a number.  Only what stands
 * in `list` is read, so it must be made before the loop goes on.  `offset_ms` is how far the wall clock is ahead of
 * boot time: the same at every call, or times that have not changed would look as if they had.  The caller's. */
char *survey_document(const struct survey *survey, const char *host, uint64_t offset_ms, size_t max);

#endif
