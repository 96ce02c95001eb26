/* resolve.h: resolves the host names of a ZooKeeper URL to numeric addresses.
 *
 * Given names, the client would resolve them again on its I/O thread from time to time, and a name server that does not
 * answer would stop its heartbeats: the session would die while the client reports that it is connected. */
#ifndef QUIVER_COORD_ZOOKEEPER_RESOLVE_H
#define QUIVER_COORD_ZOOKEEPER_RESOLVE_H

#include "base/error.h"
#include "base/url.h"

/* "10.0.0.1:2181,10.0.0.2:2181" as the client wants it (IPv6 addresses without brackets); the caller frees it.  Names
 * that do not resolve are skipped and logged.  NULL with the error set if none is left.  Blocks. */
char *zk_resolve(const struct url *url, struct error *error);

#endif
