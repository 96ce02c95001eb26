/* source.h: a configuration file and what it includes, as one checked text that knows where each line came from.
 *
 * Includes are resolved here and not by libconfig, which looks for them from the working directory, cannot tell a loop
 * from depth, and reads whatever the name leads to. */
#ifndef QUIVER_CONFIG_SOURCE_H
#define QUIVER_CONFIG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "config/problems.h"

#define SOURCE_BYTES_MAX   ((size_t)1024 * 1024) /* all files together */
#define SOURCE_INCLUDE_MAX 10                    /* files within files */

struct source_file {
        char *path;   /* as messages name it */
        char *folder; /* absolute: where its relative paths start */
        char *text;
};

/* Where a line of the joined text came from. */
struct source_line {
        uint32_t file;
        uint32_t number;
};

/* Zero-initialised is empty. */
struct source {
        struct buffer text;
        struct source_file *files;
        size_t files_count;
        struct source_line *lines;
        size_t lines_count;
        struct source_line *bad; /* lines with a number that was refused */
        size_t bad_count;
        size_t bytes;
};

/* Reads `path` and its includes.  0, or a negative errno if the text is not fit to be parsed; what is wrong is added to
 * `problems` either way.  source_free() it in any case. */
int source_read(struct source *s, const char *path, struct problems *problems);

/* The same from memory, as if it stood in the file `path`. */
int source_read_text(struct source *s, const char *path, const char *text, size_t size, struct problems *problems);

/* The file that was asked for, as a whole, and its folder. */
struct config_place source_whole(const struct source *s);
const char *source_main_folder(const struct source *s);

/* Line `line` (from 1) of the joined text; 0 or a line past the end counts as the nearest there is. */
struct config_place source_place(const struct source *s, unsigned int line);
/* The folder of the file in which that line stands. */
const char *source_folder(const struct source *s, unsigned int line);
/* A number on this line was refused: what libconfig makes of it means nothing. */
bool source_line_is_bad(const struct source *s, unsigned int line);

void source_free(struct source *s);

#endif
