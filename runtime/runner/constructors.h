/* constructors.h: side effects of a plugin's constructors: output, and threads.
 *
 * Constructors run inside dlopen(), before anything of the plugin was checked.  Only `quiver vet` looks at them. */
#ifndef QUIVER_RUNNER_CONSTRUCTORS_H
#define QUIVER_RUNNER_CONSTRUCTORS_H

#include "ring/message.h"

/* Call before the plugin is opened: captures the output from now on. */
void constructors_begin(void);
/* Call after the plugin was opened: restores standard output and error, and passes the captured output on. */
void constructors_end(struct rehearsal *ret);

#endif
