/* options.c: how to open what a configuration names. */
#include "config/config.h"
#include "coord/coord.h"

static const char *if_any(const char *text)
{
        return *text ? text : NULL;
}

struct coord_options coord_options_of(const struct config *config, const struct config_secrets *secrets)
{
        const struct coordination_config *coordination = &config->coordination;
        const struct store_config *store = &config->store;
        return (struct coord_options){ .url = coordination->url.text,
                .app = config->app,
                .session_ms = coordination->session_ms,
                .user = coordination->user,
                .password = if_any(secrets->coordination),
                .store_url = store->url.text,
                .store_user = store->user,
                .store_password = if_any(secrets->store),
                .sentinel_user = coordination->sentinel.user,
                .sentinel_password = if_any(secrets->coordination_sentinel),
                .store_sentinel_user = store->sentinel.user,
                .store_sentinel_password = if_any(secrets->store_sentinel) };
}
