/* rights.h: what a user of a server may do: which keys, channels and commands.
 *
 * In the syntax of Redis' ACL rules, because only Redis has such users.  Drivers add what they need; commands print
 * it. */
#ifndef QUIVER_BASE_RIGHTS_H
#define QUIVER_BASE_RIGHTS_H

#include "base/buffer.h"
#include "base/strings.h"

/* Zero-initialised: none. */
struct rights {
        struct strings keys;      /* "~quiver:{demo}:*" */
        struct strings channels;  /* "&__redis__:invalidate" */
        struct strings commands;  /* "+get"; each may be used on each of the keys */
        struct strings selectors; /* "(+get %R~…)": some commands, on some keys only */
};

/* Adds the rule unless it is there. */
void rights_add(struct strings *to, const char *rule);
/* Appends the rules as words of one line: ACL SETUSER NAME on >PASSWORD … */
void rights_put(struct buffer *to, const struct rights *rights);
void rights_free(struct rights *rights);

#endif
