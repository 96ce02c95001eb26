/* schema.h: the tables, their version, and how an older file becomes a current one. */
#ifndef QUIVER_STORE_SQLITE_FILE_SCHEMA_H
#define QUIVER_STORE_SQLITE_FILE_SCHEMA_H

#include "store/sqlite/file/query.h"

/* The version of an open file; 0: empty.  -EPROTO: not ours, or newer than we are. */
int schema_version(struct database *db, const char *path, unsigned *ret_version, struct error *error);
bool schema_is_current(unsigned version);
/* The version that this build makes. */
unsigned schema_newest(void);
/* Brings it up to date, inside the caller's transaction. */
void schema_migrate(struct database *db, unsigned version);

#endif
