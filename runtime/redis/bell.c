#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/redis_private.h"

/* CLIENT TRACKING on the main connection redirects invalidations to the client id of the bell connection.  So the order
 * is: the bell subscribes, the main connection turns tracking on, then redis_look() makes all users read once. Whatever
 * is read rings, but for commands that are excepted (OPTOUT, `is_untracked`): so none is forgotten by mistake.  If the
 * bell's connection is lost, only this side notices: the server still reports tracking as on. */

static void refused(struct server *server, const char *why)
{
        struct redis *redis = server->redis;
        char text[ERROR_TEXT_MAX];
        server->bell_state = BELL_REFUSED;
        server->bell_at_ms = 0;
        if (!redis->has_said_no_tracking) {
                (void)snprintf(text, sizeof(text), "%s: no doorbell, so new tasks are looked for at intervals: %s",
                        server->facts.server, why);
                redis->has_said_no_tracking = true;
                redis_state(redis, true, text);
        }
        redis_look(redis);
        redis_check_open(redis);
}

static void on_armed(void *self, int status, const redisReply *reply)
{
        struct server *server = self;
        server->is_arming = false;
        /* One of the two connections was lost meanwhile; when it is back, arm() runs again. */
        if (status || !server->bell || !server->bell->is_ready)
                return;
        if (reply->type != REDIS_REPLY_ERROR) {
                server->main->is_tracking = true;
                server->bell_state = BELL_RINGS;
                server->bell_failures = 0;
                server->facts.has_tracking = true;
                redis_look(server->redis);
                redis_check_open(server->redis);
        } else if (strstr(reply->str, "does not exist")) {
                conn_lose(server->bell, error_set(&server->bell->socket.error, -ECONNRESET, "%s", reply->str));
        } else {
                conn_close(server->bell);
                server->bell = NULL;
                refused(server, reply->str);
        }
}

static void arm(struct server *server)
{
        char id[24];
        if (server->is_arming || !server->is_up || !server->bell || !server->bell->is_ready)
                return;
        server->is_arming = true;
        (void)snprintf(id, sizeof(id), "%" PRIu64, server->bell->client_id);
        conn_ask_words(
                server->main, WORDS("CLIENT", "TRACKING", "ON", "REDIRECT", id, "NOLOOP", "OPTOUT"), on_armed, server);
}

static void on_ready(struct conn *conn)
{
        struct server *server = conn->owner;
        server->is_ping_out = false;
        server->bell_at_ms = clock_boot_ms() + server->redis->options.deadline_ms;
        redis_wake_at(server->redis, server->bell_at_ms);
        arm(server);
}

/* ["message", channel, [key, …]]; nil for the keys means all of them (FLUSHALL). */
static void on_pushed(struct conn *conn, redisReply *reply)
{
        struct server *server = conn->owner;
        const struct redis_events *events = server->redis->options.events;
        bool is_message = reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
                          reply->element[0]->type == REDIS_REPLY_STRING && !strcmp(reply->element[0]->str, "message");
        server->is_ping_out = false;
        if (is_message && reply->element[2]->type == REDIS_REPLY_ARRAY) {
                const redisReply *keys = reply->element[2];
                for (size_t i = 0; i < keys->elements && !server->redis->is_closing; i++)
                        if (keys->element[i]->type == REDIS_REPLY_STRING && events && events->rang &&
                                !server->redis->open)
                                events->rang(events->self, keys->element[i]->str, keys->element[i]->len);
        } else if (is_message) {
                redis_look(server->redis);
        }
}

static void on_lost(struct conn *conn, int status)
{
        struct server *server = conn->owner;
        server->bell = NULL;
        server->facts.has_tracking = false;
        if (status == -EPERM) {
                refused(server, conn->socket.error.text);
                return;
        }
        server->bell_state = BELL_OPENING;
        server->bell_at_ms = clock_boot_ms() + backoff_ms(server->bell_failures++);
        redis_wake_at(server->redis, server->bell_at_ms);
        /* The first reconnect failed, so the doorbell stays away for a while: users must read without being rung. */
        if (server->bell_failures == 2)
                redis_look(server->redis);
        redis_check_open(server->redis);
}

static const struct conn_events bell_events = {
        .ready = on_ready,
        .pushed = on_pushed,
        .lost = on_lost,
};

static void open_bell(struct server *server)
{
        server->bell_at_ms = 0;
        server->bell_state = BELL_OPENING;
        server->bell = conn_open(server->redis, CONN_BELL, &server->address, &bell_events, server);
}

void bell_stop(struct server *server)
{
        conn_close(server->bell);
        server->bell = NULL;
        server->bell_at_ms = 0;
        server->bell_state = BELL_OFF;
        server->facts.has_tracking = false;
}

void bell_main_is_ready(struct server *server)
{
        if (server->bell && !address_is_equal(&server->bell->socket.address, &server->address))
                bell_stop(server);
        if (server->bell) {
                server->bell_state = BELL_OPENING;
                arm(server);
        } else {
                open_bell(server);
        }
}

void redis_want_bell(struct redis *redis)
{
        struct server *server;
        if (redis->options.wants_bell)
                return;
        redis->options.wants_bell = true;
        for (server = redis->servers; server; server = server->next)
                if (server->is_up)
                        bell_main_is_ready(server);
}

void bell_tick(struct server *server, uint64_t now_ms)
{
        if (server->bell_at_ms && now_ms >= server->bell_at_ms) {
                server->bell_at_ms = now_ms + server->redis->options.deadline_ms;
                if (!server->bell && !server->is_up)
                        server->bell_at_ms = 0; /* the main connection opens the bell when it is ready */
                else if (!server->bell)
                        open_bell(server);
                else if (server->is_ping_out)
                        conn_lose(server->bell, error_set(&server->bell->socket.error, -ETIMEDOUT,
                                                        "%s: no answer to PING on the doorbell connection",
                                                        server->bell->socket.address.host));
                else {
                        conn_say(server->bell, "PING");
                        server->is_ping_out = true;
                }
        }
        if (server->bell_at_ms)
                redis_wake_at(server->redis, server->bell_at_ms);
}
