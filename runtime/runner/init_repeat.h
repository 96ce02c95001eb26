/* init_repeat.h: init and close, many times over, to see what they leave behind.  For `quiver vet`. */
#ifndef QUIVER_RUNNER_INIT_REPEAT_H
#define QUIVER_RUNNER_INIT_REPEAT_H

#include "base/error.h"
#include "ring/message.h"
#include "runner/runner.h"

/* Opens and closes the first seat, on its own thread and before it is opened for good, runner->start.rehearsals times
 * (fewer if that takes longer than REHEARSAL_MS).  0, or -errno with the text set if an init failed. */
int init_repeat(struct runner *runner, struct rehearsal *ret, struct error *error);

#endif
