/* ask_any.h: asks several hosts the same question, in turn, until one gives an answer that is of use.
 *
 * Sentinels are asked who the master is, servers of a Cluster who has which slots. */
#ifndef QUIVER_REDIS_ASK_ANY_H
#define QUIVER_REDIS_ASK_ANY_H

#include "redis/conn.h"

struct ask_any {
        struct redis *redis;
        enum conn_kind kind;
        const char *words[4]; /* the question, up to a NULL */
        struct address *hosts;
        size_t count;
        /* What was answered, perhaps an error; true if it was of use. */
        bool (*told)(void *self, const struct address *from, const redisReply *reply);
        void *self;

        /* private */
        size_t at;    /* goes on from where the last answer came from: that one may know less than the others */
        size_t asked; /* in this round */
        unsigned rounds;
        struct conn *conn;
        uint64_t retry_at_ms;
        bool is_asking;
};

void ask_any_add(struct ask_any *ask, const struct address *host);
/* Nothing if it is on its way already. */
void ask_any_start(struct ask_any *ask);
void ask_any_tick(struct ask_any *ask, uint64_t now_ms);
void ask_any_stop(struct ask_any *ask);

#endif
