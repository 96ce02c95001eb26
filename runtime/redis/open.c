#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "redis/cluster.h"
#include "redis/redis_private.h"
#include "redis/sentinel.h"
#include "tls/tls.h"

#define DEADLINE_MS 5000

/* --- open --- */

static void end_open(struct redis *redis, int status)
{
        redis->is_open_ended = true;
        redis->open_status = status;
        redis_soon(redis);
}

/* The status of opening after `deadline_ms`, from the latest failure. */
static int late_status(const struct redis *redis)
{
        switch (redis->why) {
        case -ECONNREFUSED:
        case -ENOENT: /* the unix socket does not exist */
                return -ECONNREFUSED;
        case 0:
        case -ETIMEDOUT:
        case -EBUSY:
                return -ETIMEDOUT;
        case -EACCES: /* the Sentinels or Cluster hosts refused the password */
                return -EACCES;
        default:
                return -EHOSTUNREACH;
        }
}

void redis_check_open(struct redis *redis)
{
        const struct server *server;
        bool is_one_up = false;
        if (!redis->open || redis->is_open_ended || redis->is_closing)
                return;
        if (redis->cluster ? cluster_is_settled(redis->cluster) : server_is_settled(redis->servers)) {
                end_open(redis, 0);
                return;
        }
        if (clock_boot_ms() < redis->open_due_ms) {
                redis_wake_at(redis, redis->open_due_ms);
                return;
        }
        for (server = redis->servers; server; server = server->next) {
                is_one_up |= server->is_up;
        }
        const char *silence = "";
        const struct conn *conn;
        for (conn = redis->conns; conn && !*silence; conn = conn->next)
                silence = redis_socket_silence(&conn->socket);
        if (!redis->why)
                (void)error_set(&redis->why_text, 0, "%s: no answer in time%s", redis->url.text, silence);
        end_open(redis, is_one_up ? 0 : late_status(redis));
}

static void copy_options(struct redis *redis, const struct redis_options *from)
{
        struct redis_options *to = &redis->options;
        *to = *from;
        to->url = text_copy(from->url);
        to->user = text_copy(from->user);
        to->password = text_copy(from->password);
        to->sentinel_user = text_copy(from->sentinel_user);
        to->sentinel_password = text_copy(from->sentinel_password);
        to->name = text_copy(from->name);
        to->tls = tls_files_copy(&from->tls);
        if (!to->deadline_ms)
                to->deadline_ms = DEADLINE_MS;
}

static void start_one(struct redis *redis)
{
        struct address address = { 0 };
        bool is_unix = redis->url.kind == URL_REDIS_UNIX;
        if (!is_unix)
                address.port = redis->url.hosts[0].port;
        (void)snprintf(address.host, sizeof(address.host), "%s", is_unix ? redis->url.path : redis->url.hosts[0].name);
        server_connect(server_add(redis, &address));
}

void redis_open(uv_loop_t *loop, struct redis_open *open)
{
        struct redis *redis = memory_zero(1, sizeof(*redis));
        redis->loop = loop;
        redis->open = open;
        open->redis = redis;
        copy_options(redis, &open->options);
        redis_start(redis);
        redis->open_due_ms = clock_boot_ms() + redis->options.deadline_ms;
        int r = url_parse(redis->options.url, URL_FOR_STORE, "/", &redis->url, &redis->why_text);
        if (!r && !url_is_redis(&redis->url))
                r = error_set(&redis->why_text, -EINVAL, "%s: not a Redis URL", redis->url.text);
        if (!r && redis->url.is_tls)
                r = tls_context_open(&redis->options.tls, &redis->tls, &redis->why_text);
        if (r) {
                end_open(redis, r);
                return;
        }
        redis_wake_at(redis, redis->open_due_ms);
        if (redis->url.kind == URL_REDIS_SENTINEL)
                redis->sentinel = sentinel_open(redis);
        else if (redis->url.kind == URL_REDIS_CLUSTER)
                redis->cluster = cluster_open(redis);
        else
                start_one(redis);
}

/* --- close --- */

void redis_close(struct redis *redis, void (*closed)(void *self), void *self)
{
        /* The rest is done before the loop sleeps, because the caller may be iterating over one of our lists. */
        redis->is_closing = true;
        redis->closed = closed;
        redis->closed_self = self;
        redis_soon(redis);
}

void redis_tear_down(struct redis *redis)
{
        if (redis->open && !redis->is_open_ended) {
                (void)error_set(&redis->why_text, 0, "the connection to Redis was closed");
                end_open(redis, -ECANCELED);
        }
        redis->is_torn_down = true;
        (void)uv_timer_stop(&redis->timer);
        while (redis->servers)
                server_remove(redis->servers);
        sentinel_close(redis->sentinel);
        redis->sentinel = NULL;
        cluster_close(redis->cluster);
        redis->cluster = NULL;
        while (redis->waiting) {
                struct redis_command *command = redis->waiting;
                queue_remove(&redis->waiting, command);
                redis_end(redis, command, -ECANCELED, "the connection to Redis was closed");
        }
}

static void on_handle_closed(uv_handle_t *handle)
{
        struct redis *redis = handle->data;
        if (--redis->handles)
                return;
        free((char *)redis->options.url);
        free((char *)redis->options.user);
        free((char *)redis->options.sentinel_user);
        free((char *)redis->options.name);
        text_free_secret((char *)redis->options.password);
        text_free_secret((char *)redis->options.sentinel_password);
        tls_files_free(&redis->options.tls);
        tls_context_free(redis->tls);
        url_free(&redis->url);
        void (*closed)(void *self) = redis->closed;
        void *self = redis->closed_self;
        free(redis);
        if (closed)
                closed(self);
}

void redis_free_when_idle(struct redis *redis)
{
        if (!redis->is_torn_down || redis->is_freeing || redis->conns || redis->ended)
                return;
        redis->is_freeing = true;
        uv_close((uv_handle_t *)&redis->timer, on_handle_closed);
        uv_close((uv_handle_t *)&redis->prepare, on_handle_closed);
        uv_close((uv_handle_t *)&redis->idle, on_handle_closed);
}

void redis_conn_freed(struct redis *redis)
{
        if (redis->is_closing)
                redis_soon(redis);
}

/* --- facts --- */

void redis_facts(const struct redis *redis, struct redis_facts *ret_facts)
{
        const struct server *server;
        *ret_facts = (struct redis_facts){ 0 };
        for (server = redis->servers; server; server = server->next) {
                if (!server->is_up)
                        continue;
                *ret_facts = server->facts;
                break;
        }
        if (redis->sentinel)
                (void)snprintf(ret_facts->mode, sizeof(ret_facts->mode), "sentinel");
        else if (redis->cluster)
                (void)snprintf(ret_facts->mode, sizeof(ret_facts->mode), "cluster");
}
