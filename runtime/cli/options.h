/* options.h: what every command does with its words: options, help, and a hint for the misspelt. */
#ifndef QUIVER_CLI_OPTIONS_H
#define QUIVER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every command returns to the shell. */
enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

/* One option of a command.  `id` is what options_next() returns for it; lower-case letters double as the short form
 * ('c' gives -c), numbers from 256 have none.  `value` names the argument, NULL if it takes none. */
struct option_spec {
        int id;
        const char *name;
        const char *value;
        const char *help;
};

/* A command's words and its help.  `usage` starts after "quiver ". */
struct options {
        const char *usage;
        const char *about; /* what it does, one or more lines */
        const struct option_spec *specs;
        size_t count;
        const char *examples; /* whole lines, NULL: none */

        int argc;
        char **argv;
        int at;
        bool only_words;     /* past "--" */
        const char *cluster; /* the rest of "-abc" */
        const char *value;   /* of the option returned last */
};

enum { OPTIONS_END = 0, OPTIONS_WORD = -1, OPTIONS_HELP = -2, OPTIONS_WRONG = -3 };

/* argv[0] is the command's own name. */
void options_start(struct options *o, int argc, char **argv);

/* The next option's id with o->value set; OPTIONS_WORD with a plain word in o->value (everything after "--" is one);
 * OPTIONS_END; OPTIONS_HELP after it printed the help to standard output (return EXIT_DONE); OPTIONS_WRONG after it
 * said on standard error what is wrong (return EXIT_USAGE). */
int options_next(struct options *o);

/* Says "quiver COMMAND: TEXT" and where the help is; returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int options_wrong(const struct options *o, const char *format, ...);

/* A decimal number from `min` to `max` and nothing else; false if it is not. */
bool options_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number);

void options_help(const struct options *o);

#endif
