/* open.h: how a command opens its store and reports errors. */
#ifndef QUIVER_CLI_OPEN_H
#define QUIVER_CLI_OPEN_H

#include "cli/options.h"
#include "client/admin.h"
#include "config/config.h"

/* Option rows that every command on a store has. */
#define OPT_CONFIG(field)                                                                                              \
        OPT_TEXT("-c, --config FILE", field,                                                                           \
                "the settings; else $QUIVER_CONFIG, ./etc/runtime.cfg, /etc/quiver/runtime.cfg"),                      \
                OPT_LIST("--set NAME=VALUE", &cli_set, "override a setting of the file: --set log.level=debug")
#define OPT_JSON(field) OPT_FLAG("--json", field, "print JSON")

/* The values of --set, applied to every configuration that the command reads. */
extern struct strings cli_set;

/* All zero means closed. */
struct cli_store {
        const char *command; /* for messages */
        struct config config;
        const char *how; /* how the configuration file was chosen */
        struct qv_client *client;
        const struct store_info *info;
        bool has_said_slow;
};

/* Finds and reads the configuration; the caller frees s->config.  EXIT_DONE, or another exit code after printing
 * why. */
int cli_load(struct cli_store *s, const char *command, const char *given_config, enum config_reader reader);
/* Finds and reads the configuration and opens its store.  EXIT_DONE, or another exit code after printing why. */
int cli_open(struct cli_store *s, const char *command, const char *given_config);
void cli_close(struct cli_store *s);

/* Opens the store, calls act(), and closes the store.  Returns act()'s exit code, or another after printing why. */
int cli_act(const struct options *o, const char *given_config, int (*act)(struct cli_store *s, void *self), void *self);

/* The path of a plugin that belongs to this binary, in an installed prefix or in the source tree; free().  NULL: it was
 * not found. */
char *cli_stock_plugin(const char *name);

/* Prints that the command waits for `what` ("the store", "the coordination"), which does not answer. */
void cli_say_waiting(const char *command, const char *what, const struct url *url);
#define CLI_SLOW_MS 1000 /* how long a command waits before it prints that */

/* Appends everything up to the end of file, at most `max` bytes.  0, -EMSGSIZE if there is more, or -errno. */
int cli_read_all(int fd, size_t max, struct buffer *to);

/* The exit code for `r`: EXIT_UNREACHABLE if the store did not answer, otherwise EXIT_FAILED. */
int cli_exit_code(int r);
/* Prints "quiver COMMAND: TEXT" on standard error; returns cli_exit_code(). */
int cli_fail(const char *command, int r, const char *text);

#endif
