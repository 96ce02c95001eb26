/* resolve.h: the names of a ZooKeeper URL as a list of numeric addresses.
 *
 * Given names, the client would resolve them anew on its I/O thread every now and then, and a name server that does not
 * answer would stop its heartbeats: the session dies while the client says that it is connected. */
#ifndef QUIVER_COORD_ZOOKEEPER_RESOLVE_H
#define QUIVER_COORD_ZOOKEEPER_RESOLVE_H

#include "base/error.h"
#include "base/url.h"

/* "10.0.0.1:2181,10.0.0.2:2181" as the client wants it (an IPv6 address stands without brackets); the caller frees it.
 * Names that do not resolve are left out, with a line in the log.  NULL with the reason if nothing is left.  Blocks. */
char *zk_resolve(const struct url *url, struct error *error);

#endif
