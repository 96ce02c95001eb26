/* rights.c: the rights that a host and its operator need on the Redis that has the tree. */
#include "redis/rights.h"

#include <stdio.h>

#include "base/error.h"
#include "base/url.h"
#include "coord/redis/redis_tree.h"

static void add_tree(struct rights *to)
{
        struct tree_scripts scripts;
        rtree_scripts_init(&scripts);
        for (unsigned i = 0; i < TREE_SCRIPTS; i++)
                rights_add_script(to, scripts.all[i].text);
        rights_add(&to->channels, "&__redis__:invalidate");
        rights_add_commands(to, (const char *const[]){ "eval", "evalsha", "client|tracking", "subscribe", NULL });
}

bool rtree_rights(const struct coord_options *options, bool is_for_sentinels, struct rights *to)
{
        bool is_stores = !strcmp(options->url, "redis");
        struct url url = { 0 };
        struct error error;
        if (is_stores) {
                if (!is_for_sentinels)
                        add_tree(to); /* the store's rights include all keys of the app */
                return !is_for_sentinels;
        }
        bool is_read = url_parse(options->url, URL_FOR_STORE, "/", &url, &error) == 0;
        bool has_some = is_read && (!is_for_sentinels || url.kind == URL_REDIS_SENTINEL);
        if (has_some && is_for_sentinels) {
                rights_add_sentinel(to);
        } else if (has_some) {
                char pattern[128];
                (void)snprintf(pattern, sizeof(pattern), "~quiver:{%s:coord}*", options->app);
                rights_add(&to->keys, pattern);
                add_tree(to);
                rights_add_connection(to, &url);
        }
        url_free(&url);
        return has_some;
}
