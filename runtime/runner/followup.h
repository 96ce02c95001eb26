/* followup.h: checks a task that a handler submits, and stages it in the answer of the handler's own task. */
#ifndef QUIVER_RUNNER_FOLLOWUP_H
#define QUIVER_RUNNER_FOLLOWUP_H

#include <stdint.h>

#include <quiver/plugin.h>

#include "base/error.h"
#include "runner/seat_task.h"

/* 0; or, with a text that names the field: -EINVAL (a field is wrong), -EMSGSIZE (the payload is over `payload_max`, or
 * the whole answer over `answer_max` bytes), -E2BIG (over QV_SUBMITS_MAX).  On failure nothing was staged. */
int followup_stage(struct seat_task *w, const struct qv_submit *submit, uint64_t payload_max, uint64_t answer_max,
        struct error *error);

#endif
