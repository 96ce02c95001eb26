/* ask_any.h: sends the same command to several hosts, one after the other, until one gives a usable answer.
 *
 * Sentinels are asked for the master, servers of a Cluster for the slot map. */
#ifndef QUIVER_REDIS_ASK_ANY_H
#define QUIVER_REDIS_ASK_ANY_H

#include "redis/conn.h"

struct ask_host {
        struct address address;
        bool has_failed; /* it did not answer the last time, so it is asked after the others */
        bool is_asked;   /* in this round */
};

struct ask_any {
        struct redis *redis;
        enum conn_kind kind;
        const char *words[4]; /* the command, ended by NULL */
        struct ask_host *hosts;
        size_t count;
        /* Receives an answer, which may be an error reply; returns true if it was usable. */
        bool (*told)(void *self, const struct address *from, const redisReply *reply);
        void *self;

        /* private */
        size_t at;   /* the host that was asked last */
        size_t next; /* the host after it; a new round begins there */
        unsigned rounds;
        struct conn *conn;
        uint64_t retry_at_ms;
        bool is_asking;
};

void ask_any_add(struct ask_any *ask, const struct address *host);
/* Starts a round; does nothing if one is under way. */
void ask_any_start(struct ask_any *ask);
void ask_any_tick(struct ask_any *ask, uint64_t now_ms);
void ask_any_stop(struct ask_any *ask);

#endif
