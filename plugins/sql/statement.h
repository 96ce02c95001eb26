/* statement.h: a change as SQL that both databases understand.
 *
 * Names come from the settings, quoted; everything else is bound.  The fence is in the statement's own condition, so
 * that comparing and writing are one step. */
#ifndef QUIVER_SQL_STATEMENT_H
#define QUIVER_SQL_STATEMENT_H

#include "payload.h"

/* Who writes: what stands in the row's fence columns afterwards. */
struct writer {
        int64_t fence_epoch, fence_start;
        const char *task_id;
};

/* The text, to be freed, or NULL (no memory).  It changes one row; or none, if the fence or the row's state forbid. */
char *statement_change(const struct change *c);

/* What its $1 to $n are.  Returns n.  `values` has room for VALUES_MAX and borrows from both. */
size_t statement_values(const struct change *c, const struct writer *writer, struct value *values);

/* The text, to be freed, or NULL, that reads a `struct seen` of the row whose id is $1: fence_epoch, fence_start, and
 * whether it is deleted as 0 or 1. */
char *statement_look(const struct table *table);

/* The text, to be freed, or NULL, that fails if the table or one of its columns is not there. */
char *statement_probe(const struct table *table);

#endif
