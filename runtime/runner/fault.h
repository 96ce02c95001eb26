/* fault.h: the fault record of a dying runner: signal, address and a short backtrace, in the memory shared with the
 * host.
 *
 * A seat gets a record only if its own thread crashed.  A fault on a thread that the plugin started goes to a record of
 * its own, which names no task: the host treats all running tasks as suspects.  A child that the plugin forked leaves
 * no record.
 *
 * A SIGABRT from another process (the host, when a task did not stop in time, or anyone else) blames no task.  Each
 * seat whose stop flag is raised writes a record with signal SIGABRT and code SI_USER; an abort() by the handler itself
 * has code SI_TKILL.  The host adds the first to the history of the task that timed out, and treats only the second as
 * a crash. */
#ifndef QUIVER_RUNNER_FAULT_H
#define QUIVER_RUNNER_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/layout.h"

/* Catches fatal signals and exit().  Called once per process, before the plugin is opened. */
void fault_install(void);

/* Records faults of threads that do not belong to a seat here from now on. */
void fault_watch_threads(struct ring_fault *record);

/* Registers our exit handler again.  exit() runs the newest handler first, and the plugin may have added one that
 * hangs, so this is called after the plugin was loaded and initialised. */
void fault_catch_exit(void);

/* From now on faults of this thread go to that seat's record.  Gives the thread a signal stack of its own, so that a
 * stack overflow is recorded too.  0 or -errno: a memory limit that leaves no room for that stack is a setting, which
 * the host is told about. */
int fault_begin(struct ring_seat *seat, uint32_t number);
/* From now on faults of this thread are not recorded. */
void fault_end(void);

/* Whether this process is a child that the plugin forked and not the runner itself. */
bool fault_is_forked(void);

/* Ends the process because the handler made this thread or the runner unusable; `text` goes to the record of the
 * thread's seat. */
_Noreturn void fault_give_up(const char *text);

#endif
