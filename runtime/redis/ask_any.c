#include "redis/ask_any.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/strings.h"
#include "redis/redis_private.h"

static void ask_next(struct ask_any *ask);

static void on_told(void *self, int status, const redisReply *reply)
{
        struct ask_any *ask = self;
        if (status)
                return; /* the connection was lost: on_lost() asks the next host */
        struct conn *conn = ask->conn;
        ask->conn = NULL;
        /* Cleared before told() is called, because told() may start another round. */
        ask->is_asking = false;
        ask->hosts[ask->at].has_failed = false;
        if (ask->told(ask->self, &conn->socket.address, reply)) {
                ask->rounds = 0;
        } else {
                ask->is_asking = true;
                ask_next(ask);
        }
        conn_close(conn);
}

static void on_ready(struct conn *conn)
{
        struct ask_any *ask = conn->owner;
        conn_ask_words(conn, ask->words, on_told, ask);
}

static void on_lost(struct conn *conn, int status)
{
        struct ask_any *ask = conn->owner;
        (void)status;
        ask->conn = NULL;
        ask->hosts[ask->at].has_failed = true;
        ask_next(ask);
}

static const struct conn_events ask_any_events = { .ready = on_ready, .lost = on_lost };

/* Chooses the next host of this round.  A host that hangs costs a timeout, so those that failed
 * the last time come last.  False if all were asked. */
static bool choose_next(struct ask_any *ask)
{
        for (int wants_failed = 0; wants_failed < 2; wants_failed++) {
                for (size_t i = 0; i < ask->count; i++) {
                        size_t at = (ask->next + i) % ask->count;
                        if (ask->hosts[at].is_asked || ask->hosts[at].has_failed != (wants_failed == 1))
                                continue;
                        ask->at = at;
                        ask->next = at + 1;
                        return true;
                }
        }
        return false;
}

static void begin_round(struct ask_any *ask)
{
        for (size_t i = 0; i < ask->count; i++)
                ask->hosts[i].is_asked = false;
}

static void ask_next(struct ask_any *ask)
{
        if (!choose_next(ask)) {
                begin_round(ask);
                ask->retry_at_ms = clock_boot_ms() + backoff_ms(ask->rounds++);
                redis_wake_at(ask->redis, ask->retry_at_ms);
                return;
        }
        struct ask_host *host = &ask->hosts[ask->at];
        host->is_asked = true;
        ask->conn = conn_open(ask->redis, ask->kind, &host->address, &ask_any_events, ask);
}

void ask_any_add(struct ask_any *ask, const struct address *host)
{
        ask->hosts = array_grow(ask->hosts, ask->count, sizeof(*ask->hosts));
        ask->hosts[ask->count++] = (struct ask_host){ .address = *host };
}

void ask_any_start(struct ask_any *ask)
{
        if (ask->is_asking)
                return;
        ask->is_asking = true;
        begin_round(ask);
        ask_next(ask);
}

void ask_any_tick(struct ask_any *ask, uint64_t now_ms)
{
        if (!ask->retry_at_ms)
                return;
        if (now_ms < ask->retry_at_ms) {
                redis_wake_at(ask->redis, ask->retry_at_ms);
                return;
        }
        ask->retry_at_ms = 0;
        ask_next(ask);
}

void ask_any_stop(struct ask_any *ask)
{
        conn_close(ask->conn);
        ask->conn = NULL;
        free(ask->hosts);
        ask->hosts = NULL;
        ask->count = 0;
}
