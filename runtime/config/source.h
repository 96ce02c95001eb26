/* source.h: the tokens of a configuration file and of the files that it includes, in order, each with its file.
 *
 * What a file says after an @include overrides what the included file says, and the command line overrides all files.
 * The tokens of an included file stand in place of its @include.  The path of an include is relative to the folder of
 * the file that names it.  Includes must not form a cycle, and their depth and size are bounded. */
#ifndef QUIVER_CONFIG_SOURCE_H
#define QUIVER_CONFIG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/lexer.h"
#include "config/problems.h"

#define SOURCE_BYTES_MAX   ((size_t)1024 * 1024) /* all files together */
#define SOURCE_INCLUDE_MAX 10                    /* files within files */

struct source_file {
        struct source_file *next;           /* the file that was opened next */
        const struct source_file *includer; /* NULL: the main file, or the command line */
        bool is_command_line;               /* from --set */
        char *path;                         /* for messages */
        char *folder;                       /* absolute; the file's relative paths start here */
        char *text;
        uint64_t written_ms; /* when the file was last changed, in unix milliseconds; 0: not a file */
};

/* Zero-initialised is empty. */
struct source {
        struct problems *problems;
        struct source_file *files; /* the first is the main file; all stay valid until source_free() */
        struct source_file **files_end;
        struct open_file *open; /* files that are being read, the outermost last */
        size_t bytes;
        int failed; /* the first negative errno: some file could not be read */
};

/* Opens the file, or reads `text` as its content if that is not NULL.  0, or a negative errno.  This and later calls
 * add to `problems`.  The caller must call source_free() in any case. */
int source_open(struct source *s, const char *path, const char *text, size_t size, struct problems *problems);
/* Continues with a setting of the command line, after the last token of the file.  `path` is for messages; relative
 * paths in the setting start at the working directory. */
void source_add_command_line(struct source *s, const char *path, const char *text, size_t size);
/* The next token and its file; TOKEN_END after the last.  An include that cannot be read adds a problem and no tokens.
 * A TOKEN_BAD has added its problem, and TOKEN_END follows it. */
void source_next(struct source *s, struct token *ret_token, const struct source_file **ret_file);
void source_free(struct source *s);

#endif
