/* What the etcd driver promises beyond the contract of every driver: it comes through servers that are dead, hung,
 * wiped or no etcd at all, through lost answers, compaction and a loop that hangs. */
#include "etcds.h"
#include "harness.h"
#include "http_fake.h"
#include "outages.h"
#include "place_servers.h"

/* One watches a node, and is cut off behind its proxy when another sets it. */
static void change_unheard(struct client *watcher, struct client *other, struct proxy *proxy)
{
        assert_int_equal(get(watcher, "a", true, NULL, NULL), 0);
        forget_heard(watcher);
        proxy_hold(proxy, true);
        proxy_cut(proxy);
        WAIT_FOR(watcher->world, last_state(watcher) == COORD_SUSPENDED);
        assert_int_equal(set(other, "a", "x", COORD_ANY_VERSION, NULL), 0);
}

static void a_watch_survives_a_lost_connection(void **state)
{
        struct world *w = *state;
        struct proxy *proxy = server_proxy();
        struct client *a = join_for(w, url_through(w, "127.0.0.1", proxy), LONG_MS), *b = join_for(w, NULL, LONG_MS);
        uint64_t session = session_of(a);
        assert_int_equal(create(a, "a", "", 0, NULL, NULL), 0);
        for (int i = 0; i < 5; i++) {
                change_unheard(a, b, proxy);
                proxy_hold(proxy, false);
                WAIT_FOR(w, has_heard(a, "a"));
                assert_int_equal(a->looks, 0);
        }
        WAIT_FOR(w, last_state(a) == COORD_ALIVE);
        assert_int_equal(session_of(a), session);
        client_close(a);
        proxy_stop(proxy);
}

/* What was changed while nobody listened is not told any more: then everything is looked at. */
static void a_compacted_watch_is_a_look(void **state)
{
        struct world *w = *state;
        struct proxy *proxy = server_proxy();
        struct client *a = join_for(w, url_through(w, "127.0.0.1", proxy), LONG_MS), *b = join_for(w, NULL, LONG_MS);
        uint64_t session = session_of(a);
        struct coord_stat stat;
        char words[64];
        assert_int_equal(create(b, "a", "", 0, NULL, NULL), 0);
        change_unheard(a, b, proxy);
        assert_int_equal(create(b, "b", "", 0, NULL, &stat), 0);
        (void)snprintf(words, sizeof(words), "compact %llu", (unsigned long long)stat.created);
        (void)etcds_ctl(place_servers(), 0, words);
        proxy_hold(proxy, false);
        WAIT_FOR(w, a->looks || has_heard(a, "a"));
        assert_true(a->looks > 0);
        assert_int_equal(session_of(a), session);
        assert_int_equal(get(a, "a", true, NULL, NULL), 0);
        assert_int_equal(set(b, "a", "y", COORD_ANY_VERSION, NULL), 0);
        WAIT_FOR(w, has_heard(a, "a"));
        client_close(a);
        proxy_stop(proxy);
}

/* Executed, and the answer lost with its connection: that is said, and it is not sent a second time. */
static void a_write_that_was_lost_says_that_nobody_knows_and_happens_once(void **state)
{
        struct world *w = *state;
        struct proxy *proxy = server_proxy();
        struct client *c = join_for(w, url_through(w, "127.0.0.1", proxy), LONG_MS), *b = join_for(w, NULL, LONG_MS);
        struct pending p = { .create = { .request.done = pending_done, .path = "n/a-", .flags = COORD_SEQUENTIAL } };
        assert_int_equal(create(b, "n/a-", "", COORD_SEQUENTIAL, NULL, NULL), 0);
        assert_int_equal(get(c, "n", false, NULL, NULL), 0); /* its connection is one that is used again */
        struct pending set_it = { .set = { .request.done = pending_done, .path = "n", .version = 0 } };
        proxy_mute(proxy, true);
        coord_set(c->coord, &set_it.set);
        struct coord_stat stat;
        WAIT_FOR(w, get(b, "n", false, NULL, &stat) == 0 && stat.version == 1);
        proxy_cut(proxy);
        proxy_mute(proxy, false);
        WAIT_FOR(w, set_it.done);
        assert_int_equal(set_it.status, -ECONNRESET);
        assert_int_equal(get(b, "n", false, NULL, &stat), 0);
        assert_int_equal(stat.version, 1);
        coord_create(c->coord, &p.create);
        WAIT_FOR(w, p.done);
        assert_int_equal(p.status, 0);
        assert_string_equal(children(b, "n", false), "a-0000000000 a-0000000001");
        client_close(c);
        proxy_stop(proxy);
}

