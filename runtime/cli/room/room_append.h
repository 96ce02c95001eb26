/* room_append.h: `quiver room NAME append`: entries from the command line, or from standard input. */
#ifndef QUIVER_CLI_ROOM_ROOM_APPEND_H
#define QUIVER_CLI_ROOM_ROOM_APPEND_H

#include "cli/open.h"

struct room_appending {
        const char *room;
        char *const *words; /* one entry each; none: all of standard input is one */
        size_t words_count;
        bool has_lines; /* each line of standard input is one, appended as it comes */
        bool has_json;
};

/* Prints the number of each entry.  An exit code. */
int room_append(struct cli_store *s, const struct room_appending *a);

#endif
