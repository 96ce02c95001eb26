/* place_servers.h: the servers behind the places of etcd and ZooKeeper, for tests that break them. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_PLACE_SERVERS_H
#define QUIVER_TESTS_CONTRACT_COORD_PLACE_SERVERS_H

#include "ensemble.h"

/* Started with the first place. */
struct ensemble *place_servers(void);

#endif
