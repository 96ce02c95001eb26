/* parse.h: the words of a configuration → libconfig's tree.
 *
 * libconfig keeps the settings; it does not read the file.  Its own reader (1.5) cuts integers, looks for includes from
 * the working directory, answers most mistakes with "syntax error" at the end of the file, and takes quadratic time or
 * a deep stack for hostile input. */
#ifndef QUIVER_CONFIG_PARSE_H
#define QUIVER_CONFIG_PARSE_H

#include <libconfig.h>
#include <stdbool.h>

#include "base/arena.h"
#include "config/source.h"

#define PARSE_DEPTH_MAX   32   /* groups within groups */
#define PARSE_MEMBERS_MAX 4096 /* settings of one group, elements of one list */

/* Where a setting stands; its hook in libconfig's tree. */
struct setting_place {
        const struct source_file *file;
        uint32_t line;
        bool is_bad; /* its number was refused: the value means nothing */
};

/* Adds all settings below `root`; places are in `arena`.  0, or -EINVAL after the first mistake in the syntax, which is
 * added to the source's problems. */
int config_parse_words(struct source *source, struct config_setting_t *root, struct arena_chunk **arena);

#endif
