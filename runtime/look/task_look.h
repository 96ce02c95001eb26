/* task_look.h: one task: what the store has of it, where it is and why it waits. */
#ifndef QUIVER_LOOK_TASK_LOOK_H
#define QUIVER_LOOK_TASK_LOOK_H

#include "look/keep.h"
#include "look/look.h"

enum task_step { TASK_WHEREABOUTS, TASK_FIND, TASK_COUNT, TASK_KEY, TASK_END };

/* Zeroed, then task_look_init(). */
struct task_look {
        struct look look;
        struct span id; /* the caller's; task_id_check() has taken it */

        struct kept_task found;            /* is_there: false if it is done or dropped, or never was */
        char merged_into[TASK_ID_MAX + 1]; /* not there, since it was merged into this one; "": not so */
        uint64_t merged_ms;                /* when, store time */
        struct kept_key key;
        struct whereabouts_look where;
        struct store_counts shard;
        enum task_step step;
};

void task_look_init(struct task_look *look, struct span id);
void task_look_free(struct task_look *look);

/* What view/whereabouts.h says of it; the caller's. */
json_t *task_look_where(const struct task_look *look);
/* All that is known of it. */
json_t *task_look_as_json(const struct task_look *look);

#endif
