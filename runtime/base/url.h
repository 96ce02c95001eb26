/* url.h: where the store and the coordination are.
 *
 *         sqlite:PATH                              redis://HOST[:PORT][/DATABASE]
 *         redis+unix:PATH[?db=DATABASE]            redis+sentinel://HOST[:PORT],…/MASTER[/DATABASE]
 *         redis+cluster://HOST[:PORT],…            rediss://…, rediss+sentinel://…, rediss+cluster://…: with TLS
 *         local:FOLDER                             zookeeper://HOST[:PORT],…[/CHROOT]
 *         etcd://HOST[:PORT],…[/ROOT]              etcd+tls://HOST[:PORT],…[/ROOT]
 *         redis (the store's own), or one of the Redis forms
 *
 * The first three lines name a store, the others a coordination service.  A URL never holds a user or password: they
 * have settings of their own. */
#ifndef QUIVER_BASE_URL_H
#define QUIVER_BASE_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum url_kind {
        URL_NONE,
        URL_SQLITE,
        URL_REDIS,
        URL_REDIS_UNIX,
        URL_REDIS_SENTINEL,
        URL_REDIS_CLUSTER,
        URL_LOCAL,
        URL_ZOOKEEPER,
        URL_ETCD,
        URL_ETCD_TLS,
        URL_STORE_REDIS, /* coordination: the Redis of the store */
};

/* What a URL may be used for. */
enum url_use { URL_FOR_STORE, URL_FOR_COORDINATION };

#define URL_HOSTS_MAX 64

struct url_host {
        char *name; /* a name or address; IPv6 without brackets */
        uint16_t port;
};

/* Zero-initialised means that no URL is set.  Fields that a kind does not use are NULL or 0. */
struct url {
        enum url_kind kind;
        char *text; /* the whole URL, its path absolute; holds no secret */
        char *path; /* sqlite: the file; redis+unix: the socket; local: the folder; zookeeper: the chroot;
                       etcd: the root */
        struct url_host *hosts;
        size_t hosts_count;
        char *master;      /* redis+sentinel */
        uint32_t database; /* redis, redis+unix, redis+sentinel */
        bool is_tls;       /* rediss, rediss+sentinel, rediss+cluster, etcd+tls */
};

/* Relative paths start at `folder`.  0, or -EINVAL with the text set; the text repeats no part that could be a
 * password. */
int url_parse(const char *text, enum url_use use, const char *folder, struct url *ret_url, struct error *error);

/* Whether two coordination URLs, as written, name the same service.  Of several servers one in common is enough, in any
 * order: a server belongs to one ensemble, and its list of servers may grow, shrink and be replaced step by step. */
bool url_is_same_coordination(const char *text, const char *other);

/* Whether it names a Redis server of its own: one of the Redis forms. */
bool url_is_redis(const struct url *url);
/* Whether a URL as written is a Redis form with TLS. */
bool url_is_redis_tls(const char *text);

void url_free(struct url *url);

#endif
