/* file_system.h: which file systems are shared between machines. */
#ifndef QUIVER_BASE_FILE_FILE_SYSTEM_H
#define QUIVER_BASE_FILE_FILE_SYSTEM_H

/* The name ("NFS") of a network file system with this statfs() type; NULL: it is not one.  On these, locks and shared
 * memory do not work between machines as they do on one. */
const char *file_system_network_name(unsigned long type);

#endif
