/* client.h: the ZooKeeper client's header, which has a `struct buffer` of its own. */
#ifndef QUIVER_COORD_ZOOKEEPER_CLIENT_H
#define QUIVER_COORD_ZOOKEEPER_CLIENT_H

#define THREADED /* selects the library with its own threads, libzookeeper_mt */
#define buffer   zookeeper_buffer
#include <zookeeper/zookeeper.h>
#undef buffer

#endif
