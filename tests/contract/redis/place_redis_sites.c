/* The contract suite's other Redis places: a server over TCP, the same with TLS, a Sentinel group, a Cluster.  Each is
 * started when first needed and emptied for each test; the clock of those that hold data moves only when the test says
 * so. */
#include "certificates.h"
#include "clock_file.h"
#include "harness.h"
#include "servers.h"

/* Everything that holds data, masters first. */
struct site {
        const struct redis_server *masters[CLUSTER_MASTERS];
        unsigned count; /* 0: not started */
        const char *url;
        uint64_t *wall_ms;
};

static struct redis_server server, tls_server;
static struct certificates certificates;
static struct sentinel_group group;
static struct redis_cluster cluster;

static void stop_all(void)
{
        server_free(&server);
        server_free(&tls_server);
        certificates_free(&certificates);
        sentinel_group_free(&group);
        redis_cluster_free(&cluster);
}

static void start_tcp(struct site *site)
{
        server_start(&server, (char *)NULL);
        site->masters[site->count++] = &server;
        site->url = server.url;
}

static void start_tls(struct site *site)
{
        certificates_make(&certificates);
        server_start_tls(&tls_server, &certificates, "--tls-auth-clients", "yes", (char *)NULL);
        site->masters[site->count++] = &tls_server;
        site->url = tls_server.tls_url;
}

/* Neither a clock that jumps by hours nor a busy machine may look like silence to the others: nothing here is about
 * failovers. */
static void start_sentinel(struct site *site)
{
        sentinel_group_start(&group, "", "");
        for (int i = 0; i < SENTINELS; i++)
                server_ok(&group.sentinels[i], "SENTINEL SET main down-after-milliseconds %d", 1000000000);
        site->masters[site->count++] = &group.data[0];
        site->url = group.url;
}

static void start_cluster(struct site *site)
{
        redis_cluster_start(&cluster);
        for (int i = 0; i < CLUSTER_NODES; i++)
                server_ok(&cluster.nodes[i], "CONFIG SET cluster-node-timeout %d", 1000000000);
        while (site->count < CLUSTER_MASTERS) {
                site->masters[site->count] = &cluster.nodes[site->count];
                site->count++;
        }
        site->url = cluster.url;
}

static void *create(struct site *site, void (*start)(struct site *site))
{
        if (!site->count) {
                site->wall_ms = clock_file_open();
                start(site);
                clock_file_close();
                *site->wall_ms = CLOCK_START_MS;
                (void)atexit(stop_all);
        }
        for (unsigned i = 0; i < site->count; i++)
                server_ok(site->masters[i], "FLUSHALL");
        return site;
}

#define SITE(name)                                                                                                     \
        static void *create_##name(void)                                                                               \
        {                                                                                                              \
                static struct site site;                                                                               \
                return create(&site, start_##name);                                                                    \
        }
SITE(tcp)
SITE(tls)
SITE(sentinel)
SITE(cluster)

static void destroy(void *self)
{
        *((struct site *)self)->wall_ms = CLOCK_START_MS;
}

static void options(void *self, struct store_options *to)
{
        to->url = ((struct site *)self)->url;
        to->tls = (struct tls_files){ .ca_file = certificates_path(&certificates, "ca.pem"),
                .cert_file = certificates_path(&certificates, "client.pem"),
                .key_file = certificates_path(&certificates, "client.key") };
}

static void step_clock(void *self, int64_t ms)
{
        (void)__atomic_add_fetch(((struct site *)self)->wall_ms, (uint64_t)ms, __ATOMIC_ACQ_REL);
}

/* Without a map of the slots: whoever does not have the key says so. */
static void push(void *self, uint32_t shard, enum lane lane, struct span bytes)
{
        const struct site *site = self;
        bool is_taken = false;
        char key[64];
        (void)snprintf(key, sizeof(key), "quiver:{test:%u}:%s", shard, lane_name(lane));
        for (unsigned i = 0; i < site->count && !is_taken; i++) {
                redisReply *reply = server_do(site->masters[i], "RPUSH %s %b", key, bytes.data, bytes.size);
                is_taken = reply->type == REDIS_REPLY_INTEGER;
                freeReplyObject(reply);
        }
        assert_true(is_taken);
}

static void record(void *self, const char *name, const char *value)
{
        const struct site *site = self;
        bool is_taken = false;
        for (unsigned i = 0; i < site->count && !is_taken; i++) {
                redisReply *reply = server_do(site->masters[i], "HSET quiver:{test}:app %s %s", name, value);
                is_taken = reply->type == REDIS_REPLY_INTEGER;
                freeReplyObject(reply);
        }
        assert_true(is_taken);
}

#define CONTRACT(site)                                                                                                 \
        {                                                                                                              \
                .name = "redis-" #site, .create = create_##site, .destroy = destroy, .options = options,               \
                .step_clock = step_clock, .push = push, .record = record, .has_many_apps = true,                       \
        }

const struct contract_driver redis_site_contracts[] = { CONTRACT(tcp), CONTRACT(tls), CONTRACT(sentinel),
        CONTRACT(cluster) };
const size_t redis_sites = sizeof(redis_site_contracts) / sizeof(redis_site_contracts[0]);

const struct contract_driver *redis_tls_contract(void)
{
        return &redis_site_contracts[1];
}

const struct redis_server *redis_tls_server(void)
{
        return &tls_server;
}
