/* options.h: parses every command's arguments: options, help, and a hint for misspelt ones.
 *
 * A command's options are a table.  Each row says what the help shows and where the value goes:
 *
 *         const struct option table[] = {
 *                 OPT_TEXT("-k, --key KEY", &q.key, "what order is kept for"),
 *                 OPT_DURATION("--timeout TIME", &q.timeout_ms, 0, "what a start may take"),
 *         }; */
#ifndef QUIVER_CLI_OPTIONS_H
#define QUIVER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

/* What every command returns to the shell. */
enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

enum option_kind {
        OPTION_FLAG,
        OPTION_TEXT,
        OPTION_U32,
        OPTION_U64,
        OPTION_DURATION,
        OPTION_SIZE,
        OPTION_CHOICE,
        OPTION_LIST,
        OPTION_CALL
};

struct option_choice {
        const char *name; /* NULL ends the list */
        int32_t value;
};

struct option {
        const char *spelling; /* as the help shows it: "-k, --key KEY", "--json" */
        const char *help;
        enum option_kind kind;
        union {
                bool *flag;
                const char **text;
                uint32_t *u32;
                uint64_t *u64;
                int32_t *i32;
                struct strings *list;
                void *self;
        } to;
        uint64_t min, max;
        const struct option_choice *choices;
        int (*call)(void *self, const char *value, struct error *error);
};

#define OPT_ROW(option, what, about, ...)                                                                              \
        {                                                                                                              \
                .spelling = (option), .kind = (what), .help = (about), __VA_ARGS__                                     \
        }

#define OPT_FLAG(option, field, about) OPT_ROW(option, OPTION_FLAG, about, .to.flag = (field))
/* The text is borrowed from argv. */
#define OPT_TEXT(option, field, about) OPT_ROW(option, OPTION_TEXT, about, .to.text = (field))
/* The field is a uint32_t or a uint64_t. */
#define OPT_NUMBER(option, field, least, most, about)                                                                  \
        OPT_ROW(option,                                                                                                \
                (_Generic(*(field), uint32_t                                                                           \
                          : OPTION_U32, uint64_t                                                                       \
                          : OPTION_U64)),                                                                              \
                about, .to.self = (field), .min = (least), .max = (most))
/* The field is in milliseconds, at least `least_ms`. */
#define OPT_DURATION(option, field, least_ms, about)                                                                   \
        OPT_ROW(option, OPTION_DURATION, about, .to.u64 = (field), .min = (least_ms))
/* The field is in bytes. */
#define OPT_SIZE(option, field, about) OPT_ROW(option, OPTION_SIZE, about, .to.u64 = (field))
/* The field is the int32_t that belongs to the name. */
#define OPT_CHOICE(option, field, names, about)                                                                        \
        OPT_ROW(option, OPTION_CHOICE, about, .to.i32 = (field), .choices = (names))
/* The option may be given several times: a copy of each value is added. */
#define OPT_LIST(option, field, about) OPT_ROW(option, OPTION_LIST, about, .to.list = (field))
/* For a value that needs its own parser: `function` returns 0, or -EINVAL with a text that does not name the option. */
#define OPT_CALL(option, function, owner, about)                                                                       \
        OPT_ROW(option, OPTION_CALL, about, .to.self = (owner), .call = (function))

/* A command's help, its options, and its parsed arguments.  `usage` starts after "quiver ". */
struct options {
        const char *usage;
        const char *about;    /* what it does, one or more lines */
        const char *examples; /* whole lines, NULL: none */
        const struct option *table;
        size_t table_count;
        size_t words_max; /* more words than this are refused */
        const char *hint; /* printed about such a word after "what is WORD?"; may be NULL */

        /* Set by options_read(). */
        const char *command;
        char **words; /* arguments that are not options, in order, ended by NULL; includes everything after "--" */
        size_t words_count;
};

#define OPTIONS_TABLE(rows) .table = (rows), .table_count = sizeof(rows) / sizeof((rows)[0])
#define WORDS_ANY           SIZE_MAX

/* Parses argv into the fields that the table names; argv[0] is the command's name, the other elements may be reordered.
 * False: the command ends with *ret_code, because the help was printed, or an error was reported. */
bool options_read(struct options *o, int argc, char **argv, int *ret_code);

/* While a visitor is set, options_read() passes the caller's table to it and parses nothing: the manual and shell
 * completion are made from the commands' own tables.  NULL removes it. */
void options_visit(void (*visit)(void *self, const struct options *o), void *self);
/* The name in "-k, --key KEY", without its dashes; *ret_size bytes. */
const char *option_name(const struct option *option, size_t *ret_size);
/* The KEY in "-k, --key KEY"; empty for a flag. */
const char *option_value_name(const struct option *option);
/* Prints the help. */
void options_print(const struct options *o);

/* Prints "quiver COMMAND: TEXT" and where the help is; returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int options_wrong(const struct options *o, const char *format, ...);

/* Whether the option is spelt --NAME. */
bool option_is(const struct option *option, const char *name, size_t size);

/* Writes the value to the option's field.  0, or -EINVAL with a text that does not name the option. */
int option_set(const struct option *option, const char *value, struct error *error);

/* Parses a decimal number from `min` to `max`; false if it is anything else. */
bool options_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number);

#endif