static void a_killed_server_keeps_the_session_if_it_is_back_in_time(void **state)
{
        struct world *w = *state;
        struct client *c = join_for(w, NULL, LONG_MS);
        uint64_t session = session_of(c);
        assert_int_equal(create(c, "mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        ensemble_kill(place_servers(), 0);
        WAIT_FOR(w, was_told(c, COORD_SUSPENDED, session));
        ensemble_restart(place_servers(), 0);
        WAIT_FOR(w, last_state(c) == COORD_ALIVE);
        assert_int_equal(session_of(c), session);
        assert_int_equal(get(c, "mine", false, NULL, NULL), 0);
}

#define VERSION        "{\"etcdserver\":\"3.4.23\",\"etcdcluster\":\"3.4.0\"}"
#define HEADER(number) "\"header\":{\"cluster_id\":\"" number "\",\"revision\":\"7\"}"

/* Whatever one server of the list says, the tree is served by the other. */
static void a_server_that_cannot_serve_is_passed_over(void **state)
{
        struct world *w = *state;
        static const struct http_fake_line worlds[][3] = {
                { { "/version", 200, VERSION },
                        { "", 503,
                                "{\"error\":\"etcdserver: no leader\",\"message\":\"etcdserver: no "
                                "leader\",\"code\":14}" } },
                { { "/version", 200, VERSION }, { "", 200, "{}" } },
                { { "/version", 200, VERSION }, { "", 200, "[1,2" } },
                { { "/version", 200, VERSION }, { "", 500, "<html>no</html>" } },
                { { "/version", 200, VERSION }, { "", 200, "{" HEADER("-1") ",\"ID\":\"77\",\"TTL\":\"1\"}" } },
                { { "/version", 200, VERSION }, { "", 200, "{" HEADER("") ",\"ID\":\"77\",\"TTL\":\"1\"}" } },
                { { "/version", 200, "{\"etcdserver\":7}" }, { "", 200, "{}" } },
                { { "", 200, "hello" } },
                { { "", 404, "{}" } },
                { { "", 200, "" } },
        };
        for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
                struct http_fake *fake = http_fake_start(worlds[i]);
                for (int first = 0; first < 2; first++) {
                        struct client *c = join_for(w, url_beside(w, http_fake_port(fake), first), 0);
                        assert_int_equal(create(c, "n", "", COORD_EPHEMERAL, NULL, NULL), 0);
                        client_close(c);
                }
                http_fake_stop(fake);
                w->clients_count = 0; /* each is closed */
        }
}

static void what_is_no_etcd_is_named(void **state)
{
        struct world *w = *state;
        struct error error;
        static const struct {
                struct http_fake_line lines[2];
                int status;
                const char *said;
        } cases[] = {
                { { { "/version", 200, "{\"etcdserver\":\"3.3.25\"}" }, { "", 404, "" } }, -ENOTSUP, "3.4 or newer" },
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct http_fake *fake = http_fake_start(cases[i].lines);
                char hosts[64];
                (void)snprintf(hosts, sizeof(hosts), "127.0.0.1:%u", http_fake_port(fake));
                struct coord_options options = { .url = url_with(w, hosts) };
                assert_int_equal(client_connect(w, options, true, NULL, &error), cases[i].status);
                assert_non_null(strstr(error.text, cases[i].said));
                assert_non_null(strstr(error.text, hosts));
                http_fake_stop(fake);
        }
}

/* One that answers for another cluster knows nothing of our lease: it is not believed. */
static void a_server_of_another_cluster_is_not_believed(void **state)
{
        struct world *w = *state;
        static const struct http_fake_line other[] = {
                { "/version", 200, VERSION },
                { "/v3/lease/keepalive", 200, "{\"result\":{" HEADER("4711") ",\"ID\":\"1\"}}" },
                { "", 200, "{" HEADER("4711") "}" },
        };
        struct http_fake *fake = http_fake_start(other);
        struct proxy *proxy = server_proxy();
        char hosts[64];
        (void)snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", proxy_port(proxy), http_fake_port(fake));
        struct client *c = join_for(w, url_with(w, hosts), LONG_MS);
        WAIT_FOR(w, create(c, "n", "x", 0, NULL, NULL) == 0);
        uint64_t session = session_of(c);
        for (int i = 0; i < 5; i++) {
                unsigned asked = http_fake_asked(fake);
                const char *data = "";
                WAIT_FOR(w, (proxy_cut(proxy), http_fake_asked(fake) > asked));
                assert_int_equal(get(c, "n", false, &data, NULL), 0);
                assert_string_equal(data, "x");
        }
        assert_int_equal(session_of(c), session);
        assert_false(was_told(c, COORD_EXPIRED, session));
        client_close(c);
        proxy_stop(proxy);
        http_fake_stop(fake);
}

static void a_session_whose_key_was_deleted_changes_nothing(void **state)
{
        struct world *w = *state;
        struct client *a = join_for(w, NULL, LONG_MS), *b = join(w);
        uint64_t session = session_of(a);
        struct coord_options options = { 0 };
        char words[256];
        const char *data;
        assert_int_equal(create(b, "n", "old", 0, NULL, NULL), 0);
        w->driver->options(w->place, &options);
        (void)snprintf(words, sizeof(words), "del %s/test/session/%016llx", strchr(strstr(options.url, "//") + 2, '/'),
                (unsigned long long)session);
        (void)etcds_ctl(place_servers(), 0, words);
        assert_int_equal(set(a, "n", "new", COORD_ANY_VERSION, NULL), -EOWNERDEAD);
        assert_int_equal(get(b, "n", false, &data, NULL), 0);
        assert_string_equal(data, "old");
        WAIT_FOR(w, last_state(a) == COORD_ALIVE && session_of(a) != session);
}

static void whoever_does_not_know_its_nonce_ends_no_session(void **state)
{
        struct world *w = *state;
        struct client *c = join_for(w, NULL, LONG_MS);
        char token[COORD_TOKEN_MAX];
        assert_int_equal(create(c, "mine", "", COORD_EPHEMERAL, NULL, NULL), 0);
        coord_token(c->coord, token);
        char *last = &token[strlen(token) - 1];
        *last = *last == '0' ? '1' : '0';
        assert_int_equal(end_session(w, token), -EACCES);
        assert_int_equal(get(c, "mine", false, NULL, NULL), 0);
}

/* Even if the wiped one is back before the session's time has run out. */
static void a_wiped_server_is_noticed_by_a_long_session(void **state)
{
        struct world *w = *state;
        struct client *c = join_for(w, NULL, LONG_MS);
        uint64_t session = session_of(c);
        assert_int_equal(create(c, "a", "", COORD_EPHEMERAL, NULL, NULL), 0);
        forget_heard(c);
        ensemble_wipe(place_servers());
        WAIT_FOR(w, c->looks);
        assert_true(was_told(c, COORD_EXPIRED, session));
        assert_int_equal(create(c, "a", "", COORD_EPHEMERAL, NULL, NULL), 0);
}

/* --- what others write there --- */

static void put(struct world *w, const char *key, const char *value)
{
        struct coord_options options = { 0 };
        char words[512];
        w->driver->options(w->place, &options);
        (void)snprintf(words, sizeof(words), "put -- '%s/test/%s' '%s'", strchr(strstr(options.url, "//") + 2, '/'),
                key, value);
        (void)etcds_ctl(place_servers(), 0, words);
}

static void a_sequence_that_is_no_number_goes_on_above_those_who_wait(void **state)
{
        struct world *w = *state;
        struct client *c = join_for(w, NULL, LONG_MS);
        static const char *const no_numbers[] = { "nan", "-1", "1e3", "0x10", "1.5", "", "abc", "99999999999", "0" };
        const char *made = NULL;
        unsigned flags = COORD_EPHEMERAL | COORD_SEQUENTIAL;
        assert_int_equal(create(c, "line/a-", "", flags, NULL, NULL), 0);
        for (size_t i = 0; i < sizeof(no_numbers) / sizeof(no_numbers[0]); i++) {
                char want[32];
                put(w, "sequence/line", no_numbers[i]);
                assert_int_equal(create(c, "line/a-", "", flags, &made, NULL), 0);
                (void)snprintf(want, sizeof(want), "line/a-%010zu", i + 1);
                assert_string_equal(made, want);
        }
}

static void a_sequence_without_a_number_left_is_refused(void **state)
{
        struct world *w = *state;
        struct client *c = join_for(w, NULL, LONG_MS);
        assert_int_equal(create(c, "line/x-9999999999", "", COORD_EPHEMERAL, NULL, NULL), 0);
        put(w, "sequence/line", "10000000000");
        assert_int_equal(create(c, "line/a-", "", COORD_EPHEMERAL | COORD_SEQUENTIAL, NULL, NULL), -EBADMSG);
        assert_int_equal(del(c, "line/x-9999999999", COORD_ANY_VERSION), 0);
        assert_int_equal(create(c, "line/a-", "", COORD_EPHEMERAL | COORD_SEQUENTIAL, NULL, NULL), 0);
}

static void names_that_are_none_are_left_out(void **state)
{
        struct world *w = *state;
        struct client *c = join_for(w, NULL, LONG_MS);
        static const char *const odd[] = { "", "a/b", "..", "a b", "\xc3\xa4", "x*" };
        assert_int_equal(create(c, "members/x", "", COORD_EPHEMERAL, NULL, NULL), 0);
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
                char key[64];
                (void)snprintf(key, sizeof(key), "node/2/members/%s", odd[i]);
                put(w, key, "");
        }
        assert_string_equal(children(c, "members", true), "x");
        assert_int_equal(del(c, "members/x", COORD_ANY_VERSION), 0);
        WAIT_FOR(w, has_heard(c, "members"));
        assert_string_equal(children(c, "members", false), "");
}

