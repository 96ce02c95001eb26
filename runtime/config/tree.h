/* tree.h: a parsed file: libconfig's tree, and where its settings stand. */
#ifndef QUIVER_CONFIG_TREE_H
#define QUIVER_CONFIG_TREE_H

#include <libconfig.h>

#include "base/buffer.h"
#include "base/setting_list.h"
#include "config/parse.h"
#include "config/problems.h"

struct config_tree {
        struct source source;
        struct config_t parsed;
        struct arena_chunk *places;
        struct problems *problems;
};

/* Reads the file (text = NULL), or `text` as if it stood there.  0, or a negative errno; what is wrong is added to
 * `problems`, which the tree keeps using.  tree_close() it in any case. */
int tree_open(struct config_tree *t, const char *path, const char *text, size_t size, struct problems *problems);
void tree_close(struct config_tree *t);

const struct config_setting_t *tree_root(const struct config_tree *t);
/* By a dotted path from the root; NULL if it is not there. */
const struct config_setting_t *tree_find(const struct config_tree *t, const char *path);

/* The file that was asked for, as a whole, and its folder. */
struct config_place tree_whole(const struct config_tree *t);
const char *tree_main_folder(const struct config_tree *t);

struct config_place tree_place(const struct config_tree *t, const struct config_setting_t *setting);
/* Where relative paths of this setting start. */
const char *tree_folder(const struct config_tree *t, const struct config_setting_t *setting);

/* Its number was refused: the value means nothing. */
bool tree_is_bad(const struct config_setting_t *setting);

/* "handlers.echo.retry.max" */
const char *tree_path(const struct config_setting_t *setting, char *text, size_t size);

/* The value of a number, text or bool as text, as setting_list.h says; false if it is none of these. */
bool tree_scalar(const struct config_setting_t *setting, struct buffer *b);

/* The members of a group, flattened.  0, or -E2BIG. */
int tree_flatten(const struct config_setting_t *group, struct setting_list *settings);

#endif
