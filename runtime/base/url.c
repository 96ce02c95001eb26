#include "base/url.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file/file.h"
#include "base/numbers.h"
#include "base/strings.h"

/* What follows the scheme of a URL. */
enum form { FORM_PATH, FORM_HOSTS, FORM_WORD };

struct scheme {
        const char *name; /* the scheme, without the ":" or "://" that the form begins with */
        enum url_kind kind;
        enum url_use use;
        enum form form;
        uint16_t port; /* the default port */
        bool is_one_host, is_tls;
};

static const struct scheme schemes[] = {
        { "sqlite", URL_SQLITE, URL_FOR_STORE, FORM_PATH, 0, false, false },
        { "redis", URL_REDIS, URL_FOR_STORE, FORM_HOSTS, 6379, true, false },
        { "redis+unix", URL_REDIS_UNIX, URL_FOR_STORE, FORM_PATH, 0, false, false },
        { "redis+sentinel", URL_REDIS_SENTINEL, URL_FOR_STORE, FORM_HOSTS, 26379, false, false },
        { "redis+cluster", URL_REDIS_CLUSTER, URL_FOR_STORE, FORM_HOSTS, 6379, false, false },
        { "rediss", URL_REDIS, URL_FOR_STORE, FORM_HOSTS, 6379, true, true },
        { "rediss+sentinel", URL_REDIS_SENTINEL, URL_FOR_STORE, FORM_HOSTS, 26379, false, true },
        { "rediss+cluster", URL_REDIS_CLUSTER, URL_FOR_STORE, FORM_HOSTS, 6379, false, true },
        { "local", URL_LOCAL, URL_FOR_COORDINATION, FORM_PATH, 0, false, false },
        { "zookeeper", URL_ZOOKEEPER, URL_FOR_COORDINATION, FORM_HOSTS, 2181, false, false },
        { "etcd", URL_ETCD, URL_FOR_COORDINATION, FORM_HOSTS, 2379, false, false },
        { "etcd+tls", URL_ETCD_TLS, URL_FOR_COORDINATION, FORM_HOSTS, 2379, false, true },
        { "redis", URL_STORE_REDIS, URL_FOR_COORDINATION, FORM_WORD, 0, false, false },
        { "redis", URL_REDIS, URL_FOR_COORDINATION, FORM_HOSTS, 6379, true, false },
        { "redis+unix", URL_REDIS_UNIX, URL_FOR_COORDINATION, FORM_PATH, 0, false, false },
        { "redis+sentinel", URL_REDIS_SENTINEL, URL_FOR_COORDINATION, FORM_HOSTS, 26379, false, false },
        { "redis+cluster", URL_REDIS_CLUSTER, URL_FOR_COORDINATION, FORM_HOSTS, 6379, false, false },
        { "rediss", URL_REDIS, URL_FOR_COORDINATION, FORM_HOSTS, 6379, true, true },
        { "rediss+sentinel", URL_REDIS_SENTINEL, URL_FOR_COORDINATION, FORM_HOSTS, 26379, false, true },
        { "rediss+cluster", URL_REDIS_CLUSTER, URL_FOR_COORDINATION, FORM_HOSTS, 6379, false, true },
};

#define SCHEMES (sizeof(schemes) / sizeof(schemes[0]))

static const char *const examples[] = {
        [URL_FOR_STORE] =
                "sqlite:FILE, redis://HOST:PORT/DATABASE, redis+unix:SOCKET, redis+sentinel://H1,H2,H3/MASTER "
                "or redis+cluster://H1,H2,H3; rediss for TLS",
        [URL_FOR_COORDINATION] =
                "local:FOLDER, zookeeper://H1,H2,H3/CHROOT, etcd://H1,H2,H3/ROOT (or etcd+tls:), redis, "
                "or a redis URL as for a store",
};

static int unknown_scheme(const char *text, size_t size, enum url_use use, struct error *error)
{
        const char *known[SCHEMES];
        size_t count = 0;
        char *name = text_copy_part(text, min_u64(size, 40));
        for (size_t i = 0; i < SCHEMES; i++)
                if (schemes[i].use == use)
                        known[count++] = schemes[i].name;
        const char *nearest = error_nearest(name, known, count);
        if (!strcmp(name, "rediss+unix"))
                (void)error_set(error, 0, "rediss+unix: a unix socket needs no TLS; write redis+unix:SOCKET");
        else if (!strcmp(name, "etcds"))
                (void)error_set(error, 0, "no such URL scheme: \"etcds\"; etcd with TLS is etcd+tls://H1,H2,H3/ROOT");
        else if (nearest && strcmp(nearest, name) != 0)
                (void)error_set(error, 0, "no such URL scheme: \"%s\"; did you mean \"%s\"?", name, nearest);
        else
                (void)error_set(error, 0, "write %s", examples[use]);
        free(name);
        return -EINVAL;
}

static const struct scheme *find_scheme(const char *text, size_t size, enum url_use use)
{
        for (size_t i = 0; i < SCHEMES; i++)
                if (schemes[i].use == use && strlen(schemes[i].name) == size && !strncmp(schemes[i].name, text, size) &&
                        (schemes[i].form == FORM_WORD) == !text[size])
                        return &schemes[i];
        return NULL;
}

