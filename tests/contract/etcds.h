/* etcds.h: real etcd servers for tests, one or a cluster of three, on free loopback ports.
 *
 * Each is a process of its own with its data in a temporary folder (in memory, where there is such a place: a test does
 * not wait for the disk); none outlives the test program. */
#ifndef QUIVER_TESTS_CONTRACT_ETCDS_H
#define QUIVER_TESTS_CONTRACT_ETCDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ETCDS_MAX 3

struct etcds {
        char folder[64];
        unsigned count;
        bool has_tls;
        struct etcd_server {
                uint16_t port, peer_port;
                pid_t pid; /* 0: not running */
        } servers[ETCDS_MAX];
};

/* Whether etcd is installed. */
bool etcds_are_here(void);
/* Returns when they serve; ends the test program, with the server's log, if they do not.  With TLS, the folder has
 * ca.pem, and cert.pem and key.pem of the servers, which are for 127.0.0.1. */
void etcds_start(struct etcds *e, unsigned count, bool has_tls);
/* Kills them and removes the folder. */
void etcds_stop(struct etcds *e);

/* "etcd://127.0.0.1:…,127.0.0.1:…/ROOT" of all servers. */
void etcds_url(const struct etcds *e, const char *root, char *ret_url, size_t size);

void etcds_kill(struct etcds *e, unsigned server);
/* Starts one that was killed, on its old ports and data; returns at once. */
void etcds_restart(struct etcds *e, unsigned server);
/* SIGSTOP and SIGCONT: it accepts connections, since the kernel does, and never answers. */
void etcds_pause(struct etcds *e, unsigned server);
void etcds_resume(struct etcds *e, unsigned server);
/* Forgets all data: killed, wiped and started again. */
void etcds_wipe(struct etcds *e);

/* Waits until every server that runs serves. */
void etcds_wait(struct etcds *e);
/* Which one leads a cluster; -1: none does. */
int etcds_leader(struct etcds *e);
/* etcdctl with these words (of the shell), at one server; its output.  Fails the program if it fails. */
const char *etcds_ctl(const struct etcds *e, unsigned server, const char *words);

#endif
