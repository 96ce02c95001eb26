/* handler.h: adds a handler to runtime.cfg. */
#ifndef QUIVER_CLI_HANDLER_H
#define QUIVER_CLI_HANDLER_H

#include <stdbool.h>

/* Adds the handler to the file that `given_config` or the usual places name, and shows what was changed; with `is_dry`
 * it only shows it.  `settings` is the inside of its group: `plugin = "mail.so";`.  EXIT_DONE, or another exit code
 * after it said why. */
int handler_add(const char *command, const char *given_config, const char *name, const char *settings, bool is_dry);

#endif
