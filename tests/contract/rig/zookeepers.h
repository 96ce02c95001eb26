/* zookeepers.h: real ZooKeeper servers for tests, each a Java process. */
#ifndef QUIVER_TESTS_CONTRACT_ZOOKEEPERS_H
#define QUIVER_TESTS_CONTRACT_ZOOKEEPERS_H

#include "ensemble.h"

/* With this tick, sessions may be as short as one second. */
#define ZOOKEEPER_TICK_MS 500

extern const struct ensemble_kind zookeeper_kind;

#endif