/* Reads `text`, all of it, as a decimal number of at most `most`. */
static bool parse_decimal(const char *text, long most, long *ret)
{
        size_t size = strlen(text);
        if (size < 1 || size > 9 || strspn(text, "0123456789") != size || strtol(text, NULL, 10) > most)
                return false;
        *ret = strtol(text, NULL, 10);
        return true;
}

static int parse_database(struct url *url, const char *text, struct error *error)
{
        long database = 0;
        if (!parse_decimal(text, 65535, &database))
                return error_set(error, -EINVAL, "\"%.40s\" is not a Redis database number", text);
        url->database = (uint32_t)database;
        return 0;
}

static int parse_path(struct url *url, const char *rest, const char *folder, struct error *error)
{
        const char *query = url->kind == URL_REDIS_UNIX ? strchr(rest, '?') : NULL;
        size_t size = query ? (size_t)(query - rest) : strlen(rest);
        if (!strncmp(rest, "//", 2))
                return error_set(error, -EINVAL, "a path follows the colon at once: \"sqlite:/FILE\", without //");
        if (!size)
                return error_set(error, -EINVAL, "the path is missing");
        if (query && strncmp(query, "?db=", 4) != 0)
                return error_set(error, -EINVAL, "only ?db=DATABASE may follow the path");
        char *path = text_copy_part(rest, size);
        url->path = file_resolve(folder, path);
        free(path);
        return query ? parse_database(url, query + 4, error) : 0;
}

/* NAME, NAME:PORT, [ADDRESS] or [ADDRESS]:PORT */
static int parse_host(struct url *url, char *text, uint16_t port, struct error *error)
{
        long number = port;
        char *name = text;
        char *end = strchr(text, ':');
        if (*text == '[') {
                name = text + 1;
                char *bracket = strchr(name, ']');
                if (!bracket || (bracket[1] && bracket[1] != ':'))
                        return error_set(error, -EINVAL, "\"%.80s\" is not [ADDRESS]:PORT", text);
                end = bracket[1] ? bracket + 1 : NULL;
                *bracket = 0;
        }
        if (end) {
                *end = 0;
                if (!parse_decimal(end + 1, 65535, &number) || !number)
                        return error_set(
                                error, -EINVAL, "\"%.20s\" is not a port; an IPv6 address stands in [ ]", end + 1);
        }
        if (!*name || strcspn(name, " \t[]?#%\"'\\") != strlen(name))
                return error_set(error, -EINVAL, "\"%.80s\" is not a host", name);
        if (url->hosts_count == URL_HOSTS_MAX)
                return error_set(error, -EINVAL, "more than %d hosts", URL_HOSTS_MAX);
        url->hosts = array_grow(url->hosts, url->hosts_count, sizeof(*url->hosts));
        url->hosts[url->hosts_count++] = (struct url_host){ .name = text_copy(name), .port = (uint16_t)number };
        return 0;
}

static int parse_hosts(struct url *url, char *list, const struct scheme *scheme, struct error *error)
{
        char *at = list;
        for (char *next = at; next; at = next) {
                next = strchr(at, ',');
                if (next)
                        *next++ = 0;
                int r = parse_host(url, at, scheme->port, error);
                if (r)
                        return r;
        }
        if (scheme->is_one_host && url->hosts_count > 1)
                return error_set(error, -EINVAL, "%s:// takes one host; several are %s+sentinel:// or %s+cluster://",
                        scheme->name, scheme->name, scheme->name);
        return 0;
}

/* For ZooKeeper and etcd. */
static int parse_chroot(struct url *url, const char *tail, struct error *error)
{
        size_t size = tail ? strlen(tail) : 0;
        if (!size) {
                url->path = text_copy("/quiver");
                return 0;
        }
        if (tail[0] == '/' || tail[0] == '.' || tail[size - 1] == '/' || strstr(tail, "//") || strstr(tail, "/.") ||
                strcspn(tail, " \t?#") != size)
                return error_set(error, -EINVAL, "\"/%.80s\" is not %s path", tail,
                        url->kind == URL_ZOOKEEPER ? "a ZooKeeper" : "an etcd");
        url->path = text_printf("/%s", tail);
        return 0;
}

static int parse_master(struct url *url, char *tail, struct error *error)
{
        char *slash = tail ? strchr(tail, '/') : NULL;
        if (slash)
                *slash = 0;
        if (!tail || !*tail || strcspn(tail, " \t?#") != strlen(tail))
                return error_set(error, -EINVAL, "the master's name is missing: redis+sentinel://H1,H2,H3/MASTER");
        url->master = text_copy(tail);
        return slash ? parse_database(url, slash + 1, error) : 0;
}

/* Parses what follows the hosts; `tail` begins after the slash and is NULL if there is none. */
static int parse_tail(struct url *url, char *tail, struct error *error)
{
        if (url->kind == URL_ZOOKEEPER || url->kind == URL_ETCD || url->kind == URL_ETCD_TLS)
                return parse_chroot(url, tail, error);
        if (url->kind == URL_REDIS_SENTINEL)
                return parse_master(url, tail, error);
        if (!tail || !*tail)
                return 0;
        if (url->kind == URL_REDIS_CLUSTER)
                return error_set(error, -EINVAL, "a Redis Cluster has no databases: nothing may follow the hosts");
        return parse_database(url, tail, error);
}

