/* status_look.h: an app as a whole, for view/status.h. */
#ifndef QUIVER_LOOK_STATUS_LOOK_H
#define QUIVER_LOOK_STATUS_LOOK_H

#include "look/look.h"
#include "view/status.h"

enum status_step {
        STATUS_BEGIN,
        STATUS_COUNTS,
        STATUS_DESIRED,
        STATUS_DOCUMENTS,
        STATUS_SAMPLE,
        STATUS_KEYS,
        STATUS_GROUPS,
        STATUS_TOTALS,
        STATUS_END
};

/* Zero it, then call status_look_init(). */
struct status_look {
        struct look look;
        const char *store_url; /* borrowed from the caller */
        uint64_t now_ms;       /* unix time */

        struct status status; /* complete when the look is; free it with the look */
        struct store_counts *counts;
        uint32_t shard;   /* the shard being sampled */
        uint32_t sampled; /* shards sampled so far */
        unsigned state;   /* index of the state being sampled */
        uint64_t keys_left;
        enum status_step step;
};

void status_look_init(struct status_look *look, const char *store_url, uint64_t now_ms);
void status_look_free(struct status_look *look);

#endif
