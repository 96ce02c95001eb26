#include "redis/sentinel.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "redis/ask_any.h"
#include "redis/redis_private.h"

struct sentinel {
        struct redis *redis;
        struct ask_any ask;
        struct server *server;

        /* After a manual failover the old master accepts writes for seconds, and these are lost.  So we do not wait for
         * an error, but subscribe to one Sentinel. */
        struct conn *watch;
        size_t watch_at; /* index into the hosts of `ask` */
        unsigned watch_failures;
        uint64_t watch_due_ms; /* time of the next try or ping */
        bool is_ping_out;
        struct address heir; /* the new master that the Sentinel announced; port 0: none */
};

/* --- asking --- */

/* A server that has begun to answer again is kept: the Sentinel that was asked may be the one that is behind. */
static void leave_if_silent(struct sentinel *sentinel, const struct address *named)
{
        struct server *server = sentinel->server;
        if (address_is_equal(named, &server->address) || !conn_is_silent(server->main, clock_boot_ms()))
                return;
        sentinel->heir = *named;
        server_leave(server);
}

/* Reads [host, port], or nil if the Sentinel does not know the name.  The login checks whether it is a master. */
static bool on_told(void *self, const struct address *from, const redisReply *reply)
{
        struct sentinel *sentinel = self;
        struct server *server = sentinel->server;
        char text[ERROR_TEXT_MAX];
        char address[ADDRESS_TEXT_MAX];
        bool is_pair = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                       reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_STRING;
        unsigned long port = is_pair ? strtoul(reply->element[1]->str, NULL, 10) : 0;
        if (!port || port > 65535) {
                (void)snprintf(text, sizeof(text), "Sentinel %s knows no master \"%s\": %s",
                        address_format(from, address), sentinel->redis->url.master,
                        reply->type == REDIS_REPLY_ERROR ? reply->str : "no such name");
                redis_failed(sentinel->redis, -EHOSTUNREACH, text);
                return false;
        }
        struct address named = { .port = (uint16_t)port };
        (void)snprintf(named.host, sizeof(named.host), "%s", reply->element[0]->str);
        if (server->main) {
                leave_if_silent(sentinel, &named);
                return true;
        }
        server->address = named;
        server_connect(server);
        return true;
}

void sentinel_ask(struct sentinel *sentinel)
{
        ask_any_start(&sentinel->ask);
}

void sentinel_look(struct sentinel *sentinel)
{
        if (!sentinel->heir.port) {
                ask_any_start(&sentinel->ask);
                return;
        }
        /* The announced master is tried first: other Sentinels may not know it yet.  If it fails, they are asked. */
        sentinel->server->address = sentinel->heir;
        sentinel->heir.port = 0;
        server_connect(sentinel->server);
}

/* --- listening --- */

static void listen_again_at(struct sentinel *sentinel, uint64_t at_ms)
{
        sentinel->watch_due_ms = at_ms;
        redis_wake_at(sentinel->redis, at_ms);
}

static void on_watch_ready(struct conn *conn)
{
        struct sentinel *sentinel = conn->owner;
        sentinel->watch_failures = 0;
        listen_again_at(sentinel, clock_boot_ms() + sentinel->redis->options.deadline_ms);
}

/* Reads ["message", "+switch-master", "NAME OLD-HOST OLD-PORT HOST PORT"]. */
static bool read_switch(const redisReply *reply, const char *master, struct address *ret)
{
        char name[256], host[256];
        unsigned port = 0;
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 || reply->element[2]->type != REDIS_REPLY_STRING)
                return false;
        if (sscanf(reply->element[2]->str, "%255s %*s %*s %255s %5u", name, host, &port) != 3 ||
                strcmp(name, master) != 0 || !port || port > 65535)
                return false;
        *ret = (struct address){ .port = (uint16_t)port };
        memcpy(ret->host, host, strlen(host) + 1);
        return true;
}

static void on_watch_pushed(struct conn *conn, redisReply *reply)
{
        struct sentinel *sentinel = conn->owner;
        struct address heir;
        sentinel->is_ping_out = false;
        if (read_switch(reply, sentinel->redis->url.master, &heir) &&
                !address_is_equal(&heir, &sentinel->server->address)) {
                sentinel->heir = heir;
                server_replaced(sentinel->server);
        }
}

static void on_watch_lost(struct conn *conn, int status)
{
        struct sentinel *sentinel = conn->owner;
        (void)status;
        sentinel->watch = NULL;
        sentinel->is_ping_out = false;
        listen_again_at(sentinel, clock_boot_ms() + backoff_ms(sentinel->watch_failures++));
}

static const struct conn_events watch_events = {
        .ready = on_watch_ready,
        .pushed = on_watch_pushed,
        .lost = on_watch_lost,
};

static void watch_tick(struct sentinel *sentinel, uint64_t now_ms)
{
        const struct ask_any *ask = &sentinel->ask;
        if (now_ms >= sentinel->watch_due_ms) {
                sentinel->watch_due_ms = now_ms + sentinel->redis->options.deadline_ms;
                if (!sentinel->watch) {
                        sentinel->watch = conn_open(sentinel->redis, CONN_WATCH,
                                &ask->hosts[sentinel->watch_at++ % ask->count].address, &watch_events, sentinel);
                } else if (sentinel->is_ping_out) {
                        conn_lose(sentinel->watch, error_set(&sentinel->watch->socket.error, -ETIMEDOUT,
                                                           "%s: no answer to PING from the Sentinel",
                                                           sentinel->watch->socket.address.host));
                } else if (sentinel->watch->is_ready) {
                        conn_say(sentinel->watch, "PING");
                        sentinel->is_ping_out = true;
                }
        }
        redis_wake_at(sentinel->redis, sentinel->watch_due_ms);
}

/* --- open and close --- */

struct sentinel *sentinel_open(struct redis *redis)
{
        struct sentinel *sentinel = memory_zero(1, sizeof(*sentinel));
        sentinel->redis = redis;
        sentinel->ask = (struct ask_any){
                .redis = redis,
                .kind = CONN_SENTINEL,
                .words = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", redis->url.master },
                .told = on_told,
                .self = sentinel,
        };
        for (size_t i = 0; i < redis->url.hosts_count; i++) {
                struct address host = { .port = redis->url.hosts[i].port };
                (void)snprintf(host.host, sizeof(host.host), "%s", redis->url.hosts[i].name);
                ask_any_add(&sentinel->ask, &host);
        }
        sentinel->server = server_add(redis, &(struct address){ 0 });
        ask_any_start(&sentinel->ask);
        listen_again_at(sentinel, clock_boot_ms());
        return sentinel;
}

void sentinel_close(struct sentinel *sentinel)
{
        if (!sentinel)
                return;
        conn_close(sentinel->watch);
        ask_any_stop(&sentinel->ask);
        free(sentinel);
}

void sentinel_tick(struct sentinel *sentinel, uint64_t now_ms)
{
        ask_any_tick(&sentinel->ask, now_ms);
        watch_tick(sentinel, now_ms);
}
