#include "client/rights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "config/connect.h"
#include "store/rights.h"

static const struct {
        const char *role;
        const char *about;
        const char *server;
        bool has_tree; /* include what the coordination needs, if it is in the store's Redis */
} store_roles[STORE_ROLES] = {
        [STORE_HOST] = { "host", "quiver run", "store", true },
        [STORE_OPERATOR] = { "operator", "the commands, also while no host runs", "store", true },
        [STORE_PRODUCER] = { "producer",
                "appends tasks and reads their outcomes; what needs a script (a delay, a time, --unique, an "
                "idempotency "
                "name) is refused",
                "store", false },
        [STORE_PRODUCER_PLUS] = { "producer+", "submits with every option; runs the script that a host has loaded",
                "store", false },
        [STORE_SENTINEL] = { "sentinel", "asks the Sentinels of the store which server is the master", "sentinel",
                false },
};

static void add_user(struct server_users *users, const struct server_user *user, const char *app, const char *suffix,
        struct rights *rights)
{
        struct buffer rules = { 0 };
        buffer_printf(&rules, "reset on >PASSWORD");
        rights_put(&rules, rights);
        users->items = array_grow(users->items, users->count, sizeof(*users->items));
        struct server_user *added = &users->items[users->count++];
        *added = *user;
        added->name = text_printf("%s-%s", app, suffix);
        added->rules = text_copy(buffer_text(&rules));
        buffer_free(&rules);
        rights_free(rights);
}

static void add_store(struct server_users *users, const struct store_options *store, const struct coord_options *coord)
{
        for (unsigned role = 0; role < STORE_ROLES; role++) {
                struct rights rights = { 0 };
                const struct server_user user = { .server = store_roles[role].server,
                        .role = store_roles[role].role,
                        .about = store_roles[role].about };
                if (!store_rights(store, (enum store_role)role, &rights))
                        continue;
                if (store_roles[role].has_tree && !strcmp(coord->url, "redis"))
                        (void)coord_rights(coord, false, &rights);
                add_user(users, &user, store->app, user.role, &rights);
        }
}

/* For a tree on its own Redis, hosts and operators need the same rights. */
static void add_tree(struct server_users *users, const struct coord_options *coord)
{
        static const struct server_user user = { .server = "coordination",
                .role = "coordination",
                .about = "a host or an operator, on the Redis of the coordination" };
        static const struct server_user sentinel = { .server = "sentinel",
                .role = "coordination-sentinel",
                .about = "asks the Sentinels of the coordination which server is the master" };
        struct rights rights = { 0 };
        if (!strcmp(coord->url, "redis") || !coord_rights(coord, false, &rights))
                return;
        add_user(users, &user, coord->app, user.role, &rights);
        struct rights sentinels = { 0 };
        if (coord_rights(coord, true, &sentinels))
                add_user(users, &sentinel, coord->app, sentinel.role, &sentinels);
}

int server_users_make(const struct config *config, struct server_users *ret_users, struct error *error)
{
        static const struct config_secrets none;
        struct store_options store = store_options_of(config, &none);
        struct coord_options coord = coord_options_of(config, &none);
        *ret_users = (struct server_users){ 0 };
        add_store(ret_users, &store, &coord);
        add_tree(ret_users, &coord);
        if (ret_users->count)
                return 0;
        return error_set(error, -ENOTSUP,
                "neither the store (%s) nor the coordination (%s) is a Redis: there are no users to give rights to",
                config->store.url.text, config->coordination.url.text);
}

void server_users_free(struct server_users *users)
{
        for (size_t i = 0; i < users->count; i++) {
                free(users->items[i].name);
                free(users->items[i].rules);
        }
        free(users->items);
        *users = (struct server_users){ 0 };
}
