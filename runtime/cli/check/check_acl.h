/* check_acl.h: which users Redis may know, and what each may do. */
#ifndef QUIVER_CLI_CHECK_CHECK_ACL_H
#define QUIVER_CLI_CHECK_CHECK_ACL_H

#include <stdbool.h>

#include "config/config.h"

/* Prints them; an exit code. */
int check_acl(const struct config *config, bool has_json);

#endif
