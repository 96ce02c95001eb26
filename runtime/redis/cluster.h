/* cluster.h: the slot map of a Redis Cluster. */
#ifndef QUIVER_REDIS_CLUSTER_H
#define QUIVER_REDIS_CLUSTER_H

#include "redis/redis.h"
#include "redis/server.h"

struct cluster;

struct cluster *cluster_open(struct redis *redis);
void cluster_close(struct cluster *cluster);
/* The server for a command's key if that server is up; NULL: the command has to wait. */
struct server *cluster_route(struct cluster *cluster, const struct redis_command *command);
/* Follows a MOVED or ASK reply of `from`: sends the command again or queues it.  False if the reply cannot be read. */
bool cluster_redirect(struct cluster *cluster, struct server *from, struct redis_command *command,
        const redisReply *reply, bool is_ask);
/* Requests a new map soon, because the current one may be out of date. */
void cluster_refresh(struct cluster *cluster);
void cluster_tick(struct cluster *cluster, uint64_t now_ms);
/* Whether there is a map and every server in it is settled. */
bool cluster_is_settled(const struct cluster *cluster);

#endif
