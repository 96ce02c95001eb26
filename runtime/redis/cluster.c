#include "redis/cluster.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/memory.h"
#include "redis/ask_any.h"
#include "redis/redis_private.h"

#define SLOTS          16384
#define SERVERS_MAX    1000  /* Redis's own limit; a larger map is not a Cluster's */
#define REFRESH_MS     100   /* minimum time between two slot maps */
#define ASKED_KEPT_MS  10000 /* how long to keep a server that only an ASK has named */
#define REDIRECTS_FAST 4     /* followed at once; later ones after a pause, as two servers may redirect to each other */
#define REDIRECT_STEP  2     /* backoff step of that pause; a longer one could exceed the deadline after a TRYAGAIN */

struct cluster {
        struct redis *redis;
        struct ask_any ask;
        bool has_map, is_refresh_due, is_changed;
        uint64_t refresh_at_ms;      /* no new map before this time */
        struct server *slots[SLOTS]; /* NULL: no server is known */
};

/* NULL: there are too many already.  The bound keeps a hostile answer from making us connect to any number of
 * servers. */
static struct server *find_or_add(struct redis *redis, const struct address *address)
{
        struct server *server;
        unsigned count = 0;
        for (server = redis->servers; server; server = server->next, count++) {
                if (address_is_equal(&server->address, address))
                        return server;
        }
        if (count >= SERVERS_MAX) {
                redis_failed(redis, -EHOSTUNREACH, "the Cluster names more servers than a Cluster can have");
                return NULL;
        }
        server = server_add(redis, address);
        server_connect(server);
        return server;
}

/* --- the map --- */

/* Reads [host, port, id, …].  A server that does not know its own host name means the host that we asked. */
static bool read_node(const redisReply *node, const struct address *from, struct address *ret)
{
        if (node->type != REDIS_REPLY_ARRAY || node->elements < 2 || node->element[1]->type != REDIS_REPLY_INTEGER)
                return false;
        const redisReply *host = node->element[0];
        long long port = node->element[1]->integer;
        if (port < 1 || port > 65535)
                return false;
        *ret = *from;
        ret->port = (uint16_t)port;
        bool is_named = host->type == REDIS_REPLY_STRING && host->len && strcmp(host->str, "?") != 0;
        if (is_named)
                (void)snprintf(ret->host, sizeof(ret->host), "%s", host->str);
        return true;
}

static void set_slot(struct cluster *cluster, uint16_t slot, struct server *server)
{
        cluster->is_changed |= cluster->slots[slot] != server;
        cluster->slots[slot] = server;
}

/* Reads [first slot, last slot, master, replica…]. */
static void apply_range(struct cluster *cluster, const redisReply *range, const struct address *from, bool *covered)
{
        struct address address;
        if (range->type != REDIS_REPLY_ARRAY || range->elements < 3 || range->element[0]->type != REDIS_REPLY_INTEGER ||
                range->element[1]->type != REDIS_REPLY_INTEGER || !read_node(range->element[2], from, &address))
                return;
        long long first = range->element[0]->integer, last = range->element[1]->integer;
        if (first < 0 || last >= SLOTS || first > last)
                return;
        struct server *server = find_or_add(cluster->redis, &address);
        if (!server)
                return;
        server->is_in_map = true;
        for (long long slot = first; slot <= last; slot++) {
                covered[slot] = true;
                set_slot(cluster, (uint16_t)slot, server);
        }
}

/* Removes servers without slots, except those that an ASK named recently or that still owe an answer.  A silent one
 * hangs, and another has its slots: its answers are not waited for. */
static void remove_unused(struct cluster *cluster, uint64_t now_ms)
{
        struct server *server, *after;
        for (server = cluster->redis->servers; server; server = after) {
                after = server->next;
                if (server->is_in_map)
                        continue;
                bool is_used = server->main && server->main->sent && !conn_is_silent(server->main, now_ms);
                if (is_used || server->asked_until_ms > now_ms)
                        redis_wake_at(cluster->redis, now_ms + REFRESH_MS);
                else
                        server_remove(server);
        }
}

/* A key that moved to another server is not tracked there, so its writes would not ring. */
static void look_if_changed(struct cluster *cluster)
{
        if (cluster->is_changed)
                redis_look(cluster->redis);
        cluster->is_changed = false;
}

