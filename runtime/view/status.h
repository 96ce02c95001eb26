/* status.h: an app as a whole: what waits and what runs, who owns which shard, how the handlers do, what is paused.
 *
 * Made of replies of a store: the counts of its shards, the desired state, the documents that hosts write about
 * themselves (host/report/status.h), the keys that are not free, samples of tasks, and the dead by group.  A document
 * may say anything: what is not as expected counts as nothing.
 *
 * Waiting is queued, claimed but not started, parked or held; running is inside handle().  By shard both are exact.  By
 * handler they are exact for what a host has claimed; what is in the store is counted in samples, and a handler with
 * such a count is marked `estimated`. */
#ifndef QUIVER_VIEW_STATUS_H
#define QUIVER_VIEW_STATUS_H

#include <jansson.h>

#include "store/admin.h"

/* What is known of a shard beyond its counts. */
struct status_shard {
        uint64_t running;   /* what its live owner says that runs there */
        uint64_t oldest_ms; /* of what waits in queues, in flight, or behind a key */
};

/* Tasks of one shard and state that were looked at, of `total`. */
struct status_sample {
        uint64_t total;
        uint64_t seen;
        json_t *handlers; /* name → how many of them */
};

/* Started by status_init(). */
struct status {
        const struct store_info *info;     /* borrowed */
        const char *store;                 /* its URL; borrowed */
        const struct store_counts *counts; /* one per shard; borrowed */
        struct store_counts total;
        struct status_shard *shards; /* one per shard */
        uint64_t created_ms;         /* when the app was made; 0: not known */
        uint32_t owned;              /* shards under a lease that lasts */
        uint64_t running;            /* in all of them */
        uint64_t oldest_ms;
        uint64_t parked_keys; /* whose first task waits for its retry */
        uint64_t held_keys;   /* that wait for a person */
        uint64_t keys_seen;
        bool are_keys_cut; /* there are more than were looked at: both numbers are at least so many */
        json_t *paused;    /* handler, or "" for all → why */
        json_t *desired;   /* whatever else people asked for: name → value */
        json_t *members;   /* one per document */
        json_t *handlers;  /* merged by name over all hosts */
        json_t *rates;     /* done, retried, failed per second, summed over all hosts */
        json_t *limits;    /* view/limits.h */
        uint64_t now_ms;   /* unix time, which the caller sets; 0: what people have set of limits counts as on */
        json_t *dead;      /* groups: handler, reason, error, tasks */
        struct status_sample sample;
};

/* `counts` has one element for each of info->shards. */
void status_init(
        struct status *status, const struct store_info *info, const char *store_url, const struct store_counts *counts);
void status_free(struct status *status);

/* Then, in this order: documents; samples and groups; totals. */
void status_add_desired(struct status *status, const struct store_desired *item);
void status_add_document(struct status *status, const struct store_status *found);
void status_add_key(struct status *status, const struct store_key_info *key);
/* What a shard has in one state: `total` tasks, of which some are shown between begin and end. */
void status_sample_begin(struct status *status, uint64_t total);
void status_add_sampled(struct status *status, const struct store_listed *task, uint64_t now_ms);
void status_sample_end(struct status *status);
void status_add_dead_group(struct status *status, const struct store_dead_group *group);
/* What was counted since the app began, of handlers that are known by now: "mail.done". */
void status_add_total(struct status *status, const struct store_total *total);

/* Of a shard; of all. */
uint64_t status_shard_waiting(const struct status *status, uint32_t shard);
uint64_t status_waiting(const struct status *status);
/* NULL: nothing is known of it. */
const json_t *status_handler(const struct status *status, const char *name);

/* All of it. */
json_t *status_as_json(const struct status *status);

/* How it is shown. */
struct status_screen {
        unsigned lines; /* the first members and handlers, the fullest shards; 0: all */
        bool has_color;
};
void status_as_text(struct buffer *to, const struct status *status, const struct status_screen *screen);

#endif
