/* What the ZooKeeper driver promises beyond the contract of every driver: it comes through servers that are dead, hung
 * or wiped, names that stop resolving, a wrong password and a loop that hangs. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>

#include "harness.h"
#include "outages.h"

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

static struct client *join_as(struct world *w, const char *password)
{
        struct client *c;
        struct coord_options options = { .user = "fleet", .password = password };
        w->driver->options(w->place, &options);
        assert_int_equal(client_connect(w, options, true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        return c;
}

/* --- the promises ------------------------------------------------------------------------------------------------ */

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(a_watch_survives_a_lost_connection),
                IN_WORLD(a_write_that_was_lost_says_that_nobody_knows),
                IN_WORLD(a_name_that_stops_resolving_is_not_needed_any_more),
                IN_WORLD(another_password_reads_and_writes_nothing),
                OUTAGE_TESTS,
        };
        (void)setenv("QUIVER_COORD_DRIVER", "zookeeper", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
