/* Sentinel groups and Clusters out of single servers. */
#include <stdlib.h>

#include "certificates.h"
#include "check.h"
#include "servers.h"

/* --- Sentinel ----------------------------------------------------------------------------------------------------- */

/* A Sentinel that knows the replica and both others can carry out a failover. */
static bool knows_all(void *self)
{
        redisReply *reply = server_do(self, "SENTINEL MASTER main");
        int found = 0;
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
                const char *name = reply->element[i]->str, *value = reply->element[i + 1]->str;
                found += !strcmp(name, "num-slaves") && !strcmp(value, "1");
                found += !strcmp(name, "num-other-sentinels") && atoi(value) == SENTINELS - 1;
                found += !strcmp(name, "flags") && !strcmp(value, "master");
        }
        freeReplyObject(reply);
        return found == 3;
}

static bool is_in_step(void *self)
{
        char status[32];
        server_info(self, "master_link_status", status, sizeof(status));
        return !strcmp(status, "up");
}

/* Starts a server of the group: the port that others are told is that for TLS, if there is one. */
static void start_data(struct sentinel_group *group, int i, const char *const *words)
{
        const char *all[16] = { group->certificates ? "--tls-replication" : NULL, "yes" };
        int count = group->certificates ? 2 : 0;
        while (*words)
                all[count++] = *words++;
        all[count] = NULL;
        if (group->certificates)
                server_start_tls_words(&group->data[i], group->certificates, all);
        else
                server_start_words(&group->data[i], all);
}
#define START_DATA(group, i, ...) start_data(group, i, (const char *const[]){ __VA_ARGS__, NULL })

static uint16_t told_port(const struct redis_server *server)
{
        return server->tls_port ? server->tls_port : server->port;
}

static void start_sentinel(struct sentinel_group *group, int i, const char *lines)
{
        const struct certificates *c = group->certificates;
        char all[1536];
        uint16_t tls_port = c ? free_port() : 0;
        int size = snprintf(all, sizeof(all), "%s", lines);
        if (c)
                (void)snprintf(all + size, sizeof(all) - (size_t)size,
                        "tls-port %u\ntls-replication yes\ntls-auth-clients no\ntls-cert-file %s\ntls-key-file %s\n"
                        "tls-ca-cert-file %s\n",
                        tls_port, certificates_path(c, "server.pem"), certificates_path(c, "server.key"),
                        certificates_path(c, "ca.pem"));
        server_start_sentinel(&group->sentinels[i], all);
        group->sentinels[i].tls_port = tls_port;
}

void sentinel_group_start(struct sentinel_group *group, const char *password, const char *sentinel_password)
{
        char lines[768];
        int size = 0;
        START_DATA(group, 0, "--requirepass", password, "--masterauth", password);
        (void)snprintf(group->port, sizeof(group->port), "%u", told_port(&group->data[0]));
        START_DATA(
                group, 1, "--requirepass", password, "--masterauth", password, "--replicaof", "127.0.0.1", group->port);
        assert_true(wait_until(is_in_step, &group->data[1]));
        (void)snprintf(lines, sizeof(lines),
                "sentinel monitor main 127.0.0.1 %u 2\nsentinel down-after-milliseconds main 1000\n"
                "sentinel failover-timeout main 1000\n%s%s\n%s%s\n%s%s\n",
                told_port(&group->data[0]), *password ? "sentinel auth-pass main " : "", password,
                *sentinel_password ? "requirepass " : "", sentinel_password,
                *sentinel_password ? "sentinel sentinel-pass " : "", sentinel_password);
        size = snprintf(group->url, sizeof(group->url), "redis%s+sentinel://", group->certificates ? "s" : "");
        for (int i = 0; i < SENTINELS; i++) {
                start_sentinel(group, i, lines);
                size += snprintf(group->url + size, sizeof(group->url) - (size_t)size, "%s127.0.0.1:%u", i ? "," : "",
                        told_port(&group->sentinels[i]));
        }
        (void)snprintf(group->url + size, sizeof(group->url) - (size_t)size, "/main");
        for (int i = 0; i < SENTINELS; i++)
                assert_true(wait_until(knows_all, &group->sentinels[i]));
}

void sentinel_group_free(struct sentinel_group *group)
{
        for (int i = 0; i < SENTINELS; i++)
                server_free(&group->sentinels[i]);
        for (size_t i = 0; i < COUNT(group->data); i++)
                server_free(&group->data[i]);
}

/* --- Cluster ------------------------------------------------------------------------------------------------------ */

static bool is_ok(void *self)
{
        redisReply *reply = server_do(self, "CLUSTER INFO");
        char known[32];
        (void)snprintf(known, sizeof(known), "cluster_known_nodes:%d\r", CLUSTER_NODES);
        bool is_so = reply->str && strstr(reply->str, "cluster_state:ok") && strstr(reply->str, known);
        freeReplyObject(reply);
        return is_so;
}

