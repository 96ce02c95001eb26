/* constructors.h: what a plugin's constructors do besides preparing themselves: print, and start threads.
 *
 * They run inside dlopen(), before anything of the plugin was checked.  Only `quiver vet` looks at it. */
#ifndef QUIVER_RUNNER_CONSTRUCTORS_H
#define QUIVER_RUNNER_CONSTRUCTORS_H

#include "ring/message.h"

/* Before the plugin is opened: from now on what is printed is kept. */
void constructors_begin(void);
/* After that: standard output and error are as before, and got what was printed. */
void constructors_end(struct rehearsal *ret);

#endif
