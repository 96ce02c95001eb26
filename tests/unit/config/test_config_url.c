/* URLs of stores and coordination: each form with its parts, and every other one refused with a hint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/url.h"

struct expected {
        const char *text;
        enum url_kind kind;
        const char *path;
        const char *hosts; /* "NAME PORT;…" */
        const char *master;
        uint32_t database;
        bool is_tls;
        const char *shown; /* NULL: as it was written */
};

static void check(const struct expected *e, enum url_use use)
{
        struct url url;
        struct error error = { "" };
        char hosts[256] = "";
        if (url_parse(e->text, use, "/srv/etc", &url, &error))
                fail_msg("%s: %s", e->text, error.text);
        for (size_t i = 0; i < url.hosts_count; i++)
                (void)snprintf(hosts + strlen(hosts), sizeof(hosts) - strlen(hosts), "%s %u;", url.hosts[i].name,
                        url.hosts[i].port);
        assert_int_equal(url.kind, e->kind);
        assert_string_equal(url.path ? url.path : "", e->path ? e->path : "");
        assert_string_equal(hosts, e->hosts ? e->hosts : "");
        assert_string_equal(url.master ? url.master : "", e->master ? e->master : "");
        assert_int_equal(url.database, e->database);
        assert_int_equal(url.is_tls, e->is_tls);
        assert_int_equal(url_is_redis_tls(e->text), url_is_redis(&url) && e->is_tls);
        assert_string_equal(url.text, e->shown ? e->shown : e->text);
        url_free(&url);
}

static void every_store_url_has_its_parts(void **state)
{
        static const struct expected cases[] = {
                { "sqlite:q.db", URL_SQLITE, "/srv/etc/q.db", .shown = "sqlite:/srv/etc/q.db" },
                { "sqlite:../var/q.db", URL_SQLITE, "/srv/var/q.db", .shown = "sqlite:/srv/var/q.db" },
                { "sqlite:./../../../q", URL_SQLITE, "/q", .shown = "sqlite:/q" },
                { "sqlite:/a/../q.db", URL_SQLITE, .path = "/a/../q.db" },
                { "redis://h", URL_REDIS, .hosts = "h 6379;" },
                { "redis://h:1234/5", URL_REDIS, .hosts = "h 1234;", .database = 5 },
                { "redis://[::1]:1234/", URL_REDIS, .hosts = "::1 1234;" },
                { "redis://[fe80::1]", URL_REDIS, .hosts = "fe80::1 6379;" },
                { "redis+unix:/run/r.sock", URL_REDIS_UNIX, .path = "/run/r.sock" },
                { "redis+unix:r.sock?db=3", URL_REDIS_UNIX, "/srv/etc/r.sock", .database = 3,
                        .shown = "redis+unix:/srv/etc/r.sock?db=3" },
                { "redis+sentinel://a,b:1,c/mymaster", URL_REDIS_SENTINEL, .hosts = "a 26379;b 1;c 26379;",
                        .master = "mymaster" },
                { "redis+sentinel://a/m/2", URL_REDIS_SENTINEL, .hosts = "a 26379;", .master = "m", .database = 2 },
                { "redis+cluster://a,b", URL_REDIS_CLUSTER, .hosts = "a 6379;b 6379;" },
                { "rediss://h/5", URL_REDIS, .hosts = "h 6379;", .database = 5, .is_tls = true },
                { "rediss+sentinel://a/m", URL_REDIS_SENTINEL, .hosts = "a 26379;", .master = "m", .is_tls = true },
                { "rediss+cluster://a,b:1", URL_REDIS_CLUSTER, .hosts = "a 6379;b 1;", .is_tls = true },
        };
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                check(&cases[i], URL_FOR_STORE);
}

