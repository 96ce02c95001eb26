/* checkpoint.h: brings the write-ahead log back into the file, beside the writer, so that no request waits for it. */
#ifndef QUIVER_STORE_SQLITE_FILE_CHECKPOINT_H
#define QUIVER_STORE_SQLITE_FILE_CHECKPOINT_H

#include "store/sqlite/sqlite.h"

/* A host has a thread for it; others only help out when no host seems to. */
int checkpoint_start(struct sqlite_store *s, struct error *error);
void checkpoint_stop(struct sqlite_store *s);
/* Between transactions: starts one if the log has grown. */
void checkpoint_consider(struct sqlite_store *s);

#endif
