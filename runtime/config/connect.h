/* connect.h: options for opening the store and the coordination that a configuration names. */
#ifndef QUIVER_CONFIG_CONNECT_H
#define QUIVER_CONFIG_CONNECT_H

#include "config/config.h"
#include "coord/coord.h"
#include "store/store.h"

/* Borrows from `tls`. */
struct tls_files tls_files_of(const struct tls_config *tls);

/* The store's options from the configuration.  The caller sets the rest (may_create, is_host, coordination, nonce,
 * bell).  Borrows from both. */
struct store_options store_options_of(const struct config *config, const struct config_secrets *secrets);
/* The coordination's options, without events. */
struct coord_options coord_options_of(const struct config *config, const struct config_secrets *secrets);

#endif
