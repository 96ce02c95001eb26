/* problems.h: what is wrong with an app, in words, the worst first, each with the command that helps.
 *
 * It is part of the status; the page and `quiver top` begin with it. */
#ifndef QUIVER_VIEW_PROBLEMS_H
#define QUIVER_VIEW_PROBLEMS_H

#include "view/status.h"

/* An array of { level: "bad" or "warn", kind, text, command }, with `handler` if the problem concerns one.  Empty: no
 * problem. */
json_t *problems_as_json(const struct status *status);

#endif
