/* place_zookeeper.h: the servers behind the ZooKeeper places, for tests that break them. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_PLACE_ZOOKEEPER_H
#define QUIVER_TESTS_CONTRACT_COORD_PLACE_ZOOKEEPER_H

#include "../zookeepers.h"

/* Started with the first place. */
struct zookeepers *place_zookeeper(void);

#endif
