/* fault.h: what a dying runner can still say: which signal, where, and a short backtrace, in its seat's fault record.
 *
 * The record names a seat only if that seat's own thread did it: a fault on a thread that the plugin made leaves every
 * record empty, and the host treats all that was running as suspects.  A child that the plugin forked leaves none
 * either.
 *
 * Told to abort.  A SIGABRT from outside (the host's, when a task did not stop in time; or anybody's) blames nobody.
 * The seats whose stop flag is raised are asked where they stand, and answer with a record of signal SIGABRT and code
 * SI_USER; an abort() of the handler's own has code SI_TKILL.  So the host can put the first into the history of the
 * task that timed out, and takes only the second for a crash. */
#ifndef QUIVER_RUNNER_FAULT_H
#define QUIVER_RUNNER_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/layout.h"

/* Catches what kills, and exit().  Once per process, before the plugin is opened. */
void fault_install(void);

/* exit() runs the newest handler first, and the plugin may have added some that hang: call this again once it is
 * loaded. */
void fault_catch_exit(void);

/* From here on this thread's faults are that seat's.  Gives the thread a signal stack of its own, so that a stack
 * overflow can be told too.  0 or -errno. */
int fault_begin(struct ring_seat *seat, uint32_t number);
/* And from here on nobody's. */
void fault_end(void);

/* Whether this is a child that the plugin forked, and that now wants to go on as if it were the runner. */
bool fault_is_forked(void);

/* The handler made this thread or runner unusable: notes it for the thread's seat, with `text`, and ends the process.
 */
_Noreturn void fault_give_up(const char *text);

#endif
