/* schema.h: the tables, their version, and the migration of older files. */
#ifndef QUIVER_STORE_SQLITE_FILE_SCHEMA_H
#define QUIVER_STORE_SQLITE_FILE_SCHEMA_H

#include "store/sqlite/file/query.h"

/* Reads the version of an open file; 0: empty.  -EPROTO: not ours, or newer than this build. */
int schema_version(struct database *db, const char *path, unsigned *ret_version, struct error *error);
bool schema_is_current(unsigned version);
/* The version that this build writes. */
unsigned schema_newest(void);
/* Brings the file up to date, inside the caller's transaction. */
void schema_migrate(struct database *db, unsigned version);

#endif
