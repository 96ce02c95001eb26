/* A Redis server as the authority.  One serves all tests of a program and is emptied between them; it is cut off by
 * stopping its process. */
#include "harness.h"

#include <signal.h>

#include "place_redis.h"

static struct redis_server server;

struct redis_server *place_redis(void)
{
        return &server;
}

static void stop_server(void)
{
        server_free(&server);
}

static void place_heal(void *place)
{
        (void)place;
        (void)kill(server.pid, SIGCONT);
}

static void *place_create(void)
{
        if (!server.pid) {
                server_start(&server, "--appendonly", "no", "--save", "", (char *)NULL);
                (void)atexit(stop_server);
        }
        server_ok(&server, "FLUSHALL");
        return &server;
}

static void place_destroy(void *place)
{
        place_heal(place); /* a test may have failed meanwhile */
}

static void place_options(void *place, struct coord_options *options)
{
        (void)place;
        options->url = server.url;
}

static void place_cut(void *place)
{
        (void)place;
        (void)kill(server.pid, SIGSTOP);
}

const struct place_driver redis_place = {
        .name = "redis",
        .create = place_create,
        .destroy = place_destroy,
        .options = place_options,
        .cut = place_cut,
        .heal = place_heal,
        .session_ms = 900,
};
