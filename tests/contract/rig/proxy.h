/* proxy.h: a place between a client and its server, where a test cuts, holds or mutes what passes. */
#ifndef QUIVER_TESTS_CONTRACT_PROXY_H
#define QUIVER_TESTS_CONTRACT_PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* Passes bytes between whoever connects to its port and a server. */
struct proxy;
struct proxy *proxy_start(uint16_t to_port);
void proxy_stop(struct proxy *p);
uint16_t proxy_port(const struct proxy *p);
/* Closes all connections; new ones are accepted. */
void proxy_cut(struct proxy *p);
/* While it is set, connections are accepted and nothing passes. */
void proxy_hold(struct proxy *p, bool is_held);
/* While it is set, what the server says does not pass. */
void proxy_mute(struct proxy *p, bool is_mute);
/* From now on at most so many bytes pass at once; 0: as they come. */
void proxy_split(struct proxy *p, unsigned bytes);
/* From now on it waits so long after each piece that it passes to the server, so that others come in between; 0: not.
 */
void proxy_pause(struct proxy *p, unsigned us);
/* Closes each connection once the server has said so many bytes on it, and passes these; 0: never. */
void proxy_cut_after(struct proxy *p, unsigned bytes);
/* How many connections were cut for that. */
unsigned proxy_cuts_after(const struct proxy *p);

#endif
