/* What every driver with servers of its own promises beyond the contract: it comes through servers that are dead, hung
 * or wiped, and a loop that hangs. */
#include "outages.h"

#include <fcntl.h>
#include <unistd.h>

#include "place_servers.h"
#include "zookeepers.h"

const void *row_of(const struct world *w, const void *rows, size_t count, size_t size)
{
        for (size_t i = 0; i < count; i++) {
                const void *row = (const char *)rows + i * size;
                if (!strcmp(*(const char *const *)row, w->driver->name))
                        return row;
        }
        fail_msg("%s has no row here", w->driver->name);
        return NULL;
}

/* What the drivers differ in. */
struct outage_row {
        const char *driver;
        uint64_t asked_ms, granted_ms; /* of a session: the server has the last word */
        bool ends_the_old_first;       /* a new session begins with the old one's end */
};

static const struct outage_row rows[] = {
        { "etcd", 1200, 2000, true },
        { "zookeeper", 200, 2 * ZOOKEEPER_TICK_MS, false },
};

static const struct outage_row *row(const struct world *w)
{
        return row_of(w, rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]));
}

/* --- clients ----------------------------------------------------------------------------------------------------- */

struct client *join_for(struct world *w, const char *url, uint64_t session_ms)
{
        struct client *c;
        struct coord_options options = { .url = url, .session_ms = session_ms };
        assert_int_equal(client_connect(w, options, true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        return c;
}

struct client *join_at(struct world *w, const char *url)
{
        return join_for(w, url, 0);
}

const char *url_with(struct world *w, const char *hosts)
{
        struct coord_options options = { 0 };
        char url[256];
        w->driver->options(w->place, &options);
        int size = snprintf(url, sizeof(url), "%s://%s%s", place_servers()->kind->name, hosts,
                strchr(strstr(options.url, "//") + 2, '/'));
        return keep(w, url, (size_t)size);
}

const char *url_through(struct world *w, const char *host, const struct proxy *proxy)
{
        char hosts[64];
        (void)snprintf(hosts, sizeof(hosts), "%s:%u", host, proxy_port(proxy));
        return url_with(w, hosts);
}

const char *url_beside(struct world *w, uint16_t port, bool is_first)
{
        uint16_t real = place_servers()->servers[0].port;
        uint16_t first = is_first ? port : real, second = is_first ? real : port;
        char hosts[64];
        (void)snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", first, second);
        return url_with(w, hosts);
}

enum coord_state last_state(const struct client *c)
{
        return c->states_count ? c->states[c->states_count - 1] : COORD_CONNECTING;
}

struct proxy *server_proxy(void)
{
        return proxy_start(place_servers()->servers[0].port);
}

/* --- the promises ------------------------------------------------------------------------------------------------ */

void the_granted_time_is_the_servers(void **state)
{
        struct world *w = *state;
        struct coord_info info;
        struct client *c = join_for(w, NULL, row(w)->asked_ms);
        coord_info(c->coord, &info);
        assert_int_equal(info.session_ms, row(w)->granted_ms);
        assert_non_null(strstr(info.server, "127.0.0.1:"));
}

void a_server_that_hangs_ends_the_session_and_a_new_one_follows(void **state)
{
        struct world *w = *state;
        struct proxy *proxy = server_proxy();
        struct client *c = join_at(w, url_through(w, "127.0.0.1", proxy));
        uint64_t session = session_of(c);
        forget_heard(c);
        proxy_hold(proxy, true);
        WAIT_FOR(w, was_told(c, COORD_EXPIRED, session));
        assert_true(was_told(c, COORD_SUSPENDED, session));
        /* It is for the next session, which does not come in time; or it was sent, and its connection was given up. */
        int r = get(c, "mine", false, NULL, NULL);
        assert_true(r == -ETIMEDOUT || r == -ECONNRESET);
        proxy_hold(proxy, false);
        WAIT_FOR(w, c->looks);
        assert_true(session_of(c) != session);
        client_close(c);
        proxy_stop(proxy);
}

void what_an_outage_left_behind_goes_when_the_server_is_back(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        uint64_t session = session_of(c);
        assert_int_equal(create(c, "mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        forget_heard(c);
        ensemble_pause(place_servers(), 0);
        WAIT_FOR(w, was_told(c, COORD_EXPIRED, session));
        ensemble_resume(place_servers(), 0);
        WAIT_FOR(w, c->looks);
        if (row(w)->ends_the_old_first)
                assert_int_equal(get(c, "mine", false, NULL, NULL), -ENOENT);
        WAIT_FOR(w, get(c, "mine", false, NULL, NULL) == -ENOENT);
}

void a_dead_server_in_the_url_is_passed_over(void **state)
{
        struct world *w = *state;
        /* Port 1 refuses. */
        for (int i = 0; i < 6; i++)
                client_close(join_at(w, url_beside(w, 1, i % 2)));
}

void a_hung_server_in_the_url_is_passed_over(void **state)
{
        struct world *w = *state;
        struct proxy *hung = server_proxy();
        proxy_hold(hung, true);
        for (int i = 0; i < 6; i++)
                client_close(join_at(w, url_beside(w, proxy_port(hung), i % 2)));
        proxy_stop(hung);
}

void a_name_that_does_not_resolve_is_passed_over(void **state)
{
        struct world *w = *state;
        char hosts[64];
        (void)snprintf(hosts, sizeof(hosts), "no-such-host.invalid,127.0.0.1:%u", place_servers()->servers[0].port);
        (void)join_at(w, url_with(w, hosts));
}

void nobody_there_is_no_reason_not_to_open(void **state)
{
        struct world *w = *state;
        struct client *c;
        struct coord_options options = { .url = url_with(w, "127.0.0.1:1") };
        assert_int_equal(client_connect(w, options, true, &c, NULL), 0);
        assert_int_equal(get(c, "a", false, NULL, NULL), -ETIMEDOUT);
        assert_int_equal(c->states_count, 0);
}

void a_loop_that_hangs_loses_its_session(void **state)
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

static unsigned inherited(void)
{
        unsigned count = 0;
        for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
                int flags = fcntl(fd, F_GETFD);
                count += flags >= 0 && !(flags & FD_CLOEXEC);
        }
        return count;
}

void no_descriptor_of_the_client_reaches_a_child(void **state)
{
        unsigned before = inherited();
        (void)join(*state);
        assert_int_equal(inherited(), before);
}

void a_wiped_server_gets_a_new_session_and_new_nodes(void **state)
{
        struct world *w = *state;
        struct client *c = join(w);
        uint64_t session = session_of(c);
        for (int i = 0; i < 20; i++)
                assert_int_equal(create(c, "a/n", "", COORD_SEQUENTIAL, NULL, NULL), 0);
        forget_heard(c);
        ensemble_wipe(place_servers());
        WAIT_FOR(w, c->looks);
        assert_true(was_told(c, COORD_EXPIRED, session));
        assert_int_equal(get(c, "a", false, NULL, NULL), -ENOENT);
        assert_int_equal(create(c, "a/n", "", COORD_EPHEMERAL, NULL, NULL), 0);
}