static bool replicate(void *self)
{
        const struct redis_cluster *cluster = self;
        bool is_so = true;
        for (int i = 0; i < CLUSTER_MASTERS; i++) {
                redisReply *reply =
                        server_do(&cluster->nodes[CLUSTER_MASTERS + i], "CLUSTER REPLICATE %s", cluster->ids[i]);
                is_so = is_so && reply->type == REDIS_REPLY_STATUS;
                freeReplyObject(reply);
        }
        return is_so;
}

#define NODE_WORDS                                                                                                     \
        "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-allow-replica-migration", "no",       \
                "--cluster-require-full-coverage", "no"

static void start_node(struct redis_server *node, const struct certificates *c)
{
        if (c)
                server_start_tls(node, c, NODE_WORDS, "--tls-cluster", "yes", "--tls-replication", "yes", NULL);
        else
                server_start(node, NODE_WORDS, NULL);
}

void redis_cluster_start(struct redis_cluster *cluster)
{
        static const int first[CLUSTER_MASTERS + 1] = { 0, 5461, 10923, 16384 };
        const struct certificates *c = cluster->certificates;
        *cluster = (struct redis_cluster){ .certificates = c };
        int size = snprintf(cluster->url, sizeof(cluster->url), "redis%s+cluster://", c ? "s" : "");
        for (int i = 0; i < CLUSTER_NODES; i++) {
                struct redis_server *node = &cluster->nodes[i];
                start_node(node, c);
                redisReply *reply = server_do(node, "CLUSTER MYID");
                (void)snprintf(cluster->ids[i], sizeof(cluster->ids[i]), "%s", reply->str);
                freeReplyObject(reply);
                size += snprintf(cluster->url + size, sizeof(cluster->url) - (size_t)size, "%s127.0.0.1:%u",
                        i ? "," : "", told_port(node));
                server_ok(node, "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
                if (i < CLUSTER_MASTERS)
                        server_ok(node, "CLUSTER ADDSLOTSRANGE %d %d", first[i], first[i + 1] - 1);
                if (i)
                        server_ok(node, "CLUSTER MEET 127.0.0.1 %d", told_port(&cluster->nodes[0]));
        }
        for (int i = 0; i < CLUSTER_NODES; i++)
                assert_true(wait_until(is_ok, &cluster->nodes[i]));
        assert_true(wait_until(replicate, cluster));
        for (int i = CLUSTER_MASTERS; i < CLUSTER_NODES; i++)
                assert_true(wait_until(is_in_step, &cluster->nodes[i]));
}

void redis_cluster_free(struct redis_cluster *cluster)
{
        for (int i = 0; i < CLUSTER_NODES; i++)
                server_free(&cluster->nodes[i]);
}

void redis_cluster_mark(struct redis_cluster *cluster, uint16_t slot, int from, int to)
{
        server_ok(&cluster->nodes[to], "CLUSTER SETSLOT %d IMPORTING %s", slot, cluster->ids[from]);
        server_ok(&cluster->nodes[from], "CLUSTER SETSLOT %d MIGRATING %s", slot, cluster->ids[to]);
}

void redis_cluster_move_keys(struct redis_cluster *cluster, uint16_t slot, int from, int to, int most)
{
        redisReply *keys = server_do(&cluster->nodes[from], "CLUSTER GETKEYSINSLOT %d %d", slot, most);
        for (size_t i = 0; i < keys->elements; i++)
                server_ok(&cluster->nodes[from], "MIGRATE 127.0.0.1 %d %b 0 5000", told_port(&cluster->nodes[to]),
                        keys->element[i]->str, keys->element[i]->len);
        freeReplyObject(keys);
}

static long epoch_of(const struct redis_server *node, const char *name)
{
        redisReply *reply = server_do(node, "CLUSTER INFO");
        const char *at = reply->str ? strstr(reply->str, name) : NULL;
        long epoch = at ? atol(at + strlen(name)) : -1;
        freeReplyObject(reply);
        return epoch;
}

/* All know of the highest epoch: whoever takes over a slot next takes a higher one.  Else two could have the same, and
 * the slot might go back to whoever had it before. */
static bool have_one_epoch(void *self)
{
        const struct redis_cluster *cluster = self;
        long highest = 0;
        for (int i = 0; i < CLUSTER_MASTERS; i++) {
                long epoch = epoch_of(&cluster->nodes[i], "cluster_my_epoch:");
                highest = epoch > highest ? epoch : highest;
        }
        for (int i = 0; i < CLUSTER_NODES; i++)
                if (epoch_of(&cluster->nodes[i], "cluster_current_epoch:") != highest)
                        return false;
        return true;
}

void redis_cluster_hand_over(struct redis_cluster *cluster, uint16_t slot, int to)
{
        server_ok(&cluster->nodes[to], "CLUSTER SETSLOT %d NODE %s", slot, cluster->ids[to]);
        for (int i = 0; i < CLUSTER_MASTERS; i++)
                if (i != to)
                        server_ok(&cluster->nodes[i], "CLUSTER SETSLOT %d NODE %s", slot, cluster->ids[to]);
        assert_true(wait_until(have_one_epoch, cluster));
}
