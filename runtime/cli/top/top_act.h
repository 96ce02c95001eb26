/* top_act.h: does what a person asked for in `quiver top`. */
#ifndef QUIVER_CLI_TOP_TOP_ACT_H
#define QUIVER_CLI_TOP_TOP_ACT_H

#include "cli/admin/dead_pick.h"
#include "cli/top/top.h"

/* TOP_REQUEUE: which tasks it is about; sets action->count.  0, or -errno with the text. */
int top_act_count(struct cli_store *s, struct top_action *action, struct dead_survey *ret_survey, struct error *error);

/* Does it; of a requeue, to the tasks that were counted.  Appends what was done or why not, escaped. */
void top_act(
        struct cli_store *s, const struct top_action *action, const struct dead_survey *survey, struct buffer *message);

#endif
