/* rights.h: which commands a script calls: its user needs the right to each of them. */
#ifndef QUIVER_REDIS_RIGHTS_H
#define QUIVER_REDIS_RIGHTS_H

#include "base/rights.h"

struct url;

/* Adds what every connection needs: to find the server, set its name and select the database. */
void rights_add_connection(struct rights *to, const struct url *url);
/* Adds all commands that are sent to a Sentinel. */
void rights_add_sentinel(struct rights *to);
/* Adds commands, one per element: "get", "client|tracking"; ended by NULL. */
void rights_add_commands(struct rights *to, const char *const *names);
/* Adds all commands that the script's text names, whether a call reaches them or not. */
void rights_add_script(struct rights *to, const char *text);

#endif
