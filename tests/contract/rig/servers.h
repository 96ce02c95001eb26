/* servers.h: real Redis servers for tests: children on free loopback ports, each in a folder of its own under /tmp. */
#ifndef QUIVER_TESTS_CONTRACT_SERVERS_H
#define QUIVER_TESTS_CONTRACT_SERVERS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/rights.h"

#define REDIS_ARGS_MAX 48

struct certificates;

struct redis_server {
        pid_t pid; /* 0: not running */
        uint16_t port;
        uint16_t tls_port; /* 0: none */
        char folder[64];
        char url[96];      /* redis://127.0.0.1:PORT */
        char tls_url[96];  /* rediss://127.0.0.1:TLS_PORT */
        char unix_url[96]; /* redis+unix:FOLDER/redis.sock */
        char password[32]; /* "": none; what servers_* and server_do() log in with */
        char cert[128], key[128], ca[128];
        const char *args[REDIS_ARGS_MAX]; /* NULL-terminated; the caller's memory */
        bool is_sentinel;                 /* has a file of its own instead of args */
};

/* Starts redis-server with "--name value" words up to a NULL and waits until it answers.  It dies with the calling
 * thread.  Fails the test if it does not come up. */
#define server_start(server, ...) server_start_words(server, (const char *const[]){ __VA_ARGS__ })
void server_start_words(struct redis_server *server, const char *const *words);
/* The same with a second port, for TLS, with server.pem of the certificates; it trusts ca.pem and asks nobody for a
 * certificate, unless the words say otherwise. */
#define server_start_tls(server, certificates, ...)                                                                    \
        server_start_tls_words(server, certificates, (const char *const[]){ __VA_ARGS__ })
void server_start_tls_words(
        struct redis_server *server, const struct certificates *certificates, const char *const *words);
/* A Sentinel with these lines of configuration. */
void server_start_sentinel(struct redis_server *server, const char *lines);
/* Starts it again on the same port and folder: after server_stop() or server_kill(). */
void server_restart(struct redis_server *server);
/* SIGTERM, or SIGKILL; waits for its end, and keeps the folder. */
void server_stop(struct redis_server *server);
void server_kill(struct redis_server *server);
/* Stops it and removes the folder. */
void server_free(struct redis_server *server);

/* One command from a connection of the test's own, as redisCommand() has it; the reply is the caller's.  An error reply
 * is a reply; a connection that fails fails the test. */
redisReply *server_do(const struct redis_server *server, const char *format, ...);
/* The same; the text holds all words, none of them a blank. */
redisReply *server_do_text(const struct redis_server *server, const char *text);
/* The same for commands whose answer is not of interest, but must not be an error. */
void server_ok(const struct redis_server *server, const char *format, ...);
/* Makes a user with exactly these rights; its password is "secret". */
void server_add_user(const struct redis_server *server, const char *name, const struct rights *rights);
/* A field of INFO, "" if it is not there. */
void server_info(const struct redis_server *server, const char *name, char *value, size_t size);

/* A master that `sentinels` Sentinels watch under the name "main" (a second of silence is death), and a replica. */
#define SENTINELS 3
struct sentinel_group {
        const struct certificates *certificates; /* set before the start: everything speaks TLS; NULL: plain */
        struct redis_server data[2];             /* the first is the master, at first */
        struct redis_server sentinels[SENTINELS];
        char url[192]; /* redis+sentinel://…/main */
        char port[8];  /* of the first, as text */
};
/* `password` is the data servers', `sentinel_password` the Sentinels'; "" for none. */
void sentinel_group_start(struct sentinel_group *group, const char *password, const char *sentinel_password);
void sentinel_group_free(struct sentinel_group *group);

/* Three masters with a third of the slots each, and a replica of each, in the same order. */
#define CLUSTER_MASTERS 3
#define CLUSTER_NODES   (2 * CLUSTER_MASTERS)
struct redis_cluster {
        const struct certificates *certificates; /* as above */
        struct redis_server nodes[CLUSTER_NODES];
        char ids[CLUSTER_NODES][41];
        char url[192];
};
void redis_cluster_start(struct redis_cluster *cluster);
void redis_cluster_free(struct redis_cluster *cluster);
/* Moves a slot with its keys, step by step: marks it on both sides; then, keys moved by server_do(), hands it over. */
void redis_cluster_mark(struct redis_cluster *cluster, uint16_t slot, int from, int to);
void redis_cluster_move_keys(struct redis_cluster *cluster, uint16_t slot, int from, int to, int most);
void redis_cluster_hand_over(struct redis_cluster *cluster, uint16_t slot, int to);

/* A port that was free a moment ago. */
uint16_t free_port(void);
/* True once `is_so(self)` is, within 20 s. */
bool wait_until(bool (*is_so)(void *self), void *self);

#endif
