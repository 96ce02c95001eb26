/* checkpoint.h: copies the write-ahead log back into the database, beside the writer, so that no request waits for
 * it. */
#ifndef QUIVER_STORE_SQLITE_FILE_CHECKPOINT_H
#define QUIVER_STORE_SQLITE_FILE_CHECKPOINT_H

#include "store/sqlite/sqlite.h"

/* A host has a thread for checkpoints; other processes only help out when no host keeps up. */
int checkpoint_start(struct sqlite_store *s, struct error *error);
void checkpoint_stop(struct sqlite_store *s);
/* Call between transactions: starts a checkpoint if the log has grown. */
void checkpoint_consider(struct sqlite_store *s);

#endif
