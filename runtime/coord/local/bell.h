/* bell.h: how the processes tell each other that the log has grown.
 *
 * Each has a datagram socket bell-NONCE.  A message says nothing but "look": if it does not fit, there are others that
 * have not been read yet.  Sent after the append, never waited for. */
#ifndef QUIVER_COORD_LOCAL_BELL_H
#define QUIVER_COORD_LOCAL_BELL_H

#include "coord/local/folder.h"

/* Returns a socket, or -errno. */
int local_bell_open(const struct folder *folder, const uint8_t nonce[TREE_NONCE_SIZE], struct error *error);
/* Reads all that is there. */
void local_bell_drain(int fd);
/* Rings every session but `own_id`. */
void local_bell_ring(const struct folder *folder, const struct local_tree *tree, uint64_t own_id);

#endif
