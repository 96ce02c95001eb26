/* etcd or ZooKeeper as the authority, one server or three.  They serve all tests of a program, each below a root of its
 * own, and are cut off by stopping their processes. */
#include "harness.h"

#include "etcds.h"
#include "place_servers.h"
#include "zookeepers.h"

static struct ensemble servers;

struct root {
        char url[128];
};

static void stop_servers(void)
{
        ensemble_stop(&servers);
}

struct ensemble *place_servers(void)
{
        return &servers;
}

static void *place_create(const struct ensemble_kind *kind, unsigned count)
{
        static unsigned roots;
        struct root *r = calloc(1, sizeof(*r));
        char name[32];
        assert_non_null(r);
        if (!servers.count && kind->is_here && !kind->is_here()) {
                free(r);
                return NULL;
        }
        if (!servers.count) {
                ensemble_init(&servers, kind, count);
                ensemble_start(&servers);
                (void)atexit(stop_servers);
        }
        (void)snprintf(name, sizeof(name), "tests/%u", ++roots);
        ensemble_url(&servers, name, r->url, sizeof(r->url));
        return r;
}

static void place_heal(void *place)
{
        (void)place;
        for (unsigned i = 0; i < servers.count; i++)
                ensemble_resume(&servers, i);
}

static void place_destroy(void *place)
{
        place_heal(place); /* a test may have failed meanwhile */
        free(place);
}

static void place_options(void *place, struct coord_options *options)
{
        options->url = ((struct root *)place)->url;
}

static void place_cut(void *place)
{
        (void)place;
        for (unsigned i = 0; i < servers.count; i++)
                ensemble_pause(&servers, i);
}

static void *etcd_create(void)
{
        return place_create(&etcd_kind, 1);
}

static void *etcd_cluster_create(void)
{
        return place_create(&etcd_kind, ENSEMBLE_MAX);
}

static void *zookeeper_create(void)
{
        return place_create(&zookeeper_kind, 1);
}

static void *zookeeper_ensemble_create(void)
{
        return place_create(&zookeeper_kind, ENSEMBLE_MAX);
}

#define PLACE(name_, create_, session_ms_)                                                                             \
        {                                                                                                              \
                .name = (name_), .create = (create_), .destroy = place_destroy, .options = place_options,              \
                .cut = place_cut, .heal = place_heal, .session_ms = (session_ms_)                                      \
        }

const struct place_driver etcd_place = PLACE("etcd", etcd_create, 2000);
const struct place_driver etcd_cluster_place = PLACE("etcd-cluster", etcd_cluster_create, 2000);
const struct place_driver zookeeper_place = PLACE("zookeeper", zookeeper_create, 8 * ZOOKEEPER_TICK_MS);
const struct place_driver ensemble_place =
        PLACE("zookeeper-ensemble", zookeeper_ensemble_create, 3 * ZOOKEEPER_TICK_MS);
