/* describe.h: what a command takes, as its own table and its usage line say it.  No I/O.
 *
 * A usage line is alternatives with "|" between them, each a row of words: small letters are written as they are,
 * capitals stand for a value, brackets mean that it may be left out:
 *
 *         dead [list | groups | requeue ID… | drop ID…]
 *         members [--watch] [--moves] [--json]\n       quiver members drain NAME */
#ifndef QUIVER_CLI_MANUAL_DESCRIBE_H
#define QUIVER_CLI_MANUAL_DESCRIBE_H

#include "base/strings.h"
#include "cli/command.h"
#include "cli/options.h"

/* Lets `see` look at the options of the command. */
void describe_command(const struct command *command, void (*see)(void *self, const struct options *o), void *self);

/* The words that may follow `given` (of `count` words, none of them an option) in the usage line, once each: words to
 * be written, and names of values in capitals ("HANDLER"). */
void describe_next(const char *usage, char *const *given, size_t count, struct strings *ret_words);

#endif