static void every_coordination_url_has_its_parts(void **state)
{
        static const struct expected cases[] = {
                { "local:../var", URL_LOCAL, "/srv/var", .shown = "local:/srv/var" },
                { "local:.", URL_LOCAL, "/srv/etc", .shown = "local:/srv/etc" },
                { "zookeeper://a,b,c/quiver/x", URL_ZOOKEEPER, "/quiver/x", .hosts = "a 2181;b 2181;c 2181;" },
                { "zookeeper://a:1", URL_ZOOKEEPER, "/quiver", .hosts = "a 1;" },
                { "etcd://a,b,c/quiver/x", URL_ETCD, "/quiver/x", .hosts = "a 2379;b 2379;c 2379;" },
                { "etcd://[::1]:1", URL_ETCD, "/quiver", .hosts = "::1 1;" },
                { "etcd+tls://a", URL_ETCD_TLS, "/quiver", .hosts = "a 2379;", .is_tls = true },
                { "rediss://h:1", URL_REDIS, .hosts = "h 1;", .is_tls = true },
                { "rediss+cluster://a", URL_REDIS_CLUSTER, .hosts = "a 6379;", .is_tls = true },
                { "redis", URL_STORE_REDIS, .path = NULL },
                { "redis://h", URL_REDIS, .hosts = "h 6379;" },
                { "redis+cluster://a,b", URL_REDIS_CLUSTER, .hosts = "a 6379;b 6379;" },
        };
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                check(&cases[i], URL_FOR_COORDINATION);
}

static void any_other_url_is_refused_with_a_hint(void **state)
{
        static const struct {
                enum url_use use;
                const char *text;
                const char *said;
        } cases[] = {
                { URL_FOR_STORE, "", "write sqlite:FILE" },
                { URL_FOR_STORE, "sqlite", "write sqlite:FILE" },
                { URL_FOR_STORE, "sqlite:", "the path is missing" },
                { URL_FOR_STORE, "sqlite:///q.db", "without //" },
                { URL_FOR_STORE, "sqllite:q.db", "did you mean \"sqlite\"?" },
                { URL_FOR_STORE, "rediss:h", "// is missing" },
                { URL_FOR_STORE, "rediss://a,b", "several are rediss+sentinel:// or rediss+cluster://" },
                { URL_FOR_STORE, "rediss://:pass@h", "password_file or password_env" },
                { URL_FOR_STORE, "rediss+unix:/run/r.sock", "a unix socket needs no TLS" },
                { URL_FOR_STORE, "redisss://h", "did you mean \"rediss\"?" },
                { URL_FOR_STORE, "postgres://h/db", "write sqlite:FILE" },
                { URL_FOR_STORE, "local:x", "write sqlite:FILE" },
                { URL_FOR_STORE, "redis:h", "// is missing" },
                { URL_FOR_STORE, "redis://", "is not a host" },
                { URL_FOR_STORE, "redis://a,b", "takes one host" },
                { URL_FOR_STORE, "redis://h:0", "is not a port" },
                { URL_FOR_STORE, "redis://h:65536", "is not a port" },
                { URL_FOR_STORE, "redis://::1", "stands in [ ]" },
                { URL_FOR_STORE, "redis://[::1", "is not [ADDRESS]:PORT" },
                { URL_FOR_STORE, "redis://[::1]x", "is not [ADDRESS]:PORT" },
                { URL_FOR_STORE, "redis://h/x", "is not a Redis database" },
                { URL_FOR_STORE, "redis://h/99999999999", "is not a Redis database" },
                { URL_FOR_STORE, "redis+unix:/s?x=1", "only ?db=DATABASE" },
                { URL_FOR_STORE, "redis+sentinel://a,b", "the master's name is missing" },
                { URL_FOR_STORE, "redis+sentinel://a,,b/m", "is not a host" },
                { URL_FOR_STORE, "redis+cluster://a/0", "has no databases" },
                { URL_FOR_STORE, "redis://user@h", "a URL holds no user or password" },
                { URL_FOR_STORE, "redis://:pass/word@h", "password_file or password_env" },
                { URL_FOR_COORDINATION, "redis:h", "// is missing" },
                { URL_FOR_COORDINATION, "zookeper://h", "did you mean \"zookeeper\"?" },
                { URL_FOR_COORDINATION, "zookeeper://h/", NULL },
                { URL_FOR_COORDINATION, "zookeeper://h/a/", "is not a ZooKeeper path" },
                { URL_FOR_COORDINATION, "zookeeper://h//a", "is not a ZooKeeper path" },
                { URL_FOR_COORDINATION, "zookeeper://h/a/../b", "is not a ZooKeeper path" },
                { URL_FOR_COORDINATION, "etcd://h/a/../b", "is not an etcd path" },
                { URL_FOR_COORDINATION, "etcd://u:p@h", "password_file or password_env" },
                { URL_FOR_COORDINATION, "etcds://h", "etcd+tls://" },
                { URL_FOR_STORE, "etcd://h", "write sqlite:FILE" },
                { URL_FOR_COORDINATION, "sqlite:x", "write local:FOLDER" },
        };
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct url url = { 0 };
                struct error error = { "" };
                int r = url_parse(cases[i].text, cases[i].use, "/srv", &url, &error);
                if ((r != 0) != (cases[i].said != NULL) || (r && !strstr(error.text, cases[i].said)))
                        fail_msg("%s: %d %s", cases[i].text, r, error.text);
                assert_null(strstr(error.text, "pass/word"));
                url_free(&url);
        }
}

