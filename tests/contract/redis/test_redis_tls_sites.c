/* Sentinel and Cluster where everything speaks TLS: the servers among themselves, and we with all of them. */
#include "certificates.h"
#include "redis_rig.h"

#define KEYS 12

static struct certificates c;
static struct sentinel_group group;
static struct redis_cluster cluster;

static int stop(void **state)
{
        (void)state;
        sentinel_group_free(&group);
        redis_cluster_free(&cluster);
        certificates_free(&c);
        return 0;
}

static void start(struct rig *rig, const char *url)
{
        rig_init(rig, url);
        rig->open.options.tls.ca_file = certificates_path(&c, "ca.pem");
        rig->open.options.deadline_ms = 10000;
        if (rig_open(rig))
                fail_msg("%s: %s", url, rig->open.error.text);
}

static void a_new_master_is_found_and_followed_over_tls(void **state)
{
        struct redis_facts facts;
        struct rig rig;
        struct call call;
        char address[32];
        (void)state;
        group.certificates = &c;
        sentinel_group_start(&group, "", "");
        start(&rig, group.url);
        redis_facts(rig.redis, &facts);
        assert_string_equal(facts.tls, "TLSv1.3");
        assert_int_equal(call_do(&rig, &call, "SET k:1 v"), 0);
        server_ok(&group.sentinels[0], "SENTINEL FAILOVER main");
        (void)snprintf(address, sizeof(address), "127.0.0.1:%u", group.data[1].tls_port);
        RUN_UNTIL(&rig, (redis_facts(rig.redis, &facts), strcmp(facts.server, address) == 0));
        assert_string_equal(facts.tls, "TLSv1.3");
        assert_int_equal(call_do(&rig, &call, "SET k:2 w"), 0);
        rig_close(&rig);
}

/* Each server of the Cluster has keys of its own. */
static void count_all(struct rig *rig, int expected)
{
        struct call call;
        for (int key = 0; key < KEYS; key++) {
                assert_int_equal(call_do(rig, &call, "INCR {%d}:n", key), 0);
                assert_int_equal(atoi(call.reply), expected);
        }
}

static void redirects_are_followed_over_tls(void **state)
{
        struct rig rig;
        struct call call;
        struct redis_facts facts;
        (void)state;
        cluster.certificates = &c;
        redis_cluster_start(&cluster);
        start(&rig, cluster.url);
        redis_facts(rig.redis, &facts);
        assert_string_equal(facts.tls, "TLSv1.3");
        count_all(&rig, 1);
        /* The slot of "{0}" goes to another server: ASK while it moves, MOVED afterwards. */
        uint16_t slot = redis_slot("{0}", 3);
        int from = slot < 5461 ? 0 : slot < 10923 ? 1 : 2, to = (from + 1) % CLUSTER_MASTERS;
        redis_cluster_mark(&cluster, slot, from, to);
        assert_int_equal(call_do(&rig, &call, "SET {0}:new x"), 0);
        redis_cluster_move_keys(&cluster, slot, from, to, 10);
        count_all(&rig, 2);
        redis_cluster_hand_over(&cluster, slot, to);
        count_all(&rig, 3);
        rig_close(&rig);
}

static int make(void **state)
{
        (void)state;
        certificates_make(&c);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_new_master_is_found_and_followed_over_tls),
                cmocka_unit_test(redirects_are_followed_over_tls),
        };
        return cmocka_run_group_tests(tests, make, stop);
}
