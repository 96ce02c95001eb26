/* parse.h: builds libconfig's tree from the tokens of a configuration.
 *
 * libconfig holds the settings; it does not read the file.  Its own reader (1.5) cuts integers, resolves includes from
 * the working directory, reports most mistakes as "syntax error" at the end of the file, and takes quadratic time or a
 * deep stack for hostile input. */
#ifndef QUIVER_CONFIG_PARSE_H
#define QUIVER_CONFIG_PARSE_H

#include <libconfig.h>
#include <stdbool.h>

#include "base/arena.h"
#include "config/source.h"

#define PARSE_DEPTH_MAX   32   /* groups within groups */
#define PARSE_MEMBERS_MAX 4096 /* settings of one group, elements of one list */

/* Where a setting stands.  The hook of its node in libconfig's tree points here. */
struct setting_place {
        const struct source_file *file;
        uint32_t line;
        bool is_bad; /* its number was refused, so the value is meaningless */
};

/* Adds all settings below `root`; their places are allocated in `arena`.  0, or -EINVAL after the first syntax error,
 * which it adds to the source's problems. */
int config_parse_words(struct source *source, struct config_setting_t *root, struct arena_chunk **arena);

#endif
