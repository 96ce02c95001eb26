/* place_etcd.h: the servers behind the etcd places, for tests that break them. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_PLACE_ETCD_H
#define QUIVER_TESTS_CONTRACT_COORD_PLACE_ETCD_H

#include "../etcds.h"

/* Started with the first place. */
struct etcds *place_etcd(void);

#endif
