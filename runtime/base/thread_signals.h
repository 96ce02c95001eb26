/* thread_signals.h: the signals that our own threads block, so that the program's main thread gets them.
 *
 * All except those of a fault: a blocked signal that a thread causes itself ends the process at once, without the
 * program's handler, which may have a terminal to restore. */
#ifndef QUIVER_BASE_THREAD_SIGNALS_H
#define QUIVER_BASE_THREAD_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* For pthread_sigmask(), around pthread_create() or in the thread itself. */
static inline void thread_signals_of_others(sigset_t *ret_set)
{
        static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
        (void)sigfillset(ret_set);
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
                (void)sigdelset(ret_set, faults[i]);
}

#endif