static int parse_authority(struct url *url, char *rest, const struct scheme *scheme, struct error *error)
{
        /* The whole rest is searched, not only the host part: a password may hold a slash. */
        if (strchr(rest, '@'))
                return error_set(error, -EINVAL,
                        "a URL holds no user or password; write user = \"…\" and password_file or password_env beside "
                        "it");
        char *tail = strchr(rest, '/');
        if (tail)
                *tail++ = 0;
        int r = parse_hosts(url, rest, scheme, error);
        return r ? r : parse_tail(url, tail, error);
}

static int parse_scheme(
        struct url *url, const struct scheme *scheme, const char *text, const char *folder, struct error *error)
{
        const char *rest = text + strlen(scheme->name);
        url->kind = scheme->kind;
        url->is_tls = scheme->is_tls;
        if (scheme->form == FORM_PATH) {
                int r = parse_path(url, rest + 1, folder, error);
                if (!r)
                        url->text = text_printf("%s:%s%s", scheme->name, url->path,
                                strchr(rest, '?') && scheme->kind == URL_REDIS_UNIX ? strchr(rest, '?') : "");
                return r;
        }
        url->text = text_copy(text);
        if (scheme->form == FORM_WORD)
                return 0;
        if (strncmp(rest, "://", 3) != 0)
                return error_set(error, -EINVAL, "// is missing after %s:", scheme->name);
        char *copy = text_copy(rest + 3);
        int r = parse_authority(url, copy, scheme, error);
        free(copy);
        return r;
}

int url_parse(const char *text, enum url_use use, const char *folder, struct url *ret_url, struct error *error)
{
        struct url url = { 0 };
        size_t size = strcspn(text, ":");
        const struct scheme *scheme = find_scheme(text, size, use);
        if (!scheme)
                return unknown_scheme(text, size, use, error);
        int r = parse_scheme(&url, scheme, text, folder, error);
        if (r)
                url_free(&url);
        else
                *ret_url = url;
        return r;
}

static bool is_same_text(const char *a, const char *b)
{
        return a == b || (a && b && !strcmp(a, b));
}

/* A Redis server has another port for TLS, so with and without TLS the ports may differ. */
static bool has_common_host(const struct url *a, const struct url *b)
{
        bool has_other_port = url_is_redis(a) && a->is_tls != b->is_tls;
        for (size_t i = 0; i < a->hosts_count; i++)
                for (size_t j = 0; j < b->hosts_count; j++)
                        if ((has_other_port || a->hosts[i].port == b->hosts[j].port) &&
                                !strcasecmp(a->hosts[i].name, b->hosts[j].name))
                                return true;
        return !a->hosts_count && !b->hosts_count;
}

/* "local:PATH?machine=NAME&id=ID": one place if the id is the same, or path and machine are. */
static bool is_same_folder(const char *a, const char *b)
{
        static const char mark[] = "&id=";
        assert(a && b); /* A URL of the form local:PATH is only parsed with a path. */
        const char *a_id = strstr(a, mark), *b_id = strstr(b, mark);
        size_t a_size = a_id ? (size_t)(a_id - a) : strlen(a), b_size = b_id ? (size_t)(b_id - b) : strlen(b);
        return (a_id && b_id && !strcmp(a_id, b_id)) || (a_size == b_size && !memcmp(a, b, a_size));
}

/* A cluster is the same one with TLS and without. */
static enum url_kind service_of(const struct url *url)
{
        return url->kind == URL_ETCD_TLS ? URL_ETCD : url->kind;
}

bool url_is_same_coordination(const char *text, const char *other)
{
        struct url a = { 0 }, b = { 0 };
        struct error ignored;
        bool is_same = !strcmp(text, other);
        if (!is_same && !url_parse(text, URL_FOR_COORDINATION, "/", &a, &ignored) &&
                !url_parse(other, URL_FOR_COORDINATION, "/", &b, &ignored))
                is_same = service_of(&a) == service_of(&b) &&
                          (a.kind == URL_LOCAL ? is_same_folder(a.path, b.path) : is_same_text(a.path, b.path)) &&
                          is_same_text(a.master, b.master) && a.database == b.database && has_common_host(&a, &b);
        url_free(&a);
        url_free(&b);
        return is_same;
}

bool url_is_redis(const struct url *url)
{
        return url->kind >= URL_REDIS && url->kind <= URL_REDIS_CLUSTER;
}

bool url_is_redis_tls(const char *text)
{
        return !strncmp(text, "rediss:", 7) || !strncmp(text, "rediss+", 7);
}

void url_free(struct url *url)
{
        for (size_t i = 0; i < url->hosts_count; i++)
                free(url->hosts[i].name);
        free(url->hosts);
        free(url->text);
        free(url->path);
        free(url->master);
        *url = (struct url){ 0 };
}
