/* page.h: pages of the manual as scdoc(5) text, made from the tables that --help prints. */
#ifndef QUIVER_CLI_MANUAL_PAGE_H
#define QUIVER_CLI_MANUAL_PAGE_H

#include "cli/command.h"

/* quiver-COMMAND(1) */
void page_of_command(const struct command *command);
/* quiver(1) */
void page_of_all(void);

#endif
