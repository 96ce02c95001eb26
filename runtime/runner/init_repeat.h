/* init_repeat.h: repeats init and close many times, to find what they leak.  For `quiver vet`. */
#ifndef QUIVER_RUNNER_INIT_REPEAT_H
#define QUIVER_RUNNER_INIT_REPEAT_H

#include "base/error.h"
#include "ring/message.h"
#include "runner/runner.h"

/* Opens and closes seat 0 runner->start.rehearsals times, fewer if that would take longer than REHEARSAL_MS, before the
 * seat is opened for its tasks.  0, or -errno with the text set if an init failed. */
int init_repeat(struct runner *runner, struct rehearsal *ret, struct error *error);

#endif
