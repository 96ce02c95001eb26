/* status.h: an app as a whole: waiting and running tasks, owners of shards, handlers, pauses.
 *
 * Made from replies of a store: the counts of its shards, the desired state, the hosts' status documents
 * (host/report/status.h), the keys that are not free, samples of tasks, and the dead by group.  A document is input:
 * malformed parts are ignored.
 *
 * Waiting is queued, claimed but not started, parked or held; running is inside handle().  By shard both are exact.  By
 * handler they are exact for claimed tasks; tasks in the store are counted in samples, and a handler with such a count
 * is marked `estimated`. */
#ifndef QUIVER_VIEW_STATUS_H
#define QUIVER_VIEW_STATUS_H

#include <jansson.h>

#include "store/admin.h"

/* What is known of a shard besides its counts. */
struct status_shard {
        uint64_t running;   /* running tasks, as reported by its live owner */
        uint64_t oldest_ms; /* of the oldest task that is queued, in flight, or behind a key */
};

/* A sample of the tasks of one shard and state, of which there are `total`. */
struct status_sample {
        uint64_t total;
        uint64_t seen;
        json_t *handlers; /* name → number of tasks in the sample */
};

/* Initialise with status_init(). */
struct status {
        const struct store_info *info;     /* borrowed */
        const char *store;                 /* its URL; borrowed */
        const struct store_counts *counts; /* one per shard; borrowed */
        struct store_counts total;
        struct status_shard *shards; /* one per shard */
        uint64_t created_ms;         /* creation time of the app; 0: unknown */
        uint32_t owned;              /* shards under a valid lease */
        uint64_t running;            /* over all shards */
        uint64_t oldest_ms;
        uint64_t parked_keys; /* keys whose first task waits for its retry */
        uint64_t held_keys;   /* keys that wait for a person */
        uint64_t keys_seen;
        bool are_keys_cut; /* not all keys were looked at: both numbers are lower bounds */
        json_t *paused;    /* handler, or "" for all → why */
        json_t *desired;   /* all other desired state: name → value */
        json_t *members;   /* one per document */
        json_t *handlers;  /* merged by name over all hosts */
        json_t *rates;     /* done, retried, failed per second, summed over all hosts */
        json_t *limits;    /* view/limits.h */
        uint64_t now_ms;   /* unix time, set by the caller; 0: temporary settings of limits count as in force */
        json_t *dead;      /* groups: handler, reason, error, tasks */
        struct status_sample sample;
};

/* `counts` has info->shards elements. */
void status_init(
        struct status *status, const struct store_info *info, const char *store_url, const struct store_counts *counts);
void status_free(struct status *status);

/* Call these in this order: documents; samples and groups; totals. */
void status_add_desired(struct status *status, const struct store_desired *item);
void status_add_document(struct status *status, const struct store_status *found);
void status_add_key(struct status *status, const struct store_key_info *key);
/* Begins a sample of a shard's tasks in one state, of which there are `total`; the sampled tasks follow. */
void status_sample_begin(struct status *status, uint64_t total);
void status_add_sampled(struct status *status, const struct store_listed *task, uint64_t now_ms);
void status_sample_end(struct status *status);
void status_add_dead_group(struct status *status, const struct store_dead_group *group);
/* Adds a total since the app began ("mail.done"), for a handler that is already known. */
void status_add_total(struct status *status, const struct store_total *total);

/* The waiting tasks of a shard; of all shards. */
uint64_t status_shard_waiting(const struct status *status, uint32_t shard);
uint64_t status_waiting(const struct status *status);
/* NULL: unknown handler. */
const json_t *status_handler(const struct status *status, const char *name);

/* The complete status. */
json_t *status_as_json(const struct status *status);

/* Display options. */
struct status_screen {
        unsigned lines; /* limits members, handlers, and shards (the fullest are shown); 0: all */
        bool has_color;
};
void status_as_text(struct buffer *to, const struct status *status, const struct status_screen *screen);

#endif
