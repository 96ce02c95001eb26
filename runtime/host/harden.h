/* harden.h: protects a process that holds secrets from its children, which run other people's code. */
#ifndef QUIVER_HOST_HARDEN_H
#define QUIVER_HOST_HARDEN_H

/* Sets umask 077.  Makes the process undumpable: other processes of the same user, runners among them, can neither read
 * its memory and environment nor trace it, and it leaves no core dump.  With QUIVER_CORES=1 it stays dumpable, for
 * debugging.  Must be called before any password is read. */
void harden_process(void);

#endif
