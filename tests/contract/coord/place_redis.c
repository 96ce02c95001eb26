/* A Redis server as the authority.  One serves all tests of a program and is emptied between them; it is cut off by
 * stopping its process. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "place_redis.h"

static struct redis_server server;
static char users_file[] = "/tmp/quiver-acl-XXXXXX"; /* so that a server that is started again knows its users */

struct redis_server *place_redis(void)
{
        return &server;
}

static void stop_server(void)
{
        server_free(&server);
        (void)unlink(users_file);
}

static void place_heal(void *place)
{
        (void)place;
        (void)kill(server.pid, SIGCONT);
}

/* The users of the suite's two apps: with the rights that quiver check --acl prints for the coordination, and no
 * others.
 */
static void add_users(void)
{
        static const char *const apps[] = { "test", "other" };
        for (size_t i = 0; i < 2; i++) {
                struct rights rights = { 0 };
                const struct coord_options options = { .url = server.url, .app = apps[i] };
                assert_true(coord_rights(&options, false, &rights));
                server_add_user(&server, apps[i], &rights);
                rights_free(&rights);
        }
        server_ok(&server, "ACL SAVE");
}

static void *place_create(void)
{
        if (!server.pid) {
                int fd = mkstemp(users_file);
                assert_true(fd >= 0);
                (void)close(fd);
                server_start(&server, "--appendonly", "no", "--save", "", "--aclfile", users_file, (char *)NULL);
                (void)atexit(stop_server);
                add_users();
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
        if (options->app && !strcmp(options->app, "other"))
                options->user = "other";
        else if (!options->user)
                options->user = "test";
        if (!options->password)
                options->password = "secret";
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
