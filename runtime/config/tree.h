/* tree.h: a parsed configuration: libconfig's tree, and the place of each setting. */
#ifndef QUIVER_CONFIG_TREE_H
#define QUIVER_CONFIG_TREE_H

#include <libconfig.h>

#include "base/buffer.h"
#include "base/setting_list.h"
#include "base/strings.h"
#include "config/parse.h"
#include "config/problems.h"

struct config_tree {
        struct source source;
        struct config_t parsed;
        struct arena_chunk *places;
        struct problems *problems;
};

/* Reads the file, or `text` as its content if that is not NULL, and then the settings of the command line (NAME=VALUE;
 * NULL: none).  0, or a negative errno with the reasons in `problems`, which the tree keeps using.  The caller must
 * call tree_close() in any case. */
int tree_open(struct config_tree *t, const char *path, const char *text, size_t size, const struct strings *set,
        struct problems *problems);
void tree_close(struct config_tree *t);

const struct config_setting_t *tree_root(const struct config_tree *t);
/* The setting with that dotted path from the root; NULL if there is none. */
const struct config_setting_t *tree_find(const struct config_tree *t, const char *path);

/* The main file as a whole, without a line. */
struct config_place tree_whole(const struct config_tree *t);
const char *tree_main_folder(const struct config_tree *t);

struct config_place tree_place(const struct config_tree *t, const struct config_setting_t *setting);
/* The same by its dotted path; of one that is not set, the file as a whole. */
struct config_place tree_place_of(const struct config_tree *t, const char *path);
/* The folder at which relative paths of this setting start. */
const char *tree_folder(const struct config_tree *t, const struct config_setting_t *setting);

/* Whether its number was refused, so that the value is meaningless. */
bool tree_is_bad(const struct config_setting_t *setting);

/* "handlers.echo.retry.max" */
const char *tree_path(const struct config_setting_t *setting, char *text, size_t size);

/* Appends the value of a number, text or boolean as text; false for any other type. */
bool tree_scalar(const struct config_setting_t *setting, struct buffer *b);

/* Adds the members of a group, flattened as setting_list.h describes.  0, or -E2BIG. */
int tree_flatten(const struct config_setting_t *group, struct setting_list *settings);

#endif
