/* members_follow.h: `quiver members --follow`: who joins and who leaves, until it is interrupted. */
#ifndef QUIVER_CLI_ADMIN_MEMBERS_FOLLOW_H
#define QUIVER_CLI_ADMIN_MEMBERS_FOLLOW_H

#include <stdbool.h>

/* An exit code. */
int members_follow(const char *command, const char *config, bool has_json);

#endif
