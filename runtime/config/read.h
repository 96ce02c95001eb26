/* read.h: fills the structs of config.h from the parsed file, and checks settings against each other. */
#ifndef QUIVER_CONFIG_READ_H
#define QUIVER_CONFIG_READ_H

#include "config/config.h"
#include "config/tree.h"

/* Fills a zeroed `config`, group by group, with defaults where the file has no value or a wrong one.  Problems go to
 * the tree's list. */
void config_read_tree(struct config_tree *t, struct config *config);

/* Sets what depends on other settings, and checks settings against each other.  `config` is as config_read_tree() left
 * it. */
void config_finish(struct config_tree *t, struct config *config);

/* The TLS of `group`, "store" or "coordination", whose URL is `url`; reads the files if it is for a host and Redis. */
void config_check_tls(struct config_tree *t, const char *group, const struct url *url, const struct tls_config *tls);

/* The schedules; the handlers are finished. */
void config_check_schedules(struct config_tree *t, const struct config *config);

#endif