static void too_large_a_value_is_refused_watched_and_mended(void **state)
{
        struct world *w = *state;
        struct client *c = join_for(w, NULL, LONG_MS);
        struct coord_options options = { 0 };
        char words[256];
        w->driver->options(w->place, &options);
        assert_int_equal(create(c, "n", "", 0, NULL, NULL), 0);
        char shell[512];
        (void)snprintf(shell, sizeof(shell), "put '%s/test/node/1/n' < %s/large",
                strchr(strstr(options.url, "//") + 2, '/'), place_servers()->folder);
        (void)snprintf(
                words, sizeof(words), "head -c 600000 /dev/zero | tr '\\0' x > %s/large", place_servers()->folder);
        assert_int_equal(system(words), 0);
        (void)etcds_ctl(place_servers(), 0, shell);
        forget_heard(c);
        assert_int_equal(get(c, "n", true, NULL, NULL), -EBADMSG);
        assert_int_equal(set(c, "n", "new", 0, NULL), -ESTALE);
        assert_int_equal(set(c, "n", "new", COORD_ANY_VERSION, NULL), 0);
        WAIT_FOR(w, has_heard(c, "n"));
        assert_int_equal(get(c, "n", false, NULL, NULL), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_WORLD(a_watch_survives_a_lost_connection),
                IN_WORLD(a_compacted_watch_is_a_look),
                IN_WORLD(a_write_that_was_lost_says_that_nobody_knows_and_happens_once),
                IN_WORLD(a_killed_server_keeps_the_session_if_it_is_back_in_time),
                IN_WORLD(a_server_that_cannot_serve_is_passed_over),
                IN_WORLD(what_is_no_etcd_is_named),
                IN_WORLD(a_server_of_another_cluster_is_not_believed),
                IN_WORLD(a_session_whose_key_was_deleted_changes_nothing),
                IN_WORLD(whoever_does_not_know_its_nonce_ends_no_session),
                IN_WORLD(a_sequence_that_is_no_number_goes_on_above_those_who_wait),
                IN_WORLD(a_sequence_without_a_number_left_is_refused),
                IN_WORLD(names_that_are_none_are_left_out),
                IN_WORLD(too_large_a_value_is_refused_watched_and_mended),
                IN_WORLD(a_wiped_server_is_noticed_by_a_long_session),
                OUTAGE_TESTS,
        };
        (void)setenv("QUIVER_COORD_DRIVER", "etcd", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
