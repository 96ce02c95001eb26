#include "config/connect.h"

static const char *if_any(const char *text)
{
        return *text ? text : NULL;
}

struct store_options store_options_of(const struct config *config, const struct config_secrets *secrets)
{
        const struct store_config *store = &config->store;
        return (struct store_options){ .url = store->url.text,
                .app = config->app,
                .user = store->user,
                .password = if_any(secrets->store),
                .sentinel_user = store->sentinel.user,
                .sentinel_password = if_any(secrets->store_sentinel),
                .wait_replicas = store->wait_replicas,
                .shards = config->shards,
                .ids = config->ids.has_layout ? &config->ids.asked : NULL,
                .sync = store->synchronous == SYNCHRONOUS_FULL ? STORE_SYNC_FULL : STORE_SYNC_NORMAL,
                .payload_max = store->payload_max_bytes,
                .backlog_max = store->backlog_max,
                .results_max = store->results.count_max,
                .results_age_ms = store->results.age_max_ms };
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
                .ca_file = coordination->tls.ca_file,
                .cert_file = coordination->tls.cert_file,
                .key_file = coordination->tls.key_file,
                .store_url = store->url.text,
                .store_user = store->user,
                .store_password = if_any(secrets->store),
                .sentinel_user = coordination->sentinel.user,
                .sentinel_password = if_any(secrets->coordination_sentinel),
                .store_sentinel_user = store->sentinel.user,
                .store_sentinel_password = if_any(secrets->store_sentinel) };
}
