/* sentinel.h: finds the master with the help of the Sentinels. */
#ifndef QUIVER_REDIS_SENTINEL_H
#define QUIVER_REDIS_SENTINEL_H

#include <stdint.h>

struct redis;
struct sentinel;

/* Searches the master that the URL names; it becomes the only server of `redis`. */
struct sentinel *sentinel_open(struct redis *redis);
void sentinel_close(struct sentinel *sentinel);
/* Call when the server was lost: searches the master again and connects to it. */
void sentinel_look(struct sentinel *sentinel);
/* Call while an answer is overdue: if the Sentinels name another master, the server is left. */
void sentinel_ask(struct sentinel *sentinel);
void sentinel_tick(struct sentinel *sentinel, uint64_t now_ms);

#endif
