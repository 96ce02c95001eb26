/* status.h: an app as a whole: what its store holds, who owns which shard, how the handlers do, what is paused.
 *
 * Made of three replies of a store: the counts of its shards, the desired state, and the documents that hosts write
 * about themselves (host/status.h), merged by handler.  A document may say anything: what is not as expected counts as
 * nothing. */
#ifndef QUIVER_VIEW_STATUS_H
#define QUIVER_VIEW_STATUS_H

#include <jansson.h>

#include "store/admin.h"

/* Started by status_init(). */
struct status {
        const struct store_info *info;     /* borrowed */
        const char *store;                 /* its URL; borrowed */
        const struct store_counts *counts; /* one per shard; borrowed */
        struct store_counts total;
        uint32_t owned;   /* shards under a lease that lasts */
        json_t *paused;   /* handler, or "" for all → why */
        json_t *desired;  /* whatever else people asked for: name → value */
        json_t *members;  /* one per document */
        json_t *handlers; /* merged by name over all hosts */
        json_t *rates;    /* done, retried, failed per second, summed over all hosts */
};

/* `counts` has one element for each of info->shards. */
void status_init(
        struct status *status, const struct store_info *info, const char *store_url, const struct store_counts *counts);
void status_add_desired(struct status *status, const struct store_desired *item);
void status_add_document(struct status *status, const struct store_status *found);
void status_free(struct status *status);

/* All of it. */
json_t *status_as_json(const struct status *status);
/* What goes on a screen of so many lines: the first members and handlers, the fullest shards. */
void status_as_text(struct buffer *to, const struct status *status, unsigned lines);

#endif
