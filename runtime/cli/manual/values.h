/* values.h: what a value in a usage line or behind an option may be, asked where it is known. */
#ifndef QUIVER_CLI_MANUAL_VALUES_H
#define QUIVER_CLI_MANUAL_VALUES_H

#include "base/strings.h"

/* The line that stands for the shell's own completion of files. */
#define VALUES_FILES ":files"

/* Adds the values that `value` (its name in the help: "HANDLER", "FILE") of `command` may have; `option` is the name of
 * the option that it belongs to, or NULL.  Handlers, hosts, keys and names of records are asked by a command of this
 * program, with the settings at `config` (NULL: as found), which gets two seconds: nobody waits longer for a Tab. */
void values_of(
        const char *command, const char *option, const char *value, const char *config, struct strings *ret_values);

#endif
