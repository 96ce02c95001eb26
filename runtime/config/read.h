/* read.h: fills the structs of config.h from the parsed file, and checks settings against each other. */
#ifndef QUIVER_CONFIG_READ_H
#define QUIVER_CONFIG_READ_H

#include "config/config.h"
#include "config/tree.h"

/* Fills a zeroed `config`, group by group, with defaults where the file has no value or a wrong one.  Problems go to
 * the tree's list. */
void config_read_tree(struct config_tree *t, struct config *config);

/* Sets values that depend on other settings, and checks settings against each other.  `config` must come from
 * config_read_tree(). */
void config_finish(struct config_tree *t, struct config *config);

/* Checks the TLS settings of `group`, "store" or "coordination", whose URL is `url`; for a host and Redis it also reads
 * the files. */
void config_check_tls(struct config_tree *t, const char *group, const struct url *url, const struct tls_config *tls);

/* Checks the schedules.  The handlers must be finished. */
void config_check_schedules(struct config_tree *t, const struct config *config);

#endif
