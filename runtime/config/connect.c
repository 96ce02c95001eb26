#include "config/connect.h"

static const char *if_any(const char *text)
{
        return *text ? text : NULL;
}

struct tls_files tls_files_of(const struct tls_config *tls)
{
        return (struct tls_files){ tls->ca_file, tls->cert_file, tls->key_file, tls->server_name };
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
                .tls = tls_files_of(&store->tls),
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
                .tls = tls_files_of(&coordination->tls),
                .store_tls = tls_files_of(&store->tls),
                .store_url = store->url.text,
                .store_user = store->user,
                .store_password = if_any(secrets->store),
                .sentinel_user = coordination->sentinel.user,
                .sentinel_password = if_any(secrets->coordination_sentinel),
                .store_sentinel_user = store->sentinel.user,
                .store_sentinel_password = if_any(secrets->store_sentinel) };
}
