/* open.h: how a command gets at its store, and how it says that something went wrong. */
#ifndef QUIVER_CLI_OPEN_H
#define QUIVER_CLI_OPEN_H

#include "cli/options.h"
#include "client/admin.h"
#include "config/config.h"

/* What every command on a store has. */
#define OPTION_CONFIG_ROW                                                                                              \
        {                                                                                                              \
                'c', "config", "FILE", "the settings; else $QUIVER_CONFIG, ./etc/runtime.cfg, /etc/quiver/runtime.cfg" \
        }
#define OPTION_JSON_ROW                                                                                                \
        {                                                                                                              \
                OPTION_JSON, "json", NULL, "print JSON"                                                                \
        }
enum { OPTION_JSON = 256, OPTION_OWN }; /* a command's own options follow from OPTION_OWN */

/* Zero-initialised is closed. */
struct cli_store {
        const char *command; /* for messages */
        struct config config;
        struct qv_client *client;
        const struct store_info *info;
};

/* Finds and reads the configuration; s->config is then to be freed.  EXIT_DONE, or another exit code after it said why.
 */
int cli_load(struct cli_store *s, const char *command, const char *given_config);
/* Finds, reads and opens.  EXIT_DONE, or another exit code after it said why. */
int cli_open(struct cli_store *s, const char *command, const char *given_config);
void cli_close(struct cli_store *s);

/* Says "quiver COMMAND: TEXT" on standard error; returns the exit code that goes with `r`: EXIT_UNREACHABLE if the
 * store could not be asked, else EXIT_FAILED. */
int cli_fail(const char *command, int r, const char *text);

/* The words of a command, and the options that all have.  Zero-initialised is none. */
struct cli_words {
        const char *config;
        bool has_json;
        const char **words; /* borrowed texts */
        size_t count;
        bool is_over; /* help was shown, or something is wrong: end with `code` */
        int code;
};

/* The next option that is the command's own, with o->value; OPTIONS_END at the end, or when it is_over. */
int cli_words_next(struct cli_words *w, struct options *o);
void cli_words_free(struct cli_words *w);

#endif
