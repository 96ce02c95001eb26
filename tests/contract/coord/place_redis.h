/* place_redis.h: the server behind the Redis places, for tests that look into it or break it. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_PLACE_REDIS_H
#define QUIVER_TESTS_CONTRACT_COORD_PLACE_REDIS_H

#include "servers.h"

/* Started with the first place. */
struct redis_server *place_redis(void);

#endif
