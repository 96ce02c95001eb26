/* sentinel.h: who the master is, by the word of the Sentinels. */
#ifndef QUIVER_REDIS_SENTINEL_H
#define QUIVER_REDIS_SENTINEL_H

#include <stdint.h>

struct redis;
struct sentinel;

/* Looks for the master of the redis' URL; what is found becomes the redis' one server. */
struct sentinel *sentinel_open(struct redis *redis);
void sentinel_close(struct sentinel *sentinel);
/* The server was lost: look again, and connect to what is found. */
void sentinel_look(struct sentinel *sentinel);
void sentinel_tick(struct sentinel *sentinel, uint64_t now_ms);

#endif
