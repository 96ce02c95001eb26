/* read.h: from the parsed file to the structs, and the checks that look at more than one setting. */
#ifndef QUIVER_CONFIG_READ_H
#define QUIVER_CONFIG_READ_H

#include "config/config.h"
#include "config/tree.h"

/* Fills a zeroed `config`, group by group, defaults where the file has nothing or something wrong.  Problems go to the
 * tree's list. */
void config_read_tree(struct config_tree *t, struct config *config);

/* Derives what follows from other settings, and checks what has to fit together.  `config` is as config_read_tree()
 * left it. */
void config_finish(struct config_tree *t, struct config *config);

#endif
