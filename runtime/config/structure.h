/* structure.h: groups and lists closed as they were opened, no name twice in a group, nothing too deep or too long.
 *
 * Left to itself libconfig answers the first with "syntax error" at the end of the file, stops at the second without
 * saying which name, and takes quadratic time or a deep stack for the rest. */
#ifndef QUIVER_CONFIG_STRUCTURE_H
#define QUIVER_CONFIG_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/lexer.h"
#include "config/problems.h"

#define STRUCTURE_DEPTH_MAX   32   /* groups within groups */
#define STRUCTURE_MEMBERS_MAX 4096 /* settings of one group, elements of one list */

/* A setting's name, borrowed from the text of its file. */
struct structure_name {
        const char *start;
        size_t size;
        uint32_t hash;
        struct config_place place;
};

struct structure_frame {
        char mark; /* '{', '[' or '(', 0 for the file itself */
        struct config_place opened;
        size_t members;
        size_t names_from; /* this group's names begin here */
};

/* What is open at the moment.  Texts and places handed in have to live as long as it does. */
struct structure {
        struct problems *problems;
        struct structure_frame frames[STRUCTURE_DEPTH_MAX + 1];
        size_t depth;
        struct structure_name *names;
        size_t names_count;
        bool is_broken; /* libconfig would stumble over it: do not let it try */
};

void structure_init(struct structure *s, struct problems *problems);
/* The next word of the text, in order, over all files. */
void structure_token(struct structure *s, const struct token *token, struct config_place place);
/* The text ends. */
void structure_end(struct structure *s);
void structure_free(struct structure *s);

#endif
