/* cluster.h: which server has which slots. */
#ifndef QUIVER_REDIS_CLUSTER_H
#define QUIVER_REDIS_CLUSTER_H

#include "redis/redis.h"
#include "redis/server.h"

struct cluster;

struct cluster *cluster_open(struct redis *redis);
void cluster_close(struct cluster *cluster);
/* The server for a command's key if it is up; NULL: the command has to wait. */
struct server *cluster_route(struct cluster *cluster, const struct redis_command *command);
/* Follows a MOVED or ASK that `from` gave.  False if it cannot be followed; otherwise the command is on its way. */
bool cluster_redirect(struct cluster *cluster, struct server *from, struct redis_command *command,
        const redisReply *reply, bool is_ask);
/* The map may be out of date: asks for another one soon. */
void cluster_refresh(struct cluster *cluster);
void cluster_tick(struct cluster *cluster, uint64_t now_ms);
/* There is a map, and every server in it is up. */
bool cluster_is_settled(const struct cluster *cluster);

#endif