static void the_number_of_hosts_is_bounded(void **state)
{
        char text[1024] = "redis+cluster://h";
        struct url url = { 0 };
        struct error error;
        (void)state;
        for (int i = 0; i < URL_HOSTS_MAX; i++)
                (void)strcat(text, ",h");
        assert_int_not_equal(url_parse(text, URL_FOR_STORE, "/", &url, &error), 0);
        assert_non_null(strstr(error.text, "more than 64 hosts"));
}

/* The order, a default port and the case of a name do not matter; one server in common does. */
static void a_coordination_is_the_same_by_its_servers(void **state)
{
        (void)state;
        static const struct {
                const char *a, *b;
                bool is_same;
        } rows[] = {
                { "zookeeper://a,b,c", "zookeeper://c:2181,B,a/quiver", true },
                { "zookeeper://a,b,c", "zookeeper://a,b,c,d", true },
                { "zookeeper://a,b,c", "zookeeper://c", true },
                { "zookeeper://a,b,c", "zookeeper://d", false },
                { "zookeeper://a", "zookeeper://a:2182", false },
                { "zookeeper://a/x", "zookeeper://a/y", false },
                { "zookeeper://[::1]:2181", "zookeeper://[::1]", true },
                { "zookeeper://a", "redis://a:2181", false },
                { "etcd://a,b,c", "etcd://d,C/quiver", true },
                { "etcd://a,b", "etcd+tls://b,a", true },
                { "etcd://a/x", "etcd://a/y", false },
                { "etcd://a:2181", "zookeeper://a", false },
                { "redis", "redis", true },
                { "redis", "redis://a", false },
                { "redis://a", "redis://a:6379/0", true },
                { "redis://a", "redis://a/1", false },
                { "redis://a:6379", "rediss://a:6380", true },
                { "redis://a:6379", "rediss://b:6379", false },
                { "rediss://a:6379", "rediss://a:6380", false },
                { "redis+cluster://a,b", "rediss+cluster://c,b:7", true },
                { "redis://a", "rediss+cluster://a", false },
                { "redis+sentinel://a,b/m", "redis+sentinel://b,c/m", true },
                { "redis+sentinel://a,b/m", "redis+sentinel://a,b/n", false },
                { "local:/x", "local:/x", true },
                { "local:/x", "local:/y", false },
                { "local:/x?machine=a&id=1", "local:/x?machine=b&id=1", true },
                { "local:/x?machine=a&id=1", "local:/y?machine=a&id=1", true },
                { "local:/x?machine=a&id=1", "local:/x?machine=a&id=2", true },
                { "local:/x?machine=a", "local:/x?machine=a&id=2", true },
                { "local:/x?machine=a&id=1", "local:/x?machine=b&id=2", false },
                { "local:/x?machine=a&id=1", "local:/x?machine=b", false },
                { "what a Quiver to come wrote", "what a Quiver to come wrote", true },
                { "what a Quiver to come wrote", "zookeeper://a", false },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (url_is_same_coordination(rows[i].a, rows[i].b) != rows[i].is_same ||
                        url_is_same_coordination(rows[i].b, rows[i].a) != rows[i].is_same)
                        fail_msg("%s and %s", rows[i].a, rows[i].b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_store_url_has_its_parts),
                cmocka_unit_test(every_coordination_url_has_its_parts),
                cmocka_unit_test(any_other_url_is_refused_with_a_hint),
                cmocka_unit_test(the_number_of_hosts_is_bounded),
                cmocka_unit_test(a_coordination_is_the_same_by_its_servers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
