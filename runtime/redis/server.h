/* server.h: one master: its main connection, its bell connection and the connections of blocking commands.
 *
 * It reconnects until it is removed; the pause between two tries grows up to two seconds. */
#ifndef QUIVER_REDIS_SERVER_H
#define QUIVER_REDIS_SERVER_H

#include "redis/conn.h"

enum bell_state {
        BELL_OFF,     /* not wanted, or not started yet */
        BELL_OPENING, /* connecting, or turning tracking on */
        BELL_RINGS,
        BELL_REFUSED, /* the server does not allow tracking */
};

struct server {
        struct server *prev, *next;
        struct redis *redis;
        struct address address; /* with Sentinel: of the latest master that was found */
        struct conn *main;
        struct conn *spare; /* an idle connection of kind CONN_ALONE */
        bool is_up;         /* accepts commands */
        bool is_down_said;
        unsigned failures;
        uint64_t up_at_ms;
        uint64_t retry_at_ms;   /* 0: no retry is due */
        uint64_t load_after_ms; /* scripts are not loaded again before this time */
        uint64_t leave_at_ms;   /* when the last answers of a master that was replaced are given up; 0: never */
        struct redis_facts facts;

        enum bell_state bell_state;
        struct conn *bell;
        bool is_arming; /* CLIENT TRACKING is under way */
        unsigned bell_failures;
        uint64_t bell_at_ms; /* time of the next ping or retry; 0: none */
        bool is_ping_out;

        bool is_verifying; /* a PING that tells whether its answers are in step is under way */
        unsigned words;    /* number of such PINGs so far: each has a word of its own */

        bool is_in_map;          /* Cluster: the server has slots */
        uint64_t asked_until_ms; /* Cluster: an ASK named the server, so it is kept without slots until then */
};

struct server *server_add(struct redis *redis, const struct address *address);
/* Removes the server.  Its commands end with -ECONNRESET, or -ECANCELED during redis_close(). */
void server_remove(struct server *server);
void server_connect(struct server *server);
/* The server has reported that it is no master: it gets no new commands, and the connection is closed when the pending
 * ones are answered. */
void server_doubt(struct server *server);
/* Another server has become the master: as server_doubt(), but an answer that does not come soon is given up. */
void server_replaced(struct server *server);
/* Gives up what the server owes an answer, and searches the master again. */
void server_leave(struct server *server);
/* Does what is due, and sets the timer for the next due time. */
void server_tick(struct server *server, uint64_t now_ms);
/* Sends a command; the server must be up. */
void server_send(struct server *server, struct redis_command *command);
/* Whether opening need not wait for this server any more. */
bool server_is_settled(const struct server *server);

/* bell.c: the connection that receives invalidations, and CLIENT TRACKING on the main connection. */
void bell_start(struct server *server);
void bell_stop(struct server *server);
void bell_main_is_ready(struct server *server);
void bell_tick(struct server *server, uint64_t now_ms);

#endif
