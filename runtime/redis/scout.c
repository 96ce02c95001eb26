#include "redis/scout.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/strings.h"
#include "redis/parts.h"

static void ask_next(struct scout *scout);

static void on_told(void *self, int status, const redisReply *reply)
{
        struct scout *scout = self;
        if (status)
                return; /* on_lost() goes on */
        struct conn *conn = scout->conn;
        scout->conn = NULL;
        /* Over before it is told: what is found may call for another round. */
        scout->is_asking = false;
        if (scout->told(scout->self, &conn->wire.address, reply)) {
                scout->rounds = 0;
        } else {
                scout->is_asking = true;
                ask_next(scout);
        }
        conn_close(conn);
}

static void on_ready(struct conn *conn)
{
        struct scout *scout = conn->owner;
        conn_ask_words(conn, scout->words, on_told, scout);
}

static void on_lost(struct conn *conn, int status)
{
        struct scout *scout = conn->owner;
        (void)status;
        scout->conn = NULL;
        ask_next(scout);
}

static const struct conn_events scout_events = { .ready = on_ready, .lost = on_lost };

static void ask_next(struct scout *scout)
{
        if (scout->asked == scout->count) {
                scout->asked = 0;
                scout->retry_at_ms = clock_boot_ms() + backoff_ms(scout->rounds++);
                redis_wake_at(scout->redis, scout->retry_at_ms);
                return;
        }
        scout->asked++;
        const struct address *host = &scout->hosts[scout->at++ % scout->count];
        scout->conn = conn_open(scout->redis, scout->kind, host, &scout_events, scout);
}

void scout_add(struct scout *scout, const struct address *host)
{
        scout->hosts = array_grow(scout->hosts, scout->count, sizeof(*scout->hosts));
        scout->hosts[scout->count++] = *host;
}

void scout_start(struct scout *scout)
{
        if (scout->is_asking)
                return;
        scout->is_asking = true;
        scout->asked = 0;
        ask_next(scout);
}

void scout_tick(struct scout *scout, uint64_t now_ms)
{
        if (!scout->retry_at_ms)
                return;
        if (now_ms < scout->retry_at_ms) {
                redis_wake_at(scout->redis, scout->retry_at_ms);
                return;
        }
        scout->retry_at_ms = 0;
        ask_next(scout);
}

void scout_stop(struct scout *scout)
{
        conn_close(scout->conn);
        scout->conn = NULL;
        free(scout->hosts);
        scout->hosts = NULL;
        scout->count = 0;
}
