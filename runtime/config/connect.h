/* connect.h: how to open the store and the coordination that a configuration names. */
#ifndef QUIVER_CONFIG_CONNECT_H
#define QUIVER_CONFIG_CONNECT_H

#include "config/config.h"
#include "coord/coord.h"
#include "store/store.h"

/* Borrows. */
struct tls_files tls_files_of(const struct tls_config *tls);

/* All that the configuration says of the store.  The rest (may_create, is_host, coordination, nonce, bell) depends on
 * who opens it.  Borrows from both. */
struct store_options store_options_of(const struct config *config, const struct config_secrets *secrets);
/* The same of the coordination, without events. */
struct coord_options coord_options_of(const struct config *config, const struct config_secrets *secrets);

#endif
