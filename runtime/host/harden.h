/* harden.h: what a process that knows secrets, and has children that run other people's code, does first of all. */
#ifndef QUIVER_HOST_HARDEN_H
#define QUIVER_HOST_HARDEN_H

/* What it makes is for its own user alone (umask 077).  Other processes of that user, its runners among them, can
 * neither read its memory and environment nor trace it, and it leaves no core dump, unless QUIVER_CORES=1 is set for
 * whoever debugs it.  Before any password is read. */
void harden_process(void);

#endif
