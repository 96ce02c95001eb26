/* task_look.h: one task: its record in the store, where it is and why it waits. */
#ifndef QUIVER_LOOK_TASK_LOOK_H
#define QUIVER_LOOK_TASK_LOOK_H

#include "look/keep.h"
#include "look/look.h"

enum task_step { TASK_WHEREABOUTS, TASK_FIND, TASK_COUNT, TASK_KEY, TASK_END };

/* Zero it, then call task_look_init(). */
struct task_look {
        struct look look;
        struct span id; /* borrowed; task_id_check() must have accepted it */

        struct kept_task found;            /* is_there is false if the task is done or dropped, or never existed */
        char merged_into[TASK_ID_MAX + 1]; /* the task that it was merged into; "": none */
        uint64_t merged_ms;                /* store time of the merge */
        struct kept_key key;
        struct whereabouts_look where;
        struct store_counts shard;
        enum task_step step;
};

void task_look_init(struct task_look *look, struct span id);
void task_look_free(struct task_look *look);

/* The task's whereabouts (view/whereabouts.h).  The caller owns it. */
json_t *task_look_where(const struct task_look *look);
/* Everything that is known of the task. */
json_t *task_look_as_json(const struct task_look *look);

#endif
