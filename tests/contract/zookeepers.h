/* zookeepers.h: real ZooKeeper servers for tests, one or an ensemble of three, on free loopback ports.
 *
 * Each is a Java process of its own with its data in a temporary folder; none outlives the test program. */
#ifndef QUIVER_TESTS_CONTRACT_ZOOKEEPERS_H
#define QUIVER_TESTS_CONTRACT_ZOOKEEPERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ZOOKEEPERS_MAX 3
/* With this tick, sessions may be as short as one second. */
#define ZOOKEEPER_TICK_MS 500

struct zookeepers {
        char folder[64];
        unsigned count;
        struct zookeeper {
                uint16_t port, peer_port, election_port;
                pid_t pid; /* 0: not running */
        } servers[ZOOKEEPERS_MAX];
};

/* Returns when they serve; ends the test program, with the server's log, if they do not. */
void zookeepers_start(struct zookeepers *z, unsigned count);
/* Kills them and removes the folder. */
void zookeepers_stop(struct zookeepers *z);

/* "zookeeper://127.0.0.1:…,127.0.0.1:…/ROOT" of all servers. */
void zookeepers_url(const struct zookeepers *z, const char *root, char *ret_url, size_t size);

void zookeepers_kill(struct zookeepers *z, unsigned server);
/* Starts one that was killed, on its old port and data; returns at once. */
void zookeepers_restart(struct zookeepers *z, unsigned server);
/* SIGSTOP and SIGCONT: it accepts connections, since the kernel does, and never answers. */
void zookeepers_pause(struct zookeepers *z, unsigned server);
void zookeepers_resume(struct zookeepers *z, unsigned server);
/* Forgets all data: killed, wiped and started again. */
void zookeepers_wipe(struct zookeepers *z);

/* Waits until every server that runs serves. */
void zookeepers_wait(struct zookeepers *z);
/* Which one leads an ensemble; -1: none does. */
int zookeepers_leader(struct zookeepers *z);

/* --- a place between client and server --------------------------------------------------------------------------- */

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

#endif
