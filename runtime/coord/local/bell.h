/* bell.h: how the processes tell each other that the log has grown.
 *
 * Each process has a datagram socket bell-NONCE.  A message has no content: if the queue is full, unread ones have the
 * same effect.  Sent after the append, never waited for. */
#ifndef QUIVER_COORD_LOCAL_BELL_H
#define QUIVER_COORD_LOCAL_BELL_H

#include "coord/local/folder.h"

/* Returns a socket, or -errno. */
int local_bell_open(const struct folder *folder, const uint8_t nonce[TREE_NONCE_SIZE], struct error *error);
/* Reads all messages. */
void local_bell_drain(int fd);
/* Rings every session except `own_id`. */
void local_bell_ring(const struct folder *folder, const struct local_tree *tree, uint64_t own_id);

#endif
