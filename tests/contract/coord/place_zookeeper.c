/* ZooKeeper as the authority, one server or an ensemble.  They serve all tests of a program, each below a root of its
 * own, and are cut off by stopping their processes. */
#include "harness.h"

#include "place_zookeeper.h"

static struct zookeepers servers;

struct root {
        char url[128];
};

static void stop_servers(void)
{
        zookeepers_stop(&servers);
}

struct zookeepers *place_zookeeper(void)
{
        return &servers;
}

static void *place_create(unsigned count)
{
        static unsigned roots;
        struct root *r = calloc(1, sizeof(*r));
        char name[32];
        assert_non_null(r);
        if (!servers.count) {
                zookeepers_start(&servers, count);
                (void)atexit(stop_servers);
        }
        (void)snprintf(name, sizeof(name), "tests/%u", ++roots);
        zookeepers_url(&servers, name, r->url, sizeof(r->url));
        return r;
}

static void *one_create(void)
{
        return place_create(1);
}

static void *three_create(void)
{
        return place_create(ZOOKEEPERS_MAX);
}

static void place_heal(void *place)
{
        (void)place;
        for (unsigned i = 0; i < servers.count; i++)
                zookeepers_resume(&servers, i);
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
                zookeepers_pause(&servers, i);
}

#define PLACE(name_, create_)                                                                                          \
        {                                                                                                              \
                .name = (name_), .create = (create_), .destroy = place_destroy, .options = place_options,              \
                .cut = place_cut, .heal = place_heal, .session_ms = 3 * ZOOKEEPER_TICK_MS                              \
        }

const struct place_driver zookeeper_place = PLACE("zookeeper", one_create);
const struct place_driver ensemble_place = PLACE("zookeeper-ensemble", three_create);