static bool on_told(void *self, const struct address *from, const redisReply *reply)
{
        struct cluster *cluster = self;
        struct redis *redis = cluster->redis;
        bool covered[SLOTS] = { false };
        struct server *server;
        char address[ADDRESS_TEXT_MAX];
        char text[ERROR_TEXT_MAX];
        if (reply->type != REDIS_REPLY_ARRAY || !reply->elements) {
                (void)snprintf(text, sizeof(text), "%s has no slot map: %s", address_format(from, address),
                        reply->type == REDIS_REPLY_ERROR ? reply->str : "no slot is assigned");
                redis_failed(redis, -EHOSTUNREACH, text);
                return false;
        }
        for (server = redis->servers; server; server = server->next) {
                server->is_in_map = false;
        }
        for (size_t i = 0; i < reply->elements; i++)
                apply_range(cluster, reply->element[i], from, covered);
        for (uint16_t slot = 0; slot < SLOTS; slot++)
                if (!covered[slot])
                        set_slot(cluster, slot, NULL);
        cluster->has_map = true;
        cluster->refresh_at_ms = clock_boot_ms() + REFRESH_MS;
        remove_unused(cluster, clock_boot_ms());
        look_if_changed(cluster);
        redis_dispatch(redis);
        redis_check_open(redis);
        return true;
}

static void add_seed(struct cluster *cluster, const struct url_host *seed)
{
        struct address host = { .port = seed->port };
        (void)snprintf(host.host, sizeof(host.host), "%s", seed->name);
        ask_any_add(&cluster->ask, &host);
}

/* Asks the servers that answer first, then all hosts of the URL. */
static void start_asking(struct cluster *cluster)
{
        const struct server *server;
        uint64_t now_ms = clock_boot_ms();
        cluster->is_refresh_due = false;
        if (cluster->ask.is_asking)
                return;
        cluster->ask.count = 0;
        for (server = cluster->redis->servers; server; server = server->next) {
                if (server->is_up && !conn_is_silent(server->main, now_ms))
                        ask_any_add(&cluster->ask, &server->address);
        }
        if (cluster->ask.count)
                cluster->ask.next %= cluster->ask.count;
        for (size_t i = 0; i < cluster->redis->url.hosts_count; i++)
                add_seed(cluster, &cluster->redis->url.hosts[i]);
        ask_any_start(&cluster->ask);
}

void cluster_refresh(struct cluster *cluster)
{
        if (cluster->ask.is_asking || cluster->is_refresh_due)
                return;
        cluster->is_refresh_due = true;
        redis_wake_at(cluster->redis, cluster->refresh_at_ms);
}

void cluster_tick(struct cluster *cluster, uint64_t now_ms)
{
        ask_any_tick(&cluster->ask, now_ms);
        if (cluster->is_refresh_due && now_ms >= cluster->refresh_at_ms)
                start_asking(cluster);
        else if (cluster->is_refresh_due)
                redis_wake_at(cluster->redis, cluster->refresh_at_ms);
        if (cluster->has_map)
                remove_unused(cluster, now_ms);
}

/* --- commands --- */

struct server *cluster_route(struct cluster *cluster, const struct redis_command *command)
{
        struct server *server = command->target;
        if (!server && command->route.size) {
                server = cluster->slots[redis_slot(command->route.data, command->route.size)];
                if (!server && cluster->has_map)
                        cluster_refresh(cluster);
        }
        if (!server && !command->route.size) {
                for (server = cluster->redis->servers; server; server = server->next) {
                        if (server->is_up && server->is_in_map)
                                break;
                }
        }
        return server && server->is_up ? server : NULL;
}

bool cluster_redirect(struct cluster *cluster, struct server *from, struct redis_command *command,
        const redisReply *reply, bool is_ask)
{
        uint64_t now_ms = clock_boot_ms();
        struct address address;
        uint16_t slot = 0;
        if (!error_reply_target(reply, &from->address, &slot, &address))
                return false;
        struct server *to = find_or_add(cluster->redis, &address);
        if (!to)
                return false;
        if (is_ask) {
                to->asked_until_ms = now_ms + ASKED_KEPT_MS;
                command->target = to;
        } else {
                set_slot(cluster, slot, to);
                to->is_in_map = true;
                cluster_refresh(cluster);
                look_if_changed(cluster);
        }
        if (to->is_up && command->tries++ < REDIRECTS_FAST)
                server_send(to, command);
        else
                redis_wait(cluster->redis, command, to->is_up ? now_ms + backoff_ms(REDIRECT_STEP) : 0);
        return true;
}

/* --- open and close --- */

struct cluster *cluster_open(struct redis *redis)
{
        struct cluster *cluster = memory_zero(1, sizeof(*cluster));
        cluster->redis = redis;
        cluster->ask = (struct ask_any){
                .redis = redis, .kind = CONN_ASK_ANY, .words = { "CLUSTER", "SLOTS" }, .told = on_told, .self = cluster
        };
        start_asking(cluster);
        return cluster;
}

void cluster_close(struct cluster *cluster)
{
        if (!cluster)
                return;
        ask_any_stop(&cluster->ask);
        free(cluster);
}

bool cluster_is_settled(const struct cluster *cluster)
{
        const struct server *server;
        if (!cluster->has_map)
                return false;
        for (server = cluster->redis->servers; server; server = server->next) {
                if (server->is_in_map && !server_is_settled(server))
                        return false;
        }
        return true;
}
