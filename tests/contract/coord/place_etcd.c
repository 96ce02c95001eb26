/* etcd as the authority, one server or a cluster of three.  They serve all tests of a program, each below a root of its
 * own, and are cut off by stopping their processes. */
#include "harness.h"

#include "place_etcd.h"

static struct etcds servers;

struct etcd_root {
        char url[128];
};

static void stop_servers(void)
{
        etcds_stop(&servers);
}

struct etcds *place_etcd(void)
{
        return &servers;
}

static void *place_create(unsigned count)
{
        static unsigned roots;
        struct etcd_root *r = calloc(1, sizeof(*r));
        char name[32];
        assert_non_null(r);
        if (!servers.count && !etcds_are_here()) {
                free(r);
                return NULL;
        }
        if (!servers.count) {
                etcds_start(&servers, count, false);
                (void)atexit(stop_servers);
        }
        (void)snprintf(name, sizeof(name), "tests/%u", ++roots);
        etcds_url(&servers, name, r->url, sizeof(r->url));
        return r;
}

static void *one_create(void)
{
        return place_create(1);
}

static void *three_create(void)
{
        return place_create(ETCDS_MAX);
}

static void place_heal(void *place)
{
        (void)place;
        for (unsigned i = 0; i < servers.count; i++)
                etcds_resume(&servers, i);
}

static void place_destroy(void *place)
{
        place_heal(place); /* a test may have failed meanwhile */
        free(place);
}

static void place_options(void *place, struct coord_options *options)
{
        options->url = ((struct etcd_root *)place)->url;
}

static void place_cut(void *place)
{
        (void)place;
        for (unsigned i = 0; i < servers.count; i++)
                etcds_pause(&servers, i);
}

#define PLACE(name_, create_)                                                                                          \
        {                                                                                                              \
                .name = (name_), .create = (create_), .destroy = place_destroy, .options = place_options,              \
                .cut = place_cut, .heal = place_heal, .session_ms = 2000                                               \
        }

const struct place_driver etcd_place = PLACE("etcd", one_create);
const struct place_driver etcd_cluster_place = PLACE("etcd-cluster", three_create);
