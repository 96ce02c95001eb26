/* file_system.h: which file systems other machines share. */
#ifndef QUIVER_BASE_FILE_FILE_SYSTEM_H
#define QUIVER_BASE_FILE_FILE_SYSTEM_H

/* The name ("NFS") of a network file system whose statfs() type this is; NULL: it is none.  On these, locks or shared
 * memory do not work between machines as they do on one. */
const char *file_system_network_name(unsigned long type);

#endif
