/* server.h: one master: its main connection, its bell, and what came of them.
 *
 * Keeps trying until it is closed; each try waits longer, up to two seconds. */
#ifndef QUIVER_REDIS_SERVER_H
#define QUIVER_REDIS_SERVER_H

#include "redis/conn.h"

enum bell_state {
        BELL_OFF,     /* not wanted, or not yet */
        BELL_OPENING, /* connecting, or arming the main connection */
        BELL_RINGS,
        BELL_REFUSED, /* the server has no tracking for us */
};

struct server {
        struct server *prev, *next;
        struct redis *redis;
        struct address address; /* Sentinel: of the last master that was told */
        struct conn *main;
        struct conn *spare; /* of kind ALONE, idle */
        bool is_up;         /* takes commands */
        bool is_down_said;
        unsigned failures;
        uint64_t up_at_ms;
        uint64_t retry_at_ms; /* 0: no retry due */
        struct redis_facts facts;

        enum bell_state bell_state;
        struct conn *bell;
        bool is_arming; /* CLIENT TRACKING is under way */
        unsigned bell_failures;
        uint64_t bell_at_ms; /* the next ping or retry; 0: none */
        bool is_ping_out;

        bool is_in_map;          /* Cluster: it has slots */
        uint64_t asked_until_ms; /* Cluster: ASK named it, so it is kept without slots */
};

struct server *server_add(struct redis *redis, const struct address *address);
/* Its commands end with -ECONNRESET, or -ECANCELED if we are closing. */
void server_remove(struct server *server);
void server_connect(struct server *server);
/* It says that it is no master: nothing new is sent, and when what is under way was answered it is left. */
void server_doubt(struct server *server);
/* Does what is due and tells when to come again. */
void server_tick(struct server *server, uint64_t now_ms);
/* The server is up. */
void server_send(struct server *server, struct redis_command *command);
/* Whether start-up need not wait for it any more. */
bool server_is_settled(const struct server *server);

/* bell.c: the connection that invalidations come in on, and the main connection's word that they go there. */
void bell_start(struct server *server);
void bell_stop(struct server *server);
void bell_main_is_ready(struct server *server);
void bell_tick(struct server *server, uint64_t now_ms);

#endif
