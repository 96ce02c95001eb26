/* source.h: the words of a configuration file and of what it includes, in order, each with the file it stands in.
 *
 * An included file's words stand in place of its @include.  Includes are looked for from the folder of the file that
 * names them, may not go round in a circle, and are bounded in depth and size. */
#ifndef QUIVER_CONFIG_SOURCE_H
#define QUIVER_CONFIG_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "config/lexer.h"
#include "config/problems.h"

#define SOURCE_BYTES_MAX   ((size_t)1024 * 1024) /* all files together */
#define SOURCE_INCLUDE_MAX 10                    /* files within files */

struct source_file {
        struct source_file *next; /* the one that was read after it */
        char *path;               /* as messages name it */
        char *folder;             /* absolute: where its relative paths start */
        char *text;
};

/* Zero-initialised is empty. */
struct source {
        struct problems *problems;
        struct source_file *files; /* the first is the one that was asked for; they stay until source_free() */
        struct source_file **files_end;
        struct open_file *open; /* being read; outermost last */
        size_t bytes;
        int failed; /* the first negative errno: what was read is not the whole */
};

/* Opens the file (text = NULL), or `text` as if it stood there.  0, or a negative errno; what is wrong is added to
 * `problems`, also later.  source_free() it in any case. */
int source_open(struct source *s, const char *path, const char *text, size_t size, struct problems *problems);
/* The next word, and the file that it stands in.  TOKEN_END: that was all.  An include that cannot be read is a problem
 * and no words; after a TOKEN_BAD, whose problem was added, comes TOKEN_END. */
void source_next(struct source *s, struct token *ret_token, const struct source_file **ret_file);
void source_free(struct source *s);

#endif
