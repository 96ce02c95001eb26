/* rights.h: which commands a script calls, since a user needs the right to each of them. */
#ifndef QUIVER_REDIS_RIGHTS_H
#define QUIVER_REDIS_RIGHTS_H

#include "base/rights.h"

struct url;

/* What every connection needs, whatever it is for: finding the server, its name, its database. */
void rights_add_connection(struct rights *to, const struct url *url);
/* All that is asked of a Sentinel. */
void rights_add_sentinel(struct rights *to);
/* Commands, each its own word: "get", "client|tracking"; NULL ends them. */
void rights_add_commands(struct rights *to, const char *const *names);
/* All that the script's text names.  A right that a script might not use in the end is added, too. */
void rights_add_script(struct rights *to, const char *text);

#endif
