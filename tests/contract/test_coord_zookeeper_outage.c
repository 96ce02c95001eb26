/* What the ZooKeeper driver promises beyond the contract of every driver: it comes through servers that are dead, hung
 * or wiped, names that stop resolving, a wrong password and a loop that hangs. */
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdatomic.h>
#include <unistd.h>

#include "coord/harness.h"
#include "coord/place_zookeeper.h"

/* --- a name server that can be told to fail ---------------------------------------------------------------------- */

#define TEST_NAME "zookeeper.test"

static atomic_bool name_is_known;
static atomic_uint name_asked;

/* Stands before the C library's, for the driver and for the client alike. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
        static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
        if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        if (!name || strcmp(name, TEST_NAME) != 0)
                return real(name, service, hints, result);
        (void)atomic_fetch_add(&name_asked, 1);
        return atomic_load(&name_is_known) ? real("127.0.0.1", service, hints, result) : EAI_AGAIN;
}

/* --- clients ----------------------------------------------------------------------------------------------------- */

static struct client *join_at(struct world *w, const char *url)
{
        struct client *c;
        assert_int_equal(client_connect(w, (struct coord_options){ .url = url }, true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        return c;
}

static struct client *join_as(struct world *w, const char *password)
{
        struct client *c;
        struct coord_options options = { .user = "fleet", .password = password };
        w->driver->options(w->place, &options);
        assert_int_equal(client_connect(w, options, true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        return c;
}

/* The place's URL with other servers. */
static const char *url_with(struct world *w, const char *hosts)
{
        struct coord_options options = { 0 };
        char url[256];
        w->driver->options(w->place, &options);
        int size = snprintf(url, sizeof(url), "zookeeper://%s%s", hosts, strchr(strstr(options.url, "//") + 2, '/'));
        return keep(w, url, (size_t)size);
}

static const char *url_through(struct world *w, const char *host, const struct proxy *proxy)
{
        char hosts[64];
        (void)snprintf(hosts, sizeof(hosts), "%s:%u", host, proxy_port(proxy));
        return url_with(w, hosts);
}

static enum coord_state last_state(const struct client *c)
{
        return c->states_count ? c->states[c->states_count - 1] : COORD_CONNECTING;
}

static struct proxy *server_proxy(void)
{
        return proxy_start(place_zookeeper()->servers[0].port);
}

/* --- the promises ------------------------------------------------------------------------------------------------ */

static void the_negotiated_timeout_is_the_servers(void **state)
{
        struct world *w = *state;
        struct coord_info info;
        struct client *c;
        assert_int_equal(client_connect(w, (struct coord_options){ .session_ms = 200 }, true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        coord_info(c->coord, &info);
        assert_int_equal(info.session_ms, 2 * ZOOKEEPER_TICK_MS);
        assert_non_null(strstr(info.server, "127.0.0.1:"));
}

static void a_watch_survives_a_lost_connection(void **state)
{
        struct world *w = *state;
        struct proxy *proxy = server_proxy();
        struct client *a = join_at(w, url_through(w, "127.0.0.1", proxy)), *b = join(w);
        uint64_t session = session_of(a);
        assert_int_equal(create(a, "a", "", 0, NULL, NULL), 0);
        assert_int_equal(get(a, "a", true, NULL, NULL), 0);
        forget_heard(a);
        proxy_cut(proxy);
        WAIT_FOR(w, was_told(a, COORD_SUSPENDED, session));
        assert_int_equal(set(b, "a", "x", 0, NULL), 0);
        WAIT_FOR(w, has_heard(a, "a"));
        WAIT_FOR(w, last_state(a) == COORD_ALIVE);
        assert_int_equal(session_of(a), session);
        assert_int_equal(a->looks, 0);
        client_close(a);
        proxy_stop(proxy);
}

static void a_server_that_hangs_ends_the_session_and_a_new_one_follows(void **state)
{
        struct world *w = *state;
        struct proxy *proxy = server_proxy();
        struct client *c = join_at(w, url_through(w, "127.0.0.1", proxy));
        uint64_t session = session_of(c);
        forget_heard(c);
        proxy_hold(proxy, true);
        WAIT_FOR(w, was_told(c, COORD_EXPIRED, session));
        assert_true(was_told(c, COORD_SUSPENDED, session));
        /* It is for the next session, which does not come in time. */
        assert_int_equal(get(c, "mine", false, NULL, NULL), -ETIMEDOUT);
        proxy_hold(proxy, false);
        WAIT_FOR(w, c->looks);
        assert_true(session_of(c) != session);
        client_close(c);
        proxy_stop(proxy);
}

static void a_write_that_was_lost_says_that_nobody_knows(void **state)
{
        struct world *w = *state;
        struct proxy *proxy = server_proxy();
        struct client *c = join_at(w, url_through(w, "127.0.0.1", proxy));
        struct pending p = { .create = { .request.done = pending_done, .path = "n" } };
        proxy_hold(proxy, true);
        coord_create(c->coord, &p.create);
        proxy_cut(proxy);
        WAIT_FOR(w, p.done);
        assert_int_equal(p.status, -ECONNRESET);
        client_close(c);
        proxy_stop(proxy);
}

static void what_an_outage_left_behind_goes_when_the_server_is_back(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        uint64_t session = session_of(c);
        assert_int_equal(create(c, "mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        forget_heard(c);
        zookeepers_pause(place_zookeeper(), 0);
        WAIT_FOR(w, was_told(c, COORD_EXPIRED, session));
        zookeepers_resume(place_zookeeper(), 0);
        WAIT_FOR(w, c->looks);
        WAIT_FOR(w, get(c, "mine", false, NULL, NULL) == -ENOENT);
}

static void a_dead_server_in_the_url_is_passed_over(void **state)
{
        struct world *w = *state;
        char hosts[64];
        /* Port 1 refuses. */
        (void)snprintf(hosts, sizeof(hosts), "127.0.0.1:1,127.0.0.1:%u", place_zookeeper()->servers[0].port);
        for (int i = 0; i < 3; i++)
                client_close(join_at(w, url_with(w, hosts)));
}

static void a_hung_server_in_the_url_is_passed_over(void **state)
{
        struct world *w = *state;
        struct proxy *hung = server_proxy();
        char hosts[64];
        proxy_hold(hung, true);
        (void)snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", proxy_port(hung),
                place_zookeeper()->servers[0].port);
        for (int i = 0; i < 3; i++)
                client_close(join_at(w, url_with(w, hosts)));
        proxy_stop(hung);
}

static void a_name_that_does_not_resolve_is_passed_over(void **state)
{
        struct world *w = *state;
        char hosts[64];
        (void)snprintf(hosts, sizeof(hosts), "no-such-host.invalid,127.0.0.1:%u", place_zookeeper()->servers[0].port);
        (void)join_at(w, url_with(w, hosts));
}

static void a_name_that_stops_resolving_is_not_needed_any_more(void **state)
{
        struct world *w = *state;
        struct proxy *proxy = server_proxy();
        atomic_store(&name_is_known, true);
        struct client *c = join_at(w, url_through(w, TEST_NAME, proxy));
        uint64_t session = session_of(c);
        atomic_store(&name_is_known, false);
        unsigned asked = atomic_load(&name_asked);
        proxy_cut(proxy);
        WAIT_FOR(w, was_told(c, COORD_SUSPENDED, session));
        WAIT_FOR(w, last_state(c) == COORD_ALIVE);
        assert_int_equal(session_of(c), session);
        assert_int_equal(atomic_load(&name_asked), asked);
        /* For a new session it is asked for, and the old address stands in. */
        proxy_hold(proxy, true);
        WAIT_FOR(w, was_told(c, COORD_EXPIRED, session));
        proxy_hold(proxy, false);
        WAIT_FOR(w, last_state(c) == COORD_ALIVE);
        assert_true(atomic_load(&name_asked) > asked);
        client_close(c);
        proxy_stop(proxy);
}

static void nobody_there_is_no_reason_not_to_open(void **state)
{
        struct world *w = *state;
        struct client *c;
        struct coord_options options = { .url = url_with(w, "127.0.0.1:1") };
        assert_int_equal(client_connect(w, options, true, &c, NULL), 0);
        assert_int_equal(get(c, "a", false, NULL, NULL), -ETIMEDOUT);
        assert_int_equal(c->states_count, 0);
}

static void another_password_reads_and_writes_nothing(void **state)
{
        struct world *w = *state;
        struct client *ours = join_as(w, "one");
        assert_int_equal(create(ours, "a", "", 0, NULL, NULL), 0);
        client_close(ours);
        struct client *theirs = join_as(w, "other");
        assert_int_equal(get(theirs, "a", false, NULL, NULL), -EACCES);
        assert_int_equal(set(theirs, "a", "", 0, NULL), -EACCES);
        assert_int_equal(create(theirs, "b", "", 0, NULL, NULL), -EACCES);
        ours = join_as(w, "one");
        assert_int_equal(get(ours, "a", false, NULL, NULL), 0);
}

static void a_loop_that_hangs_loses_its_session(void **state)
{
        struct world *w = *state;
        struct world *other;
        struct coord_options options = { 0 };
        assert_int_equal(world_setup((void **)&other), 0);
        struct client *a = join(w);
        w->driver->options(w->place, &options);
        struct client *b = join_at(other, options.url);
        uint64_t session = session_of(a);
        assert_int_equal(create(a, "mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        forget_heard(a);
        /* Only the other's loop turns. */
        WAIT_FOR(other, get(b, "mine", false, NULL, NULL) == -ENOENT);
        WAIT_FOR(w, a->looks);
        assert_true(was_told(a, COORD_EXPIRED, session));
        assert_int_equal(world_teardown((void **)&other), 0);
}

static void a_wiped_server_gets_a_new_session_and_new_nodes(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        uint64_t session = session_of(c);
        for (int i = 0; i < 20; i++)
                assert_int_equal(create(c, "a/n", "", COORD_SEQUENTIAL, NULL, NULL), 0);
        forget_heard(c);
        zookeepers_wipe(place_zookeeper());
        WAIT_FOR(w, c->looks);
        assert_true(was_told(c, COORD_EXPIRED, session));
        assert_int_equal(get(c, "a", false, NULL, NULL), -ENOENT);
        assert_int_equal(create(c, "a/n", "", COORD_EPHEMERAL, NULL, NULL), 0);
}

static unsigned inherited(void)
{
        unsigned count = 0;
        for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
                int flags = fcntl(fd, F_GETFD);
                count += flags >= 0 && !(flags & FD_CLOEXEC);
        }
        return count;
}

static void no_descriptor_of_the_client_reaches_a_child(void **state)
{
        unsigned before = inherited();
        (void)join(*state);
        assert_int_equal(inherited(), before);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(the_negotiated_timeout_is_the_servers),
                IN_WORLD(a_watch_survives_a_lost_connection),
                IN_WORLD(a_server_that_hangs_ends_the_session_and_a_new_one_follows),
                IN_WORLD(a_write_that_was_lost_says_that_nobody_knows),
                IN_WORLD(what_an_outage_left_behind_goes_when_the_server_is_back),
                IN_WORLD(a_dead_server_in_the_url_is_passed_over),
                IN_WORLD(a_hung_server_in_the_url_is_passed_over),
                IN_WORLD(a_name_that_does_not_resolve_is_passed_over),
                IN_WORLD(a_name_that_stops_resolving_is_not_needed_any_more),
                IN_WORLD(nobody_there_is_no_reason_not_to_open),
                IN_WORLD(another_password_reads_and_writes_nothing),
                IN_WORLD(a_loop_that_hangs_loses_its_session),
                IN_WORLD(no_descriptor_of_the_client_reaches_a_child),
                IN_WORLD(a_wiped_server_gets_a_new_session_and_new_nodes),
        };
        (void)setenv("QUIVER_COORD_DRIVER", "zookeeper", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
