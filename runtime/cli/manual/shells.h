/* shells.h: the scripts that make a shell ask `quiver complete` for what may stand where the cursor is. */
#ifndef QUIVER_CLI_MANUAL_SHELLS_H
#define QUIVER_CLI_MANUAL_SHELLS_H

#include <stdbool.h>

/* Prints the script for bash, zsh or fish; false for another shell. */
bool shell_print(const char *name);

#endif
